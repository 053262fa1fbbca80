"""The turn loop: the student speaks, the tutor replies, until the dialogue ends."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path

from msgspec.structs import asdict, replace

from socratic_bench.benchmarks.socratic.closing import (
    Replies,
    asks_insights,
    closing_question,
    insights_of,
    with_flags,
)
from socratic_bench.benchmarks.socratic.heuristics import analyse
from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario
from socratic_bench.benchmarks.socratic.settings import Settings
from socratic_bench.benchmarks.socratic.student.model import ModelStudent
from socratic_bench.benchmarks.socratic.student.pressure import Schedule
from socratic_bench.benchmarks.socratic.student.scripted import ScriptedStudent
from socratic_bench.benchmarks.socratic.transcript import NO_TRANSCRIPT, Transcript
from socratic_bench.benchmarks.socratic.turn import (
    ENDINGS,
    STUDENT,
    TUTOR,
    Exchange,
    Student,
    StudentReply,
    ending_of,
    is_empty,
    replayed_turn,
    turn_of,
)
from socratic_bench.errors import ModelError
from socratic_bench.ports.benchmark import (
    ClosingQuestion,
    Episode,
    EpisodeContext,
    EpisodeResult,
    JudgeInput,
    Length,
)
from socratic_bench.settings import MAX_TURNS
from socratic_bench.turns import ClosingAnswer, Turn
from socratic_bench.types import CallKey, Completion, EndReason, Message, Request, Role, plural

OPENING = f"{STUDENT}, first words"  # how the judge is shown them, if exchanges are left out


class SocraticEpisode(Episode, frozen=True, kw_only=True):
    """One dialogue, prepared. See `socratic_bench.ports.benchmark.Episode`."""

    settings: Settings
    scenario: Scenario
    tutor_prompt: str
    transcript: Transcript = NO_TRANSCRIPT

    def play(self, context: EpisodeContext) -> EpisodeResult:
        filler: list[int] = []
        result = self._play(context, filler)
        if not filler:
            return result
        text = (
            f"The scripted student had nothing new to say in {plural(len(filler), 'turn')}, first "
            f"in turn {filler[0]}: metrics.before_filler has the figures of the turns before."
        )
        return replace(result, notices=(text,))

    def _play(self, context: EpisodeContext, filler: list[int]) -> EpisodeResult:
        """Run the dialogue to its end; `filler` collects the turns with a filler line."""
        exchanges: list[Exchange] = []
        for turn in self.transcript.turns:
            context.publish(replayed_turn(len(exchanges), turn))
            exchanges.append(Exchange(student=turn.student, tutor=turn.tutor))
        last = len(exchanges) + self.settings.turns
        # Made when it first has to speak.
        student = cache(partial(self._student, context))
        student_reply = self._first_words()
        try:
            while True:
                if student_reply is None:
                    student_reply = student().reply(exchanges)
                    if episode_result := _result_after(student_reply):
                        return episode_result
                *set_aside, reply = self._ask(context, exchanges, student_reply.text)
                played = turn_of(len(exchanges), student_reply, reply)
                discarded = ((STUDENT, call) for call in student_reply.discarded)
                unused = (*discarded, *((TUTOR, call) for call in set_aside))
                context.publish(replace(played, set_aside=unused))
                filler += [played.index] * student_reply.is_filler
                exchanges.append(Exchange(student=student_reply.text, tutor=reply.message.text))
                if (ended := ending_of(reply)) or len(exchanges) == last:
                    return EpisodeResult(end_reason=ended or "max_turns")
                student_reply = None
        except ModelError as error:
            if error.end_reason != "context_window":
                raise
            return EpisodeResult(end_reason="context_window")

    def measure(self, turns: Sequence[Turn], index: int) -> Turn:
        """With the heuristics of the reply."""
        turn = turns[index]
        return replace(turn, measures=asdict(analyse(turn.reply.message.text)))

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        """The opening, the last exchanges, the student's words, and the tutor's reply to them."""
        start = max(0, index - self.settings.judge_context)
        recent = turns[start:index]
        context = [
            line
            for turn in recent
            for line in ((STUDENT, turn.prompt), (TUTOR, turn.reply.message.text))
        ]
        if start:
            context = [(OPENING, turns[0].prompt), *context]
        turn = turns[index]
        return JudgeInput((*context, (STUDENT, turn.prompt)), turn.reply.message.text)

    def closing_question(
        self, turns: Sequence[Turn], closing: str | None
    ) -> ClosingQuestion | None:
        """What became of the insights, and where a model lapsed as the student."""
        is_by_model = self.settings.student_model is not None
        has_insights = asks_insights(self.rubric, self.scenario)
        return closing_question(
            self.scenario,
            turns,
            closing,
            insights=insights_of(self.scenario) if has_insights else (),
            replies=Replies.of(turns, closing) if is_by_model else None,
        )

    def with_findings(self, turns: Sequence[Turn], findings: ClosingAnswer) -> tuple[Turn, ...]:
        return with_flags(turns, findings)

    def expected_reply(self, role: Role, length: Length) -> str:
        """One open question, a student's answer to one, or a judge's reason for a score."""
        return expected_replies()[role][length]

    def _student(self, context: EpisodeContext) -> Student:
        schedule = schedule_of(self.settings, self.scenario, self.transcript)
        model = context.model(STUDENT)
        if model is not None:
            return ModelStudent(self.scenario, model, schedule=schedule)
        return ScriptedStudent(self.scenario, schedule.seed, schedule=schedule)

    def _first_words(self) -> StudentReply | None:
        """What the tutor under test answers first; `None` if the student has still to speak."""
        if not self.transcript.turns:
            return StudentReply(text=self.opening.prompt, policy="opening")
        if not (handover := self.transcript.handover):
            return None
        return StudentReply(text=handover.student, policy="replayed", pressure=handover.pressure)

    def _ask(
        self, context: EpisodeContext, exchanges: Sequence[Exchange], prompt: str
    ) -> list[Completion]:
        """The tutor's reply, the last one; an empty one is asked for once more."""
        messages = [message for exchange in exchanges for message in _spoken(exchange)]
        request = Request(
            system=self.tutor_prompt,
            messages=(*messages, Message.user(prompt)),
            config=self.settings.generation,
            is_cacheable_prefix=self.settings.turns > 1,
        )
        index = len(exchanges)
        replies = [context.tested.complete(request, CallKey(role=TUTOR, index=index))]
        if is_empty(replies[0]):
            again = CallKey(role=TUTOR, index=index, repeat=1)
            replies.append(context.tested.complete(request, again))
        return replies


def _result_after(reply: StudentReply) -> EpisodeResult | None:
    """The end of the episode if the student closed it or its reply cannot be used."""
    end_reason: EndReason | None = "student_closed" if reply.closed else None
    if reply.completion:
        end_reason = ENDINGS.get(reply.completion.stop_reason, end_reason)
    if end_reason is None:
        return None if reply.text.strip() else EpisodeResult(end_reason="empty_reply")
    return EpisodeResult(end_reason=end_reason, closing=reply.text or None)


@lru_cache(maxsize=MAX_TURNS)
def _spoken(exchange: Exchange) -> tuple[Message, Message]:
    """An exchange as the tutor sees it; every later request begins with the same messages."""
    return Message.user(exchange.student), Message.assistant(exchange.tutor)


def schedule_of(settings: Settings, scenario: Scenario, transcript: Transcript) -> Schedule:
    """The schedule of pressure: over the student's own turns, until it is known to leave."""
    # The student's words in the record are not this student's.
    recorded = len(transcript.turns) + (transcript.handover is not None)
    n_turns = len(transcript.turns) + settings.turns
    if scenario.closes_after is not None and not settings.student_model:
        n_turns = min(n_turns, scenario.closes_after)
    return Schedule(
        level=settings.pressure, seed=settings.seed or 0, start=max(1, recorded), n_turns=n_turns
    )


@cache
def expected_replies() -> Mapping[str, Mapping[str, str]]:
    file = Path(__file__).with_name("expected_replies.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
