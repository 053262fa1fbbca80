"""Whole runs through `run`, against a service on a local port; nothing inside is replaced."""

import functools
import importlib
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import CancelToken, Gate, RunConfig, RunResult, UsageError, run
from socratic_bench.benchmarks.socratic.benchmark import BENCHMARK
from socratic_bench.calling.events import CallEvent
from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.errors import ENDINGS
from socratic_bench.ports import Sample
from socratic_bench.storage.delivery import Delivery
from socratic_bench.turns import Turn
from tests.command import in_time
from tests.fakes import (
    KEPT,
    PATIENCE_S,
    FakeBedrock,
    Said,
    Sent,
    answer,
    breaches,
    refusal,
    scored,
    stored,
)

CONFIG = RunConfig(
    model="tutor",
    prompt="I wonder about trains.",
    turns=3,
    judge_model="judge",
    seed=7,
    region="us-east-1",
    max_attempts=1,
)
GONE = refusal(503, "ServiceUnavailableException")
DENIED = refusal(403, "AccessDeniedException")
UNKNOWN = refusal(404, "ResourceNotFoundException")
EXPIRED = refusal(403, "ExpiredTokenException")
INVALID = refusal(400, "ValidationException")
TOO_LONG = refusal(400, "ValidationException", "Input is too long for requested model.")
ASKS = answer("What do you mean by that?")
GOOD = scored(3, 3, 4)
PROSE = answer("Well done!")
LISTENS = answer("Hm.")
CLOSES = answer("That helped. [[end of dialogue]]")


@pytest.fixture
def play(service: FakeBedrock, tmp_path: Path) -> Any:
    """Play a run with these scripts; what it kept is in the folder `out`."""

    def played(
        *,
        tutor: Any = (ASKS,),
        judge: Any = (GOOD,),
        student: Any = (LISTENS,),
        cancel_token: CancelToken | None = None,
        listener: Any = None,
        **config: Any,
    ) -> RunResult:
        service.scripts = {"tutor": tutor, "judge": judge, "student": student}
        whole = replace(CONFIG, output_dir=str(tmp_path / "out"), **config)
        return run(whole, cancel_token=cancel_token, listener=listener)

    return played


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@dataclass(frozen=True)
class Ending:
    end_reason: str
    status: str
    exit_code: int
    n_turns: int
    curated: bool


def ending(result: RunResult, out: Path) -> Ending:
    """How a run ended, after a look at everything that every ending has in common."""
    document = result.document
    kept = stored(out)
    raw = {key for key in kept if key.startswith("raw/")}
    assert breaches("run", document) == []
    for key in raw:
        assert breaches("turn" if "/turn_" in key else "judge", kept[key]) == []
    turns = {
        f"raw/runs/{result.run_id}/turn_{index:03d}.json" for index in range(len(result.turns))
    }
    assert turns <= raw
    assert ENDINGS[result.end_reason].exit_code == result.exit_code or result.shortfalls
    assert (document["error"] is None) is (result.exit_code == 0)
    curated = f"curated/runs/{result.run_id}.json" in kept
    assert (document["output_artifacts"]["curated"] is not None) is curated
    return Ending(result.end_reason, result.status, result.exit_code, document["n_turns"], curated)


COMPLETE = ("completed", 0)
ENDS: dict[str, tuple[dict[str, Any], Ending]] = {
    "all turns": ({}, Ending("max_turns", *COMPLETE, 3, curated=True)),
    "one turn": ({"turns": 1}, Ending("max_turns", *COMPLETE, 1, curated=True)),
    "the student leaves": (
        {"student_model": "student", "student": [answer("Hm."), CLOSES]},
        Ending("student_closed", *COMPLETE, 2, curated=True),
    ),
    "the tutor is filtered": (
        {"tutor": [ASKS, answer("", "content_filtered")]},
        Ending("content_filtered", *COMPLETE, 2, curated=True),
    ),
    "a guardrail steps in": (
        {"tutor": [ASKS, answer("Blocked.", "guardrail_intervened")]},
        Ending("guardrail", *COMPLETE, 2, curated=True),
    ),
    "the window is full": (
        {"tutor": [ASKS, answer("What do", "model_context_window_exceeded")]},
        Ending("context_window", *COMPLETE, 2, curated=True),
    ),
    "the dialogue is too long": (
        {"tutor": [ASKS, TOO_LONG]},
        Ending("context_window", *COMPLETE, 1, curated=True),
    ),
    "the tutor says nothing, twice": (
        {"tutor": [ASKS, answer(" "), answer("\n")]},
        Ending("empty_reply", *COMPLETE, 2, curated=True),
    ),
    "the student is filtered": (
        {"student_model": "student", "student": [answer("", "content_filtered")]},
        Ending("content_filtered", *COMPLETE, 1, curated=True),
    ),
    "the student says nothing, twice": (
        {"student_model": "student", "student": [answer(" ")]},
        Ending("empty_reply", *COMPLETE, 1, curated=True),
    ),
    "the student's dialogue is too long": (
        {"student_model": "student", "student": [TOO_LONG]},
        Ending("context_window", *COMPLETE, 1, curated=True),
    ),
    "the tutor is gone at once": (
        {"tutor": [GONE]},
        Ending("unavailable", "partial", 4, 0, curated=False),
    ),
    "the tutor is gone later": (
        {"tutor": [ASKS, GONE]},
        Ending("unavailable", "partial", 4, 1, curated=False),
    ),
    "the student is gone": (
        {"student_model": "student", "student": [GONE]},
        Ending("unavailable", "partial", 4, 1, curated=False),
    ),
    "the tutor is denied": ({"tutor": [DENIED]}, Ending("access", "failed", 3, 0, curated=False)),
    "the tutor is denied later": (
        {"tutor": [ASKS, DENIED]},
        Ending("access", "partial", 3, 1, curated=False),
    ),
    "the student is denied": (
        {"student_model": "student", "student": [DENIED]},
        Ending("access", "partial", 3, 1, curated=False),
    ),
    "the tutor is unknown": (
        {"tutor": [UNKNOWN]},
        Ending("unknown_model", "failed", 3, 0, curated=False),
    ),
    "the credentials expire": (
        {"tutor": [ASKS, EXPIRED]},
        Ending("credentials", "partial", 3, 1, curated=False),
    ),
    "the request is refused": (
        {"tutor": [INVALID]},
        Ending("refused_request", "failed", 3, 0, curated=False),
    ),
    "the judge is gone": ({"judge": [GONE]}, Ending("unavailable", "partial", 4, 3, curated=False)),
    "the judge is gone later": (
        {"judge": [GOOD, GONE]},
        Ending("unavailable", "partial", 4, 3, curated=False),
    ),
    "no verdict can be read": (
        {"judge": [PROSE]},
        Ending("max_turns", "completed", 5, 3, curated=True),
    ),
    "a gate fails": (
        {"gates": (Gate("overall_score", 10.0), Gate("half_life", 4.0))},
        Ending("max_turns", "completed", 5, 3, curated=True),
    ),
    "a gate is reached": (
        {"gates": (Gate("overall_score", 10.0), Gate("half_life", 3.0))},
        Ending("max_turns", *COMPLETE, 3, curated=True),
    ),
    "without a judge": (
        {"judge_model": None},
        Ending("max_turns", *COMPLETE, 3, curated=True),
    ),
    "a gate without a judge": (
        {"judge_model": None, "gates": (Gate("overall_score", 0.0),)},
        Ending("max_turns", "completed", 5, 3, curated=True),
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_every_way_to_end_has_its_status_code_and_files(play, out, name):
    script, expected = ENDS[name]

    assert ending(play(**script), out) == expected


@pytest.mark.parametrize(
    "judge", [DENIED, UNKNOWN, EXPIRED, INVALID], ids=["denied", "unknown", "expired", "refused"]
)
def test_a_judge_that_will_never_answer_ends_the_run_at_its_first_verdict(
    play, out, service, judge
):
    """The tutor's second reply is not given before the judge has refused."""
    refused = threading.Event()

    def refuse(sent: Sent) -> Said:
        refused.set()
        return judge

    def tutor(sent: Sent) -> Said:
        if len(sent.body["messages"]) > 1:
            assert refused.wait(PATIENCE_S)
            return replace(ASKS, held=threading.Event())
        return ASKS

    found = ending(play(tutor=tutor, judge=refuse, turns=40), out)
    assert (found.status, found.exit_code, found.n_turns, found.curated) == ("partial", 3, 1, False)
    # After expired credentials, new ones are tried once.
    assert len(service.of("judge")) == (2 if judge is EXPIRED else 1)


def test_no_credentials_are_told_without_a_request(play, out, service, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    assert ending(play(), out) == Ending("credentials", "failed", 3, 0, curated=False)
    assert service.sent == []


@pytest.mark.parametrize(
    ("variable", "value", "end_reason"),
    [
        ("AWS_PROFILE", "missing", "credentials"),
        ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "not a url", "refused_request"),
    ],
)
def test_an_sdk_that_is_set_up_wrongly_ends_the_run(
    play, out, monkeypatch, variable, value, end_reason
):
    monkeypatch.setenv(variable, value)

    assert ending(play(), out) == Ending(end_reason, "failed", 3, 0, curated=False)


def test_what_cannot_be_run_is_refused_before_any_call(play, service, out):
    with pytest.raises(UsageError) as refused:
        play(turns=0, region=None)

    assert len(refused.value.problems) == 2
    assert (service.sent, stored(out)) == ([], {})


def test_an_output_folder_that_cannot_be_is_refused_before_any_call(play, service, tmp_path):
    (tmp_path / "out").write_text("a file in its way")

    with pytest.raises(UsageError):
        play()
    assert service.sent == []


class TestTurns:
    def test_the_dialogue_alternates_and_nobody_sees_the_wrong_prompt(self, play, service):
        result = play(
            tutor=[answer(f"Why {n}?") for n in range(3)],
            student_model="student",
            student=[answer(f"So {n}.") for n in range(2)],
        )

        assert [(turn.prompt, turn.reply.message.text) for turn in result.turns] == [
            ("I wonder about trains.", "Why 0?"),
            ("So 0.", "Why 1?"),
            ("So 1.", "Why 2?"),
        ]
        tutors, students = service.of("tutor"), service.of("student")
        assert texts(tutors[2]) == ["I wonder about trains.", "Why 0?", "So 0.", "Why 1?", "So 1."]
        *heard, last = texts(students[1])[1:]
        assert heard == ["I wonder about trains.", "Why 0?", "So 0."]
        assert last.startswith("Why 1?(Unheard by the tutor, where you stand now: ")
        (tutor_system,) = {sent.body["system"][0]["text"] for sent in tutors}
        assert all(tutor_system not in sent.raw.decode() for sent in students)

    def test_no_student_answers_after_the_last_turn(self, play, service):
        play(student_model="student")

        assert len(service.of("student")) == 2

    def test_an_empty_reply_is_asked_for_once_more(self, play, service):
        result = play(tutor=[answer(" "), ASKS], turns=1)

        assert [turn.reply.message.text for turn in result.turns] == ["What do you mean by that?"]
        first, second = service.of("tutor")
        assert first.raw == second.raw
        assert result.document["usage"]["tutor"]["calls"] == 2

    def test_what_the_tutor_did_not_say_is_not_judged(self, play, service):
        result = play(tutor=[ASKS, answer("Blocked.", "guardrail_intervened")])

        assert [entry["unjudged_reason"] for entry in result.document["turns"]] == [
            None,
            "guardrail",
        ]
        assert len(service.of("judge")) == 1
        assert result.metrics["overall_score"] == 10.0

    def test_a_reply_that_was_cut_is_judged_and_marked(self, play):
        result = play(tutor=[answer("What do you", "max_tokens")], turns=1)

        (entry,) = result.document["turns"]
        assert (entry["cut"], entry["stop_reason"], entry["score"]) == (True, "max_tokens", 10.0)

    def test_the_tutor_gets_the_prompt_and_sampling_of_the_configuration(
        self, play, service, tmp_path
    ):
        file = tmp_path / "tutor.md"
        file.write_text("  Be brief.\n")
        play(turns=1, system_prompt_file=str(file), temperature=0.3, max_tokens=55)

        assert service.of("tutor")[0].body == {
            "messages": [{"role": "user", "content": [{"text": "I wonder about trains."}]}],
            "system": [{"text": "Be brief."}],
            "inferenceConfig": {"maxTokens": 55, "temperature": 0.3},
        }

    def test_the_judge_sees_the_reply_and_what_it_answers(self, play, service):
        play(tutor=[answer(f"Why {n}?") for n in range(3)])

        (last,) = [sent for sent in service.of("judge") if "Why 2?" in texts(sent)[0]]
        (code,) = set(re.findall(r"<reply-([0-9a-f]{16})>\nWhy 2\?\n</reply-", texts(last)[0]))
        assert f"<context-{code}>" in texts(last)[0]

    def test_half_characters_do_no_harm(self, play, out):
        broken = (
            b'{"output":{"message":{"content":[{"text":"Why \\ud800?"}]}},"stopReason":"end_turn"}'
        )
        result = play(prompt="Hm \udfff.", tutor=[Said(broken)], turns=2)

        assert ending(result, out).exit_code == 0
        assert result.document["prompt"] == "Hm \ufffd."
        assert result.turns[0].reply.message.text == "Why \ufffd?"


def texts(sent: Sent) -> list[str]:
    """The words of each message, without the cache points between them."""
    return [
        "".join(part["text"] for part in one["content"] if "cachePoint" not in part)
        for one in sent.body["messages"]
    ]


class TestJudging:
    def test_an_unjudged_turn_is_no_zero(self, play, out):
        """Turn 1 gets prose, twice; the others 8 and 6."""
        verdicts = {"Why 0?": scored(3, 3, 2), "Why 2?": scored(2, 2, 2)}

        def judge(sent: Sent) -> Said:
            return next((said for text, said in verdicts.items() if shown(sent) == text), PROSE)

        result = play(tutor=[answer(f"Why {n}?") for n in range(3)], judge=judge)
        document = result.document
        assert ending(result, out).exit_code == 0
        assert [entry["score"] for entry in document["turns"]] == [8.0, None, 6.0]
        assert [entry["unjudged_reason"] for entry in document["turns"]] == [
            None,
            "unreadable_verdict",
            None,
        ]
        assert document["metrics"]["overall_score"] == 7.0
        assert document["metrics"]["half_life"] == 2
        assert document["judge"] == {
            "model": "judge",
            "coverage": 0.6667,
            "rubric_sha256": document["judge"]["rubric_sha256"],
            "rubric": "socratic-disposition-2",
            "temperature": 0.0,
            "unquoted": 6,  # three scores in each of two verdicts, which quote nothing
            "jurors": [{"model": "judge", "judged_turns": 2}],
            "judged_turns": 2,
            "unjudged_turns": 1,
            "unjudged_reasons": {"unreadable_verdict": 1},
        }
        kept = stored(out)[f"raw/runs/{result.run_id}/judge_001.json"]
        assert (kept["overall_score"], kept["form"], kept["raw_reply"]) == (
            None,
            None,
            "Well done!",
        )

    def test_two_unjudged_turns_of_three_fail_the_coverage(self, play, out):
        result = play(judge=[GOOD, PROSE])

        assert ending(result, out) == Ending("max_turns", "completed", 5, 3, curated=True)
        assert result.document["error"]["code"] == "gate"
        assert "0.3333" in result.document["error"]["message"]

    def test_the_coverage_can_be_asked_for_less(self, play, out):
        result = play(judge=[GOOD, PROSE], min_judge_coverage=0.3)

        assert ending(result, out).exit_code == 0

    def test_the_judge_works_beside_the_dialogue(self, play, service):
        """The first verdict is not given before the tutor was asked for the last reply."""
        last_asked = threading.Event()

        def tutor(sent: Sent) -> Said:
            if len(sent.body["messages"]) == 5:
                last_asked.set()
            return ASKS

        def judge(sent: Sent) -> Said:
            return GOOD if last_asked.wait(PATIENCE_S) else DENIED

        result = play(tutor=tutor, judge=judge)
        assert (result.end_reason, result.n_judged) == ("max_turns", 3)

    def test_a_judge_that_is_gone_leaves_the_dialogue_alone(self, play, service, out):
        result = play(judge=[GOOD, GONE], turns=6)
        reasons = [entry["unjudged_reason"] for entry in result.document["turns"]]

        assert Counter(reasons) == {None: 1, "unavailable": 5}
        assert result.document["error"]["code"] == "judge_unavailable"
        assert len(service.of("tutor")) == 6

    def test_a_tutor_that_is_gone_still_gets_its_verdicts(self, play, out):
        result = play(tutor=[ASKS, ASKS, GONE])

        assert (ending(result, out).n_turns, result.n_judged) == (2, 2)

    def test_judges_are_asked_with_the_seeds_delimiters(self, play, service):
        play()
        first = sorted(sent.raw for sent in service.of("judge"))
        service.reset()
        play(seed=8)

        assert first != sorted(sent.raw for sent in service.of("judge"))

    def test_every_call_and_request_is_counted(self, play):
        result = play(judge=[PROSE, GOOD, GOOD, GOOD], student_model="student", max_attempts=1)

        assert {
            role: (entry["calls"], entry["attempts"], entry["input_tokens"], entry["output_tokens"])
            for role, entry in result.document["usage"].items()
        } == {
            "tutor": (3, 3, 30, 15),
            "student": (2, 2, 20, 10),
            "judge": (4, 4, 40, 20),
            "total": (9, 9, 90, 45),
        }

    def test_failed_requests_are_counted_too(self, play):
        result = play(tutor=[ASKS, GONE])

        usage = result.document["usage"]["tutor"]
        assert (usage["calls"], usage["attempts"]) == (1, 2)


def shown(sent: Sent) -> str:
    """The reply that a judge is asked about."""
    return texts(sent)[0].partition("<reply-")[2].partition(">\n")[2].partition("\n</reply-")[0]


@dataclass
class Ear:
    """A listener that keeps what it hears and can act on it."""

    heard: list[str] = field(default_factory=list)
    after_turn: dict[int, Any] = field(default_factory=dict)

    def on_start(self, run_id: str, config: RunConfig, opening: Sample) -> None:
        self.heard.append(f"start {opening.id}")

    def on_call(self, event: CallEvent) -> None: ...

    def on_wait(self, what: str) -> None: ...

    def on_turn(self, turn: Turn) -> None:
        self.heard.append(f"turn {turn.index}")
        self.after_turn.get(turn.index, lambda: None)()

    def on_judged(self, turn: Turn) -> None:
        self.heard.append(f"judged {turn.index}")

    def on_notice(self, text: str) -> None:
        self.heard.append(text)

    def on_end(self) -> None:
        self.heard.append("end")


class TestEndingEarly:
    def test_an_interrupt_returns_at_once_from_a_call_that_hangs(self, play, out, service):
        cancel_token, asked = CancelToken(), threading.Event()

        def tutor(sent: Sent) -> Said:
            if len(sent.body["messages"]) < 4:
                return ASKS
            asked.set()
            return replace(ASKS, held=threading.Event())

        with ThreadPoolExecutor(1) as pool:
            playing = pool.submit(play, tutor=tutor, cancel_token=cancel_token)
            assert asked.wait(PATIENCE_S)
            cancel_token.interrupt(2)
            result = playing.result(PATIENCE_S)

        assert ending(result, out) == Ending("interrupted", "partial", 130, 2, curated=False)
        assert [turn.index for turn in result.turns] == [0, 1]

    def test_sigterm_has_its_own_code(self, play, out):
        cancel_token = CancelToken()
        cancel_token.interrupt(15)
        result = play(cancel_token=cancel_token)

        assert (result.exit_code, result.status, result.turns) == (143, "partial", ())

    def test_an_interrupt_does_not_wait_for_the_judge(self, play, out):
        cancel_token, asked = CancelToken(), threading.Event()

        def judge(sent: Sent) -> Said:
            asked.set()
            return replace(GOOD, held=threading.Event())

        with ThreadPoolExecutor(1) as pool:
            playing = pool.submit(play, judge=judge, cancel_token=cancel_token, turns=1)
            assert asked.wait(PATIENCE_S)
            cancel_token.interrupt(2)
            result = playing.result(PATIENCE_S)

        assert (result.exit_code, len(result.turns)) == (130, 1)
        assert result.document["turns"][0]["unjudged_reason"] == "run_ended"

    def test_an_interrupt_ends_the_wait_between_two_attempts(self, play, out, service):
        """The service asks for two minutes."""
        cancel_token = CancelToken()
        slow = refusal(429, "ThrottlingException", x_amz_retry_after="119000")

        def tutor(sent: Sent) -> Said:
            threading.Timer(0.05, cancel_token.interrupt, [2]).start()
            return slow

        with ThreadPoolExecutor(1) as pool:
            playing = pool.submit(play, tutor=tutor, cancel_token=cancel_token, max_attempts=5)
            result = playing.result(PATIENCE_S)

        assert (result.exit_code, len(service.of("tutor"))) == (130, 1)

    def test_only_the_first_order_to_end_counts(self, play):
        cancel_token = CancelToken()
        cancel_token.interrupt(2)
        cancel_token.interrupt(15)

        assert play(cancel_token=cancel_token).exit_code == 130

    def test_a_deadline_ends_a_call_that_hangs(self, play, out):
        hanging = replace(ASKS, held=threading.Event())
        result = in_time(
            lambda s: play(tutor=[ASKS, hanging], deadline_s=s),
            lambda result: bool(result.turns),
            first_s=1.0,
        )

        assert ending(result, out) == Ending("deadline", "partial", 6, 1, curated=False)
        assert result.document["error"]["retryable"] is True

    def test_a_deadline_that_passed_before_the_first_turn_is_partial_too(self, play, out):
        result = play(deadline_s=0.001)

        assert ending(result, out) == Ending("deadline", "partial", 6, 0, curated=False)

    def test_a_run_can_be_played_beside_the_main_thread(self, play):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(play).result(PATIENCE_S).exit_code == 0

    def test_two_runs_at_once_keep_to_themselves(self, service):
        service.scripts = {"tutor": [ASKS], "judge": [GOOD]}
        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(run, [CONFIG, replace(CONFIG, turns=5, seed=9)])

        assert (len(one.turns), len(other.turns)) == (3, 5)
        assert one.run_id != other.run_id


class TestListener:
    def test_it_hears_of_turns_and_verdicts(self, play):
        ear = Ear()
        play(listener=ear, turns=2)

        assert ear.heard[0] == "start custom"
        assert sorted(ear.heard[1:-1]) == ["judged 0", "judged 1", "turn 0", "turn 1"]
        assert ear.heard[-1] == "end"

    def test_it_hears_of_turns_that_nobody_judges(self, play):
        ear = Ear()
        play(listener=ear, turns=1, judge_model=None)

        assert ear.heard == ["start custom", "turn 0", "judged 0", "end"]

    def test_notices_are_heard_and_printed(self, play):
        ear = Ear()
        refused = refusal(400, "ValidationException", "It doesn't support system messages.")
        result = play(listener=ear, tutor=[refused, ASKS], turns=1)

        notice = "tutor refuses system: the run goes on without it."
        assert notice in ear.heard
        assert result.document["notices"] == [notice]


class TestArtifacts:
    def test_everything_is_kept_in_the_documented_places(self, play, out):
        result = play()
        raw = f"raw/runs/{result.run_id}"

        kept = stored(out)
        assert set(kept) == {
            *(f"{raw}/turn_{n:03d}.json" for n in range(3)),
            *(f"{raw}/judge_{n:03d}.json" for n in range(3)),
            f"curated/runs/{result.run_id}.json",
        }
        assert result.document["output_artifacts"] == {
            "raw": f"{out}/{raw}/",
            "curated": f"{out}/curated/runs/{result.run_id}.json",
        }
        assert result.document["s3_artifacts"] is None
        assert re.fullmatch(r"run-[0-9A-HJKMNP-TV-Z]{26}", result.run_id)

    def test_the_curated_file_is_the_runs_document(self, play, out):
        result = play()
        curated = stored(out)[f"curated/runs/{result.run_id}.json"]

        assert breaches("curated", curated) == []
        assert {**curated, "kind": "run"} == json.loads(json.dumps(result.document))

    def test_a_bucket_gets_the_same_tree(self, play, out, moto_url, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)
        import boto3

        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="run-bucket")
        result = play(s3_bucket="run-bucket", s3_prefix="p")
        kept = {
            entry["Key"]: json.loads(
                client.get_object(Bucket="run-bucket", Key=entry["Key"])["Body"].read()
            )
            for entry in client.list_objects_v2(Bucket="run-bucket")["Contents"]
            if "/journal/" not in entry["Key"]
        }
        client.close()

        in_folder = stored(out)
        assert {f"p/{key}": value for key, value in in_folder.items()} == kept
        assert result.document["s3_artifacts"] == {
            "raw": f"s3://run-bucket/p/raw/runs/{result.run_id}/",
            "curated": f"s3://run-bucket/p/curated/runs/{result.run_id}.json",
        }

    def test_a_missing_bucket_is_refused_before_any_call(
        self, play, service, moto_url, monkeypatch
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto_url)

        with pytest.raises(UsageError) as refused:
            play(s3_bucket="no-such-bucket")
        assert refused.value.problems == ("No such bucket: no-such-bucket (RUNNER_S3_BUCKET).",)
        assert service.sent == []

    @pytest.mark.parametrize("broken", ["raw", "curated"])
    def test_a_store_that_fails_leaves_no_curated_file(
        self, play, out, service, monkeypatch, broken
    ):
        """The server takes everything but what goes under one half of the tree."""

        def s3(sent: Sent) -> Said:
            is_taken = sent.method == "PUT" and f"/{broken}/" not in sent.path
            return KEPT if is_taken else Said(b"", 403)

        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        with FakeBedrock({"": s3}) as bucket:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.url)
            result = play(s3_bucket="bucket")

        document = result.document
        assert (result.end_reason, result.status, result.exit_code) == ("artifacts", "partial", 4)
        assert (document["n_turns"], document["metrics"]["overall_score"]) == (3, 10.0)
        assert document["s3_artifacts"]["curated"] is None
        assert document["error"]["code"] == "artifacts"
        assert f"/{broken}/" in document["error"]["message"]
        taken = [sent.path for sent in bucket.sent if "/curated/" in sent.path]
        assert len(taken) == (0 if broken == "raw" else 2)
        assert [key for key in stored(out) if key.startswith("curated/")] == []

    def test_what_ended_the_run_is_told_before_what_was_lost(self, play, monkeypatch):
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        with FakeBedrock({"": [Said(b"", 403)]}) as bucket:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.url)
            result = play(s3_bucket="bucket", tutor=[ASKS, DENIED])

        assert (result.end_reason, result.exit_code) == ("access", 3)
        assert len(result.document["notices"]) == 1
        assert "artifacts are missing" in result.document["notices"][0]


@dataclass(frozen=True)
class BrokenEpisode:
    """Publishes what the Socratic benchmark does, then trips."""

    inner: Any
    error: Exception
    rubric = None

    @property
    def opening(self) -> Sample:
        return self.inner.opening

    def play(self, context: Any) -> Any:
        self.inner.play(context)
        raise self.error

    def measured(self, turns: Sequence[Turn], index: int) -> Turn:
        return self.inner.measured(turns, index)

    def judge_input(self, turns: Sequence[Turn], index: int) -> Any:
        return self.inner.judge_input(turns, index)

    def expected_reply(self, role: Any, length: Any) -> str:
        return self.inner.expected_reply(role, length)


@dataclass(frozen=True)
class WrappedBenchmark:
    """The Socratic benchmark, with its episode in a wrapper."""

    wrap: Any
    name: str = "wrapped"
    metrics: Any = BENCHMARK.metrics
    primary_metric: str = BENCHMARK.primary_metric
    late_modules: Any = ()
    parts: Any = BENCHMARK.parts

    def prepare(self, config: RunConfig) -> Any:
        return self.wrap(BENCHMARK.prepare(config))

    def summarise(self, config: RunConfig, turns: Sequence[Turn]) -> Any:
        return BENCHMARK.summarise(config, turns)

    def closing_metrics(self, findings: Sequence[Any]) -> Any:
        return BENCHMARK.closing_metrics(findings)


def test_a_defect_is_reported_with_the_turns_before_it(service, tmp_path):
    service.scripts = {"tutor": [ASKS]}
    config = replace(CONFIG, output_dir=str(tmp_path / "out"))
    defect = KeyError("sk-secret-text")
    result = run(config, benchmark=WrappedBenchmark(lambda inner: BrokenEpisode(inner, defect)))

    found = ending(result, tmp_path / "out")
    assert found == Ending("internal", "partial", 1, 3, curated=False)
    assert result.document["error"]["code"] == "internal"
    assert "KeyError" in result.document["error"]["message"]
    assert "secret" not in result.document["error"]["message"]


@dataclass(frozen=True)
class MeasuringEpisode:
    """The Socratic episode, but for `measure`, which is called before a turn is measured."""

    inner: Any
    measure: Any

    def measured(self, turns: Sequence[Turn], index: int) -> Turn:
        self.measure(index)
        return self.inner.measured(turns, index)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def measuring(measure: Any) -> WrappedBenchmark:
    return WrappedBenchmark(lambda inner: MeasuringEpisode(inner, measure))


class TestMeasuring:
    def test_a_turn_is_measured_while_the_next_answer_is_waited_for(self, service):
        """Neither could go on if one had to wait for the other."""
        is_asked, is_measured = threading.Event(), threading.Event()

        def tutor(sent: Sent) -> Said:
            if len(texts(sent)) > 1:
                is_asked.set()
                assert is_measured.wait(PATIENCE_S)
            return ASKS

        def measure(index: int) -> None:
            if index == 0:
                assert is_asked.wait(PATIENCE_S)
                is_measured.set()

        service.scripts = {"tutor": tutor, "judge": [GOOD]}
        result = run(replace(CONFIG, turns=2), benchmark=measuring(measure))

        assert (result.status, len(result.turns)) == ("completed", 2)
        assert all(turn.measures["has_question"] for turn in result.turns)

    def test_a_turn_that_was_just_played_when_the_run_is_ended_is_measured_and_kept(
        self, play, out
    ):
        cancel_token = CancelToken()

        class Hasty(Ear):
            def on_call(self, event: CallEvent) -> None:
                if (event.key.role, event.key.index) == ("tutor", 1):
                    cancel_token.interrupt(2)

        result = play(cancel_token=cancel_token, listener=Hasty())

        assert ending(result, out) == Ending("interrupted", "partial", 130, 1, curated=False)
        (entry,) = result.document["turns"]
        kept = stored(out)[f"raw/runs/{result.run_id}/turn_000.json"]
        assert entry["heuristics"]["has_question"] is True
        assert kept["heuristics"] == entry["heuristics"]

    @pytest.mark.parametrize("broken", [0, 1, 2])
    def test_a_defect_in_measuring_takes_no_turn_away(self, service, broken):
        """The third turn is the last one: its defect is met when the run is summed up."""
        is_broken = threading.Event()

        def tutor(sent: Sent) -> Said:
            # Three turns are played before the defect can end the run.
            if len(texts(sent)) > 5:
                assert is_broken.wait(PATIENCE_S)
            return ASKS

        def measure(index: int) -> None:
            if index == broken:
                is_broken.set()
                raise KeyError("defect")

        turns = 3 if broken == 2 else 40
        service.scripts = {"tutor": tutor, "judge": [GOOD]}
        result = run(replace(CONFIG, turns=turns), benchmark=measuring(measure))

        assert (result.end_reason, result.exit_code) == ("internal", 1)
        measured = [bool(entry["heuristics"]) for entry in result.document["turns"]]
        assert len(measured) >= broken + 1
        assert [index for index, is_measured in enumerate(measured) if not is_measured] == [broken]
        assert len(service.sent) < 40
        assert breaches("run", result.document) == []


class TestSeed:
    """Same seed, configuration and replies: the same bytes go out, whatever the order."""

    CONFIG = replace(
        CONFIG,
        model="emulator.drift-2-v1:0",
        judge_model="emulator.judge-v1:0",
        student_model=None,
        turns=6,
    )

    def bodies(self, monkeypatch: Any, config: RunConfig, *faults: str) -> list[tuple[Any, ...]]:
        ordered = tuple(parse_fault(fault) for fault in faults)
        with Emulator(Settings(keep_bodies=True, faults=ordered)) as emulator:
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", emulator.url)
            result = run(config)
            assert result.exit_code == 0
            return sorted(
                (record.model_id, record.role, record.body) for record in emulator.requests
            )

    @pytest.mark.parametrize("student", [None, "emulator.student-v1:0"])
    def test_the_same_seed_sends_the_same_bytes(self, monkeypatch, keys, student):
        config = replace(self.CONFIG, student_model=student)
        first = self.bodies(monkeypatch, config)

        assert len(first) == (12 if student is None else 17)
        assert self.bodies(monkeypatch, config) == first

    def test_even_where_a_verdict_has_to_be_mended(self, monkeypatch, keys):
        fault = "prose_verdict:role=judge:count=1"
        one = replace(self.CONFIG, turns=1)
        first = self.bodies(monkeypatch, one, fault)

        assert len(first) == 3
        assert self.bodies(monkeypatch, one, fault) == first

    def test_another_seed_sends_others(self, monkeypatch, keys):
        first = self.bodies(monkeypatch, self.CONFIG)

        assert self.bodies(monkeypatch, replace(self.CONFIG, seed=8)) != first


class TestWithTheEmulator:
    """The known truth of the emulator's models comes out of the whole pipeline."""

    @pytest.fixture
    def emulator(self, monkeypatch: pytest.MonkeyPatch, keys: None) -> Iterator[Emulator]:
        with Emulator(Settings()) as emulator:
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", emulator.url)
            yield emulator

    @pytest.mark.parametrize("drift", [0, 3])
    def test_a_drift_is_found_where_it_is(self, emulator, drift):
        result = run(
            replace(
                CONFIG,
                model=f"emulator.drift-{drift}-v1:0",
                judge_model="emulator.judge-v1:0",
                turns=6,
            )
        )

        assert (result.metrics["half_life"], result.metrics["half_life_censored"]) == (drift, False)

    def test_tutor_student_and_judge_share_one_client(self, emulator):
        """The tutor and the student take turns on one connection."""
        run(
            replace(
                CONFIG,
                model="emulator.socratic-v1:0",
                student_model="emulator.student-v1:0",
                judge_model=None,
                turns=4,
            )
        )

        assert len(emulator.requests) == 7
        assert {record.connection for record in emulator.requests} == {1}

    @pytest.mark.parametrize(
        "kind", ["out_of_range", "off_step", "missing_dimension", "string_score", "nan_score"]
    )
    def test_no_odd_verdict_becomes_a_score(self, monkeypatch, keys, kind):
        fault = parse_fault(f"{kind}:role=judge")
        with Emulator(Settings(faults=(fault,), keep_bodies=True)) as emulator:
            monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", emulator.url)
            result = run(
                replace(
                    CONFIG,
                    model="emulator.socratic-v1:0",
                    judge_model="emulator.judge-v1:0",
                    turns=1,
                )
            )
            sent = [record.body or b"" for record in emulator.requests if record.role == "judge"]

        (entry,) = result.document["turns"]
        assert (entry["score"], result.exit_code) == (None, 5)
        assert entry["unjudged_reason"] in ("invalid_verdict", "unreadable_verdict")
        assert len(sent) == 2
        assert all(b"NaN" not in body for body in sent)


def test_offline_plays_without_an_account_and_leaves_the_users_alone(monkeypatch, service):
    """Keys, a role, a proxy and an endpoint of the user's are set; none of them is used."""
    monkeypatch.setenv("HTTP_PROXY", service.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", service.url)
    monkeypatch.setenv("AWS_PROFILE", "missing")
    config = RunConfig(
        model="emulator.socratic-v1:0",
        prompt="I wonder about trains.",
        judge_model="emulator.judge-v1:0",
        turns=2,
        seed=7,
        region="us-east-1",
        assume_role_arn="arn:aws:iam::123456789012:role/R",
        offline=True,
    )
    result = run(config)

    assert (result.exit_code, len(result.turns), result.n_judged) == (0, 2, 2)
    assert service.sent == []


class TestMemory:
    """A bucket that takes nothing; memory for the journal of 20 turns but not their files."""

    @pytest.fixture(autouse=True)
    def out_of_order(self, service, monkeypatch):
        service.scripts = {"tutor": [ASKS], "judge": [GOOD]}
        module = importlib.import_module("socratic_bench.runner.stores")
        monkeypatch.setattr(module, "Delivery", functools.partial(Delivery, memory_bytes=72_000))
        with FakeBedrock({"": [Said(b"", 503)]}) as bucket:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.url)
            yield

    CONFIG = replace(CONFIG, turns=20, max_attempts=1, s3_bucket="bucket")

    def test_without_a_folder_the_run_ends_when_it_is_full(self):
        result = run(self.CONFIG)

        assert (result.end_reason, result.exit_code) == ("artifacts", 4)
        assert "wait for s3://bucket/" in result.document["error"]["message"]
        assert 0 < result.document["n_turns"] < 20

    def test_with_a_folder_the_files_wait_there_and_the_dialogue_goes_on(self, tmp_path):
        result = run(replace(self.CONFIG, output_dir=str(tmp_path)))

        assert (result.end_reason, result.document["n_turns"]) == ("artifacts", 20)
        assert "artifacts are missing" in result.document["error"]["message"]
        assert len([key for key in stored(tmp_path) if key.startswith("raw/")]) == 40
