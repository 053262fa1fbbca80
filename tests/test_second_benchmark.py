"""Another kind of benchmark on the same engine: one question each, a golden answer, no judge."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import copyfile, copytree
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import Meta, field
from msgspec.structs import replace

from socratic_bench import RunConfig, RunResult, UsageError, run
from socratic_bench.benchmarks import BENCHMARKS, load_benchmark
from socratic_bench.documents.cost import CostEntry
from socratic_bench.documents.document import Share
from socratic_bench.generation import GenerateConfig
from socratic_bench.ports.benchmark import (
    Benchmark,
    Episode,
    EpisodeContext,
    EpisodeResult,
    Length,
    MetricInfo,
    Metrics,
    Sample,
)
from socratic_bench.ports.parts import Actor, Part, Parts
from socratic_bench.runs import prepare
from socratic_bench.runs.dry_run import dry_run
from socratic_bench.turns import Rubric, Turn
from socratic_bench.types import CallKey, Message, Request, Role
from tests.command import CLAUDE, ROOT, Outcome, account
from tests.fakes import RUBRIC, FakeBedrock, answer, breaches, refusal, scored, stored
from tests.schemas import schema

GOLDEN = {"What is 2 + 2?": "4", "Which is the capital of France?": "Paris"}
NOVA = "amazon.nova-premier-v1:0"
CONFIG = RunConfig(
    model="tutor", prompt="What is 2 + 2?", seed=1, region="us-east-1", max_attempts=1
)


class GoldenMetrics(Part, frozen=True, kw_only=True):
    accuracy: Annotated[Share | None, Meta(description="share of right answers")] = None
    by_length: dict[str, float | None] = field(default_factory=dict)

    @classmethod
    def of(cls, metrics: Metrics) -> "GoldenMetrics":
        return cls(**metrics)


class GoldenTurn(Part, frozen=True, kw_only=True):
    golden: Annotated[str, Meta(description="the right answer")] = ""

    @classmethod
    def of(cls, turn: Turn) -> "GoldenTurn":
        return cls(**turn.notes)


PARTS = Parts(metrics=GoldenMetrics, turn=GoldenTurn)


class GoldenEpisode(Episode, frozen=True, kw_only=True):
    config: RunConfig

    def play(self, context: EpisodeContext) -> EpisodeResult:
        question = self.opening.prompt
        request = Request(
            messages=(Message.user(question),), config=GenerateConfig(max_tokens=20, temperature=0)
        )
        reply = context.tested.complete(request, CallKey(role="model", index=0))
        context.publish(
            Turn(
                index=0,
                prompt=question,
                reply=reply,
                notes={"golden": GOLDEN[question]},
            )
        )
        return EpisodeResult(end_reason="max_turns")

    def expected_reply(self, role: Role, length: Length) -> str:
        return "Paris"

    def measure(self, turns: Sequence[Turn], index: int) -> Turn:
        said = turns[index].reply.message.text.strip()
        right = said == GOLDEN[turns[index].prompt]
        return replace(turns[index], measures={"is_correct": right, "n_words": len(said.split())})


@dataclass(frozen=True)
class GoldenBenchmark(Benchmark):
    rubric: Rubric | None = None
    name: str = "quiz"
    parts: Parts = PARTS
    primary_metric: str = "accuracy"
    metrics: tuple[MetricInfo, ...] = (
        MetricInfo(name="accuracy", title="Share of right answers", low=0, high=1),
        MetricInfo(name="by_length.short", title="Of short ones", low=0, high=1),
    )

    def prepare(self, config: RunConfig) -> GoldenEpisode:
        if config.prompt not in GOLDEN:
            raise UsageError([f"There is no golden answer to {config.prompt!r}."])
        key = sha256(GOLDEN[config.prompt].encode()).hexdigest()
        opening = Sample(id="arithmetic", prompt=config.prompt, hashes={"golden_sha256": key})
        return GoldenEpisode(config=config, opening=opening, rubric=self.rubric)

    def summarise(self, config: RunConfig, turns: Sequence[Turn]) -> Metrics:
        right = [turn.measures["is_correct"] is True for turn in turns]
        accuracy = sum(right) / len(right) if right else None
        return {"accuracy": accuracy, "by_length": {"short": accuracy}}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def play(service, out, said: Any, *, benchmark: Any = None, **config: Any) -> RunResult:
    service.scripts["tutor"] = [said]
    whole = replace(CONFIG, output_dir=str(out), **config)
    result = run(whole, benchmark=benchmark or GoldenBenchmark())
    assert breaches("run", result.document, PARTS) == []
    assert breaches("brief", result.brief, PARTS) == []
    return result


def test_a_right_answer_goes_through_to_the_document_and_the_files(service, out):
    result = play(service, out, answer("4"))
    document = result.document
    raw, curated = f"raw/runs/{result.run_id}", f"curated/runs/{result.run_id}.json"

    assert (result.status, result.exit_code, document["benchmark"]) == ("completed", 0, "quiz")
    assert document["metrics"] == {"accuracy": 1.0, "by_length": {"short": 1.0}}
    assert (document["overall_score"], document["half_life"], document["judge"]) == (
        None,
        None,
        None,
    )
    assert document["inputs"]["golden_sha256"] == sha256(b"4").hexdigest()
    (entry,) = document["turns"]
    assert (entry["heuristics"], entry["golden"], entry["score"], entry["unjudged_reason"]) == (
        {"is_correct": True, "n_words": 1},
        "4",
        None,
        None,
    )
    kept = stored(out, PARTS)
    assert set(kept) == {f"{raw}/turn_000.json", curated}


def test_a_wrong_answer_is_a_result_like_any_other(service, out):
    result = play(service, out, answer("Paris"), prompt="What is 2 + 2?")

    assert (result.exit_code, result.metrics["accuracy"]) == (0, 0.0)


def test_its_own_mistakes_are_said_with_all_others(service, out):
    with pytest.raises(UsageError) as refused:
        play(service, out, answer("4"), prompt="Why?", turns=0)

    assert refused.value.problems == (
        "turns is 0, but must lie in 1..500.",
        "There is no golden answer to 'Why?'.",
    )


def test_it_may_have_a_judge_with_a_rubric_of_its_own(service, out):
    service.scripts["judge"] = [scored(3, 0, 4)]
    result = play(
        service, out, answer("4"), benchmark=GoldenBenchmark(rubric=RUBRIC), judge_model="judge"
    )

    (entry,) = result.document["turns"]
    assert (entry["score"], entry["scores"]) == (
        7.0,
        {"form": 3.0, "substance": 0.0, "purity": 4.0},
    )
    judged = stored(out, PARTS)[f"raw/runs/{result.run_id}/judge_000.json"]
    assert judged["heuristics"] == {"is_correct": True, "n_words": 1}


def test_no_dimension_of_a_rubric_overwrites_a_field(service, out):
    names = ("turn", "score", "question", "kind")
    dimensions = tuple(replace(RUBRIC.dimensions[0], name=name) for name in names)
    given = dict(zip(names, (0.5, 1, 1.5, 2), strict=True))
    verdict = {"toolUseId": "1", "name": "record_verdict", "input": {**given, "rationale": {}}}
    service.scripts["judge"] = [answer([{"toolUse": verdict}], "tool_use")]
    rubric = replace(RUBRIC, dimensions=dimensions)
    result = play(service, out, answer("4"), benchmark=GoldenBenchmark(rubric), judge_model="judge")

    (entry,) = result.document["turns"]
    assert (entry["scores"], entry["score"]) == (given, 5.0)
    assert (entry["turn"], entry["question"]) == (0, "4")
    judged = stored(out, PARTS)[f"raw/runs/{result.run_id}/judge_000.json"]
    assert (judged["turn"], judged["kind"], judged["scores"]) == (0, "judge", given)


@pytest.mark.parametrize("name", ["rationale", "reply", "why", "student"])
def test_a_dimension_cannot_have_the_name_of_something_else_in_a_verdict(name):
    with pytest.raises(ValueError, match=f"called {name}"):
        replace(RUBRIC, dimensions=(replace(RUBRIC.dimensions[0], name=name),))


def test_its_own_keys_never_overwrite_those_of_every_run(service, out):
    class Greedy(Part, frozen=True, kw_only=True):
        turn: str = "mine"
        mine: str = "mine"

    service.scripts["tutor"] = [answer("4")]
    greedy = GoldenBenchmark(parts=Parts(metrics=GoldenMetrics, turn=Greedy))
    result = run(replace(CONFIG, output_dir=str(out)), benchmark=greedy)

    (entry,) = result.document["turns"]
    assert (entry["turn"], entry["mine"]) == (0, "mine")


def test_its_actors_and_what_it_plays_are_named_as_it_names_them(service, out):
    document = play(service, out, answer("4")).document

    assert list(document["usage"]) == ["model", "judge", "total"]
    assert list(document["inputs"]["models"]) == ["model", "judge"]
    assert list(document["latency"]) == ["model", "judge"]
    (entry,) = document["turns"]
    assert list(entry["usage"]) == list(entry["latency"]) == ["model", "judge"]
    assert (document["sample"], document["scenario"]) == ("arithmetic", None)


CRITIC = Parts(
    actors=(Actor("writer", "model"), Actor("critic", "student_model")), metrics=GoldenMetrics
)


class CriticEpisode(GoldenEpisode, frozen=True, kw_only=True):
    def play(self, context: EpisodeContext) -> EpisodeResult:
        critic = context.model("critic")
        asked = Request(messages=(Message.user("Ask."),), config=GenerateConfig(max_tokens=20))
        call = critic.complete(asked, CallKey(role="critic", index=0)) if critic else None
        request = Request(
            messages=(Message.user(self.opening.prompt),), config=self.config.generation
        )
        reply = context.tested.complete(request, CallKey(role="writer", index=0))
        others = {"critic": call} if call else {}
        turn = Turn(index=0, prompt=self.opening.prompt, reply=reply, others=others)
        context.publish(turn)
        return EpisodeResult(end_reason="max_turns")


class CriticBenchmark(GoldenBenchmark):
    def prepare(self, config: RunConfig) -> CriticEpisode:
        return CriticEpisode(opening=super().prepare(config).opening, config=config)


def test_every_actor_is_counted_by_its_name_and_only_the_tested_one_has_the_tier(service, out):
    config = replace(
        CONFIG, model=NOVA, student_model=NOVA, service_tier="priority", output_dir=str(out)
    )
    service.scripts[NOVA] = [answer("?"), answer("4")]
    benchmark = CriticBenchmark(parts=CRITIC)
    document = run(config, benchmark=benchmark).document
    predicted = dry_run(prepare(config, benchmark=benchmark))

    assert breaches("run", document, CRITIC) == breaches("dry_run", predicted, CRITIC) == []
    roles = ["writer", "critic", "judge"]
    assert list(document["usage"]) == [*roles, "total"]
    assert [document["usage"][role]["calls"] for role in roles] == [1, 1, 0]
    by_role = (document["latency"], document["inputs"]["models"], document["turns"][0]["latency"])
    assert [list(entry) for entry in by_role] == [roles] * 3
    assert [sent.body.get("serviceTier") for sent in service.of(NOVA)] == [
        None,
        {"type": "priority"},
    ]
    costs = document["cost"]
    assert costs["writer"]["total_usd"] > costs["critic"]["total_usd"] > 0
    assert (predicted["student_model"], predicted["usage"]["critic"]["calls"]) == (NOVA, 1)
    stored(out, CRITIC)


@pytest.mark.parametrize(
    "name", ["judge", "total", "writer", *sorted({*CostEntry.__struct_fields__} - {"roles"})]
)
def test_actors_have_names_of_their_own(name):
    with pytest.raises(ValueError, match="names of their own"):
        Parts(actors=(Actor("writer", "model"), Actor(name, "student_model")))


def test_a_dry_run_goes_by_what_it_expects_of_replies():
    plan = prepare(CONFIG, benchmark=GoldenBenchmark())
    document = dry_run(plan)

    assert breaches("dry_run", document, PARTS) == []
    usage = document["usage"]["total"]
    assert (document["benchmark"], document["n_turns"], usage["calls"]) == ("quiz", 1, 1)
    # "What is 2 + 2?" with its frame, and "Paris".
    assert (usage["input_tokens"], usage["output_tokens"]) == (7, 2)
    assert document["cost"] is None


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_declares_by_which_metric_runs_are_ordered(name):
    benchmark = load_benchmark(name)
    by_name = {metric.name: metric for metric in benchmark.metrics}

    assert benchmark.name == name
    assert by_name[benchmark.primary_metric].higher_is_better in (True, False)


def test_an_unknown_benchmark_is_refused_by_name():
    with pytest.raises(UsageError) as refused:
        load_benchmark("quiz")
    assert refused.value.problems[0].startswith("No benchmark 'quiz'; available: ")


# --- docs/dev/examples/recall.py, added as docs/dev/extending.md says ---

QUESTION = "What is 2 + 2?"
PLAY = ("--benchmark", "recall", "--model", CLAUDE, "--prompt", QUESTION)
SETTINGS = """
from typing import Annotated

from socratic_bench.setting import Setting
from socratic_bench.settings import CoreConfig


class Settings(CoreConfig, frozen=True, kw_only=True):
    closeness: Annotated[
        float,
        Setting("judging", "S", "what counts as right (default {default})", high=1, is_input=True),
    ] = 1.0
    accepted: Annotated[
        tuple[str, ...],
        Setting("judging", "TEXT", "another right answer; repeatable", is_input=True),
    ] = ()
"""


# Plays the copy's commands one after the other: a process of each would import the copy anew.
PLAYER = """
import json, sys
from pathlib import Path
from tests.command import run_here
for line in sys.stdin:
    words, env, folder = json.loads(line)
    outcome = run_here(words, env=env, cwd=Path(folder))
    print(json.dumps([outcome.exit_code, outcome.stdout.decode(), outcome.stderr]), flush=True)
"""


class Added:
    """A copy of the program with the folder and the line that docs/dev/extending.md asks for."""

    def __init__(self, root: Path, url: str) -> None:
        for room in ("cli", "socratic_bench", "tools", "docs"):
            copytree(ROOT / room, root / room)
        guide = (ROOT / "docs/dev/extending.md").read_text()
        (line,) = re.findall(r'^ +"recall": .*\n', guide, re.MULTILINE)
        folder = root / "socratic_bench" / "benchmarks" / "recall"
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        copyfile(ROOT / "docs/dev/examples/recall.py", folder / "benchmark.py")
        (folder / "settings.py").write_text(SETTINGS)
        registry = folder.parent / "__init__.py"
        head, begin, rest = registry.read_text().partition("BENCHMARKS = {\n")
        registry.write_text(head + begin + line + rest.replace(line, ""))
        self.root, self.env = root, account(url) | {"PYTHONPATH": str(root)}
        self._schemas: dict[str, Any] = {}
        tables = [sys.executable, "tools/tables.py"]  # make docs
        subprocess.run(tables, cwd=root, env=self.env, check=True)
        self._player = subprocess.Popen(
            [sys.executable, "-c", PLAYER],
            cwd=root,
            env={**self.env, "PYTHONPATH": f"{root}:{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._player.communicate()

    def play(self, *words: str, **variables: str) -> Outcome:
        """What a command of the copy leaves."""
        assert self._player.stdin
        assert self._player.stdout
        line = json.dumps([words, {**self.env, **variables}, str(self.root)])
        self._player.stdin.write(f"{line}\n")
        self._player.stdin.flush()
        exit_code, stdout, stderr = json.loads(self._player.stdout.readline())
        return Outcome(exit_code, stdout.encode(), stderr)

    def schema(self, kind: str) -> Any:
        """What the command prints of a kind of its documents."""
        if kind not in self._schemas:
            words = ("schema", kind, "--benchmark", "recall")
            shown = self.play(*words).document
            assert "$schema" in shown, shown
            self._schemas[kind] = shown
        return self._schemas[kind]

    def breaches(self, document: Any) -> list[str]:
        """Where a document breaks the schema that the command prints of its kind."""
        validator = Draft202012Validator(self.schema(document["kind"]))
        return [error.message for error in validator.iter_errors(document)]

    def run(self, *words: str, exit_code: int = 0) -> Any:
        """The document of a command, which fits the schema of its kind."""
        outcome = self.play(*words)
        assert outcome.exit_code == exit_code, outcome
        self.said = outcome.stderr
        document = json.loads(outcome.stdout)
        assert self.breaches(document) == []
        return document


@pytest.fixture(scope="module")
def bedrock():
    with FakeBedrock() as fake:
        yield fake


@pytest.fixture(scope="module")
def added(tmp_path_factory, bedrock):
    added = Added(tmp_path_factory.mktemp("clone"), bedrock.url)
    yield added
    added.close()


@pytest.fixture
def fresh(bedrock):
    bedrock.reset()
    bedrock.scripts[CLAUDE] = [answer("4")]
    return bedrock


def test_the_documented_one_is_played_by_the_command(added, fresh):
    document = added.run(*PLAY)

    assert (document["benchmark"], document["metrics"]) == ("recall", {"accuracy": 1.0})
    assert (document["half_life"], document["student"], document["scenario"]) == (None, None, None)
    assert (document["sample"], document["n_turns"], len(fresh.sent)) == ("question-1", 1, 1)
    assert document["turns"][0]["heuristics"] == {"is_right": True}
    assert f"{CLAUDE}, sample question-1, seed " in added.said
    assert "  right  " in added.said


def test_the_documented_one_asks_all_its_questions_at_once(added, fresh):
    fresh.scripts[CLAUDE] = lambda sent: answer("4" if b"2 + 2" in sent.raw else "Paris")
    document = added.run("--benchmark", "recall", "--model", CLAUDE)

    assert (document["sample"], document["n_turns"], len(fresh.sent)) == ("all", 2, 2)
    assert document["metrics"] == {"accuracy": 1.0}
    assert (document["items"]["answered"], document["items"]["missing"]) == (2, [])
    assert [turn["question"] for turn in document["turns"]] == ["4", "Paris"]


def test_the_documented_one_is_predicted(added, fresh):
    document = added.run(*PLAY, "--dry-run")

    assert (document["benchmark"], document["n_turns"]) == ("recall", 1)
    assert document["usage"]["model"]["calls"] == document["usage"]["total"]["calls"] == 1
    assert document["cost"]["total"]["total_usd"] > 0
    assert not any("/converse" in sent.path for sent in fresh.sent)


def test_the_documented_one_is_held_by_budget_and_gates(added, fresh):
    refused = added.run(*PLAY, "--max-cost-usd", "0.000001", exit_code=6)
    assert (refused["end_reason"], fresh.sent) == ("budget", [])

    predicted = added.run(*PLAY, "--max-cost-usd", "0.000001", "--dry-run")
    assert predicted["budget"]["covers_high"] is False

    assert added.run(*PLAY, "--max-cost-usd", "1", "--fail-under", "accuracy=1")["cost"]
    fresh.scripts[CLAUDE] = [answer("5")]
    missed = added.run(*PLAY, "--fail-under", "accuracy=1", exit_code=5)
    assert missed["error"]["message"] == "accuracy is 0, but must be at least 1."


def test_the_documented_one_is_stored_and_resumed(added, fresh, tmp_path):
    place = ("--output-dir", str(tmp_path))
    fresh.scripts[CLAUDE] = [refusal(503, "ServiceUnavailableException"), answer("4")]
    cut_short = added.run(*PLAY, *place, "--max-attempts", "1", exit_code=4)
    whole = added.run("resume", cut_short["run_id"], *place)
    again = added.run("resume", cut_short["run_id"], *place)

    assert (whole["run_id"], whole["metrics"]) == (cut_short["run_id"], {"accuracy": 1.0})
    assert whole["usage"]["model"]["attempts"] == len(fresh.sent) == 2
    assert again["turns"] == whole["turns"]
    run_id = whole["run_id"]
    names = {f"raw/runs/{run_id}/turn_000.json", f"curated/runs/{run_id}.json"}
    kept = {name: json.loads((tmp_path / name).read_bytes()) for name in names}
    assert {name: added.breaches(document) for name, document in kept.items()} == {
        name: [] for name in names
    }


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--prompt", "Why?"), "--prompt is none of the questions."),
        (("--student", "model"), "--student is a setting of socratic, not of recall."),
        (("--judge-model", "judge"), "--judge-model does not apply: recall has no judge"),
    ],
)
def test_a_refused_run_of_the_documented_one_names_it(words, problem, added, fresh):
    given = dict(zip(PLAY[::2], PLAY[1::2], strict=True)) | dict([words])
    refused = added.run(*(word for pair in given.items() for word in pair), exit_code=2)

    assert (refused["benchmark"], refused["model"]) == ("recall", CLAUDE)
    assert problem in refused["error"]["message"]
    assert (list(refused["usage"]), fresh.sent) == (["model", "judge", "total"], [])


def test_a_judge_that_the_environment_names_is_no_mistake_without_one(added, fresh):
    assert added.play(*PLAY, RUNNER_JUDGE_MODEL="judge").exit_code == 0
    assert added.run(*PLAY, "--no-judge", "--min-judge-coverage", "1")


def test_its_own_settings_are_read_told_and_stored(added, fresh, tmp_path):
    words = ("--closeness", "0.5", "--accepted", "four", "--accepted", "IV")
    document = added.run(*PLAY, *words, "--output-dir", str(tmp_path))
    own = {"closeness": 0.5, "accepted": ["four", "IV"]}

    assert document["inputs"].items() >= own.items()
    curated = tmp_path / f"curated/runs/{document['run_id']}.json"
    assert json.loads(curated.read_bytes())["inputs"] == document["inputs"]
    inputs = added.schema("run")["$defs"]["Inputs"]
    assert inputs["properties"]["closeness"] == {
        "description": "what counts as right",
        "type": "number",
        "maximum": 1,
    }
    assert own.keys() <= {*inputs["required"]}
    assert added.breaches({**document, "inputs": {**document["inputs"], "closeness": 2}}) != []
    assert added.run(*PLAY)["inputs"].items() >= {"closeness": 1.0, "accepted": []}.items()


READ_BACK = """
import sys
from socratic_bench.documents.encoding import plain_keys, read
from socratic_bench.documents.run import RunDocument
inputs = plain_keys(read(sys.stdin.buffer.read(), RunDocument, "stdin"))["inputs"]
print(inputs["answers_sha256"], inputs["runner_version"])
"""


def test_documents_with_its_own_settings_are_read_back(added, fresh):
    document = added.run(*PLAY)
    back = subprocess.run(
        [sys.executable, "-c", READ_BACK],
        cwd=added.root,
        env=added.env,
        input=json.dumps(document),
        capture_output=True,
        text=True,
        check=True,
    )

    inputs = document["inputs"]
    assert back.stdout.split() == [inputs["answers_sha256"], inputs["runner_version"]]


def test_a_document_of_another_benchmark_has_none_of_its_settings(added):
    shown = added.play("schema", "run").document

    assert "closeness" not in shown["$defs"]["Inputs"]["properties"]
    assert shown == schema("run")


def test_help_and_tables_tell_whose_flags_they_are(added):
    told, of_recall = (
        added.play("--help", *topic, COLUMNS="200").stdout.decode() for topic in ((), ("recall",))
    )

    assert re.search(r"--benchmark NAME +recall, .*socratic \(default", told)
    assert re.search(r"--closeness S +what counts as right \(default 1\)\n", of_recall)
    assert "--student" not in of_recall
    assert "--closeness" not in told
    rows = (added.root / "docs" / "flags.md").read_text()
    assert "| `--closeness S` | | 1 | what counts as right; 0 to 1 (`recall` alone) |" in rows
