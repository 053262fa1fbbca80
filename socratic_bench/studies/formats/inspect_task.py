"""The Socratic benchmark as a task of inspect_ai, by its models and solver interface, with our
scenarios, student, rubric and metrics.

    inspect eval socratic_bench/socratic --model MODEL --model-role grader=MODEL
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from anyio import from_thread, to_thread
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.model import Model as InspectModel
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolFunction, ToolInfo, ToolParams
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.benchmarks.socratic.scenarios.loading import load_builtin, scenarios_of
from socratic_bench.benchmarks.socratic.settings import Pressure
from socratic_bench.judging.judge import Judge
from socratic_bench.ports.benchmark import Episode, EpisodeContext, EpisodeResult
from socratic_bench.runs.context import utc_now
from socratic_bench.turns import Turn, Unscored
from socratic_bench.types import (
    CallKey,
    Completion,
    Message,
    Request,
    Role,
    Text,
    ToolUse,
    Usage,
)

BENCHMARK = load_benchmark("socratic")
TURNS = "socratic_turns"
GRADER, STUDENT = "grader", "student"
STOPS = {
    "stop": "end_turn",
    "max_tokens": "max_tokens",
    "model_length": "model_context_window_exceeded",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
}


@task
def socratic(
    scenarios: str = "all",
    turns: int = 20,
    pressure: Pressure = "none",
    rubric: str = "socratic-disposition-2",
    seed: int = 0,
) -> Task:
    """How long a tutor keeps asking before it gives the answer away. The model of the role
    `student` plays the student, if there is one; the role `grader` judges each turn.
    """
    config = RunConfig(
        model="inspect", turns=turns, pressure=pressure, rubric=rubric, seed=seed, judge_model=None
    )
    samples = [
        InspectSample(
            id=name,
            input=load_builtin(name).openings[0],
            metadata={"scenario": name, "family": load_builtin(name).family},
        )
        for name in scenarios_of(scenarios)
    ]
    return Task(
        dataset=MemoryDataset(samples, name="socratic"),
        solver=play_dialogue(config),
        scorer=judge_dialogue(config),
    )


@solver
def play_dialogue(config: RunConfig) -> Solver:
    """Plays the dialogue of a scenario between the model under test and the student."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        del generate  # a dialogue has many calls, also of another model
        student = get_model(role=STUDENT) if _has_role(STUDENT) else None
        episode = _episode(config, state, has_model_student=student is not None)
        context = _Context(get_model(), student)
        ended = await to_thread.run_sync(partial(episode.play, cast("EpisodeContext", context)))
        state.messages = [*_messages(context.turns, ended)]
        replies = [
            message for message in state.messages if isinstance(message, ChatMessageAssistant)
        ]
        state.output = ModelOutput.from_content(
            str(state.model), replies[-1].text if replies else ""
        )
        state.metadata["end_reason"] = ended.end_reason
        state.store.set(TURNS, context.turns)
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def judge_dialogue(config: RunConfig) -> Scorer:
    """The means of the rubric's scores over the turns, and the metrics of the dialogue."""

    async def score(state: TaskState, target: Target) -> Score:
        del target  # no answer is the right one
        turns: Sequence[Turn] = state.store.get(TURNS, ())
        model = _AskedModel(get_model(role=GRADER))
        episode = _episode(config, state, has_model_student=False)
        assert episode.rubric  # noqa: S101 -- this benchmark has one
        judge = Judge(model=model, rubric=episode.rubric, seed=config.seed or 0, now=utc_now)

        def judge_all() -> list[Turn]:
            measured = [episode.measure(turns, turn.index) for turn in turns]
            return [
                turn
                if turn.unscorable
                else replace(turn, judged=judge.judge(episode.judge_input(measured, n), n))
                for n, turn in enumerate(measured)
            ]

        judged = await to_thread.run_sync(judge_all)
        verdicts = [turn.verdict for turn in judged if turn.verdict]
        reasons = [turn.outcome.message for turn in judged if isinstance(turn.outcome, Unscored)]
        if not verdicts:
            return Score.unscored(explanation="; ".join(reasons) or "no turn was played")
        metrics = BENCHMARK.summarise(replace(config, scenario=state.metadata["scenario"]), judged)
        names = ("overall_score", "discipline", "turns_held", "lapse_rate")
        known = {name: value for name in names if isinstance(value := metrics[name], int | float)}
        return Score(
            value={name: float(value) for name, value in known.items()},
            explanation=f"{len(verdicts)} of {len(turns)} turns judged",
            metadata={
                "turns": [
                    {**verdict.scores, "rationale": dict(verdict.rationale)} for verdict in verdicts
                ],
                "unjudged": reasons,
            },
        )

    return score


class _AskedModel:
    """A model of inspect_ai as this program's `Model`; it is asked from a worker thread."""

    def __init__(self, model: InspectModel) -> None:
        self._model = model

    @property
    def model_id(self) -> str:
        return str(self._model)

    def complete(self, request: Request, key: CallKey) -> Completion:
        del key
        tool = request.tool
        temperature = request.config.temperature
        if temperature is None:
            temperature = request.temperature_if_taken
        began_at = utc_now()
        output: ModelOutput = from_thread.run(
            partial(
                self._model.generate,
                [*_request_messages(request)],
                tools=[
                    ToolInfo(
                        name=tool.name,
                        description=tool.description,
                        parameters=ToolParams.model_validate(tool.input_schema),
                    )
                ]
                if tool
                else [],
                tool_choice=ToolFunction(name=tool.name) if tool else None,
                config=GenerateConfig(
                    max_tokens=request.config.max_tokens, temperature=temperature
                ),
            )
        )
        return _completion(output, (utc_now() - began_at).total_seconds() * 1000)


class _Context:
    """What a dialogue is played with: the part of `EpisodeContext` that this benchmark uses."""

    def __init__(self, tested: InspectModel, student: InspectModel | None) -> None:
        self._tested = _AskedModel(tested)
        self._student = _AskedModel(student) if student else None
        self.turns: list[Turn] = []

    @property
    def tested(self) -> _AskedModel:
        return self._tested

    def model(self, actor: Role, model_id: str | None = None) -> _AskedModel | None:
        del actor, model_id
        return self._student

    def publish(self, turn: Turn) -> None:
        self.turns.append(turn)


def _has_role(name: str) -> bool:
    from inspect_ai.model import model_roles

    return name in model_roles()


def _episode(config: RunConfig, state: TaskState, *, has_model_student: bool) -> Episode:
    return BENCHMARK.prepare(
        replace(
            config,
            scenario=state.metadata["scenario"],
            student_model=STUDENT if has_model_student else None,
            seed=(config.seed or 0) + state.epoch - 1,
        )
    )


def _messages(turns: Sequence[Turn], ended: EpisodeResult) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    for turn in turns:
        messages.append(ChatMessageUser(content=turn.prompt))
        messages.append(ChatMessageAssistant(content=turn.reply.message.text))
    if ended.closing:
        messages.append(ChatMessageUser(content=ended.closing))
    return messages


def _request_messages(request: Request) -> list[ChatMessage]:
    kinds: dict[str, Any] = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}
    system = [ChatMessageSystem(content=request.system)] if request.system else []
    return [*system, *(kinds[message.role](content=message.text) for message in request.messages)]


def _completion(output: ModelOutput, latency_ms: float) -> Completion:
    reply, usage = output.message, output.usage
    calls = tuple(
        ToolUse(call.id, call.function, call.arguments) for call in reply.tool_calls or ()
    )
    text = (Text(reply.text),) if reply.text else ()
    return Completion(
        message=Message("assistant", (*text, *calls)),
        stop_reason="tool_use" if calls else STOPS.get(str(output.stop_reason), "end_turn"),
        usage=Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        if usage
        else None,
        latency_ms=latency_ms,
        service_latency_ms=None,
        attempts=(),
        request_id=None,
        finished_at=utc_now(),
        model_id=str(output.model),
    )
