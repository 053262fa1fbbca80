"""Whole runs through `run`, against a service on a local port; nothing inside is replaced."""

import re
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import RunConfig, run
from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.fakes import (
    PATIENCE_S,
    Said,
    Sent,
    answer,
    refusal,
    scored,
    stored,
)
from tests.scripted_run import (
    ASKS,
    CONFIG,
    DENIED,
    GONE,
    GOOD,
    PROSE,
    Ear,
    ending,
    texts,
)


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
            "samples": 1,
            "quorum": 1,
            "rule": None,
            "jurors": [
                {
                    "model": "judge",
                    "judged_turns": 2,
                    "unjudged_reasons": {},
                    "error": None,
                    "retest": None,
                }
            ],
            "judged_turns": 2,
            "unjudged_turns": 1,
            "unjudged_reasons": {"unreadable_verdict": 1},
            "calibration": {
                "status": "uncalibrated",
                "by": None,
                "calibrated_at": None,
                "n_labelled": None,
                "n_dialogues": None,
                "weighted_kappa": None,
                "reasons": ["no calibration was given"],
            },
        }
        kept = stored(out)[f"raw/runs/{result.run_id}/judge_001.json"]
        assert (kept["overall_score"], kept["form"], kept["raw_reply"]) == (
            None,
            None,
            "Well done!",
        )

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
            # Two of them are about the whole dialogue: the script's answer is none to that.
            "judge": (6, 6, 60, 30),
            "total": (11, 11, 110, 55),
        }


def shown(sent: Sent) -> str:
    """The reply that a judge is asked about."""
    return texts(sent)[0].partition("<reply-")[2].partition(">\n")[2].partition("\n</reply-")[0]


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

        notice = "tutor refuses system: the run continues without it."
        assert notice in ear.heard
        assert result.document["notices"] == [notice]


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

        assert len(first) == (12 if student is None else 18)
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
