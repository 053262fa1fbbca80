import json
from collections.abc import Iterator
from datetime import timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from socratic_bench import Gate, RunConfig
from socratic_bench.benchmarks.socratic.document import PARTS
from socratic_bench.benchmarks.socratic.metrics import summarise
from socratic_bench.documents import encode
from socratic_bench.documents.document import Place, utc
from socratic_bench.documents.encoding import plain, plain_keys
from socratic_bench.documents.files import JudgeFile, TurnFile
from socratic_bench.documents.run import CuratedDocument, RunDocument, RunResult
from socratic_bench.documents.usage import (
    ActorLatency,
    ActorUsage,
    Percentiles,
    RoleUsage,
    sum_usage,
)
from socratic_bench.errors import ENDINGS, ModelError, Stopped, UsageError
from socratic_bench.ports.benchmark import Sample
from socratic_bench.turns import Turn
from socratic_bench.types import Completion, Reasoning, Text, Usage
from tests.fakes import (
    DIMENSIONS,
    NOON,
    RUBRIC,
    UNJUDGED,
    attempt,
    breaches,
    completion,
    turn,
    verdict,
)
from tests.schemas import KINDS, schema

CONFIG = RunConfig(
    model="m",
    prompt="Hello.",
    judge_model="judge",
    seed=7,
    region="us-east-1",
    gates=(Gate("overall_score", 5.0),),
)
USAGE = Usage(input_tokens=10, output_tokens=5, cache_read_tokens=4, cache_write_tokens=2)
RUN_ID = "run-01H7X8K2P9Q4R6S7T8V9W0X1Y2"
EMPTY = {"input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0}


def called(text: str = "Why?", **more: Any) -> Completion:
    return completion(text, usage=USAGE, **more)


TURNS = (
    turn(0, verdict(3, 3, 2.5), reply=called(), calls=[called()]),
    turn(1, UNJUDGED, reply=called(), student=called("Hm."), calls=[called(), called()]),
    turn(2, reply=called(), student=called("So.")),
)


SAMPLE = Sample(id="custom", prompt="Hello.", hashes={"a_sha256": "0" * 64})


def result(turns: tuple[Turn, ...] = TURNS, **values: Any) -> RunResult:
    fields: dict[str, Any] = {
        "run_id": RUN_ID,
        "benchmark": "socratic",
        "config": CONFIG,
        "opening": SAMPLE,
        "rubric": RUBRIC,
        "turns": turns,
        "end_reason": "max_turns",
        "closing": None,
        "error": None,
        "metrics": summarise(CONFIG, turns),
        "parts": PARTS,
        "shortfalls": (),
        "tallies": {
            "tutor": RoleUsage(completions=tuple(one.reply for one in turns)),
            "student": RoleUsage(completions=tuple(one.student for one in turns if one.student)),
            "judge": RoleUsage(),
        },
        "s3": None,
        "folder": None,
        "notices": (),
        "started_at": NOON,
        "completed_at": NOON + timedelta(seconds=12),
        "duration_s": 12.3456,
        "sdk_version": "botocore 1.0",
    }
    return RunResult(**{**fields, **values})


KEYS = """
kind schema_version run_id status benchmark model scenario prompt n_turns overall_score
compliance_rate half_life metrics turns s3_artifacts timestamps usage cost latency judge student
end_reason seed error
"""


class TestRunDocument:
    def test_it_fits_its_schema_and_has_every_key(self):
        document = result().document

        assert breaches("run", document) == []
        assert set(KEYS.split()) <= set(document)
        assert document["timestamps"] == {
            "started_at": "2026-11-20T12:00:00Z",
            "completed_at": "2026-11-20T12:00:12Z",
            "duration_seconds": 12.346,
        }
        assert (document["overall_score"], document["metrics"]["overall_score"]) == (8.5, 8.5)

    @pytest.mark.parametrize("end_reason", [name for name in ENDINGS if name != "usage"])
    @pytest.mark.parametrize("turns", [(), TURNS], ids=["no turns", "turns"])
    def test_every_ending_fits_the_schema(self, end_reason, turns):
        error = ModelError("No.", code="code", end_reason=end_reason)
        whole = result(turns, end_reason=end_reason, error=error)

        assert breaches("run", whole.document) == []
        expected = ENDINGS[end_reason].status
        assert whole.status == ("partial" if expected == "failed" and turns else expected)
        assert breaches("brief", whole.brief) == []

    def test_each_turn_has_its_scores_or_the_reason_why_not(self):
        entries = result().document["turns"]

        assert [
            (e["turn"], e["score"], e["form"], e["substance"], e["purity"], e["unjudged_reason"])
            for e in entries
        ] == [
            (0, 8.5, 3, 3, 2.5, None),
            (1, None, None, None, None, "unreadable_verdict"),
            (2, None, None, None, None, "run_ended"),
        ]

    def test_without_a_judge_there_is_no_reason_to_give(self):
        whole = result((turn(0),), config=replace(CONFIG, judge_model=None))

        assert breaches("run", whole.document) == []
        assert whole.document["turns"][0]["unjudged_reason"] is None
        assert whole.document["judge"] is None

    def test_a_turn_counts_both_calls_of_a_mended_verdict(self):
        usage = result().document["turns"][1]["usage"]

        assert usage["judge"]["input_tokens"] == 20
        assert usage["student"]["input_tokens"] == 10

    def test_a_missed_gate_is_the_error_of_a_complete_run(self):
        whole = result(shortfalls=("overall_score is 4, but must be at least 5.", "Another."))

        assert whole.exit_code == 5
        assert whole.document["error"] == {
            "code": "gate",
            "message": "overall_score is 4, but must be at least 5. Another.",
            "hint": "The run itself is complete; its scores fall short of what was asked for.",
            "retryable": False,
        }

    @pytest.mark.parametrize(("number", "code"), [(2, 130), (15, 143)])
    def test_a_signal_sets_the_exit_code(self, number, code):
        stopped = Stopped("Stopped.", end_reason="interrupted", signal_number=number)

        assert result(end_reason="interrupted", error=stopped).exit_code == code

    def test_places_say_where_the_artifacts_are(self):
        whole = result(s3=Place("s3://b/raw/", "s3://b/c.json"), folder=Place("/o/raw/", None))

        assert whole.document["s3_artifacts"] == {"raw": "s3://b/raw/", "curated": "s3://b/c.json"}
        assert whole.document["output_artifacts"] == {"raw": "/o/raw/", "curated": None}

    def test_the_short_form_has_the_documented_keys_only(self):
        assert list(result().brief) == [
            "run_id",
            "model",
            "scenario",
            "n_turns",
            "overall_score",
            "compliance_rate",
            "half_life",
            "s3_artifacts",
        ]

    def test_a_command_that_was_refused_has_the_same_keys(self):
        error = UsageError(["No."])
        document = RunDocument.unstarted(error, "socratic", PARTS, replace(CONFIG, prompt="x"))
        refused = document.printed

        assert breaches("run", refused) == []
        assert breaches("brief", document.brief) == []
        assert set(refused) == set(result().document)
        assert (refused["run_id"], refused["turns"], refused["error"]["code"]) == (
            None,
            [],
            "usage",
        )

    def test_it_can_be_written_and_read_again(self):
        document = result().document

        assert json.loads(encode(document)) == document


def turn_file(one: Turn) -> dict[str, Any]:
    return plain_keys(TurnFile.of(one, run_id=RUN_ID, sample=SAMPLE, parts=PARTS))


class TestFiles:
    def test_a_turn_has_the_documented_keys_first(self):
        thinking = completion([Reasoning("Hm."), Text("Why?")], usage=USAGE)
        document = turn_file(turn(4, reply=thinking, student=called("So.")))

        assert breaches("turn", document) == []
        assert list(document)[:7] == [
            "run_id",
            "turn",
            "student_prompt",
            "ai_response",
            "tokens",
            "latency_ms",
            "timestamp",
        ]
        assert (document["ai_response"], document["reasoning"]) == ("Why?", "Hm.")
        assert document["tokens"] == {"input": 10, "output": 5}

    def test_unknown_tokens_are_null(self):
        document = turn_file(turn(0))

        assert breaches("turn", document) == []
        assert document["tokens"] == {"input": None, "output": None}

    def judged(self, one: Turn) -> dict[str, Any]:
        return plain_keys(
            JudgeFile.of(one, run_id=RUN_ID, judge_model="judge", rubric=RUBRIC, parts=PARTS)
        )

    def test_a_verdict_has_the_documented_keys_first(self):
        document = self.judged(TURNS[0])

        assert breaches("judge", document) == []
        assert list(document)[:9] == [
            "run_id",
            "turn",
            "overall_score",
            "form",
            "substance",
            "purity",
            "heuristics",
            "rationale",
            "judge_model",
        ]
        assert (document["overall_score"], document["unjudged_reason"]) == (8.5, None)

    def test_an_unjudged_turn_has_a_file_too(self):
        document = self.judged(TURNS[1])

        assert breaches("judge", document) == []
        assert [document[name] for name in ("overall_score", *DIMENSIONS)] == [None] * 4
        assert (document["unjudged_reason"], document["raw_reply"], len(document["calls"])) == (
            "unreadable_verdict",
            "Well done!",
            2,
        )

    def test_a_turn_that_nobody_was_asked_about_has_one_as_well(self):
        document = self.judged(replace(turn(0), unscorable=UNJUDGED))

        assert breaches("judge", document) == []
        assert (document["calls"], document["usage"]) == ([], None)

    def test_the_curated_file_begins_as_documented(self):
        document = CuratedDocument.of(result()).printed

        assert breaches("curated", document) == []
        assert list(document)[:8] == [
            "run_id",
            "model",
            "scenario",
            "n_turns",
            "overall_score",
            "compliance_rate",
            "half_life",
            "timestamps",
        ]
        assert document["kind"] == "curated"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_schema_that_refuses_something(kind):
    assert schema(kind)["title"]
    assert breaches(kind, {}) != []


def described(node: object, name: str = "") -> Iterator[tuple[str, Any]]:
    """Each property of a schema by its name, however deep it stands."""
    if isinstance(node, list):
        for one in node:
            yield from described(one, name)
    elif isinstance(node, dict):
        for key, below in node.get("properties", {}).items():
            yield key, below
            yield from described(below, key)
        for key, below in node.items():
            if key != "properties":
                yield from described(below, name)


@pytest.mark.parametrize("kind", KINDS)
def test_each_property_of_a_schema_says_what_it_means(kind):
    properties = [
        (name, node)
        for part in (schema(kind), *schema(kind).get("$defs", {}).values())
        for name, node in described(part)
    ]

    assert properties
    assert [name for name, node in properties if not node.get("description")] == []


class TestEncode:
    @pytest.mark.parametrize(
        ("value", "body"),
        [
            ({"a": [1, 2.5, None, True, "é"]}, '{"a":[1,2.5,null,true,"é"]}'),
            ("a\ud800b", '"a\ufffdb"'),
            ({"\udfff": "\ud83d\ude00"}, '{"\ufffd":"😀"}'),
            ("\0\x1f\x7f\u2028", '"\\u0000\\u001f\x7f\u2028"'),
            (2**63 - 1, "9223372036854775807"),
            (-(2**63) + 1, "-9223372036854775807"),
            ([], "[]"),
            (6.2, "6.2"),
            (0.1 + 0.2, "0.30000000000000004"),
        ],
        ids=repr,
    )
    def test_what_json_can_carry_is_written_compactly(self, value, body):
        assert encode(value) == body.encode()

    @pytest.mark.parametrize(
        "value",
        [float("nan"), float("inf"), -float("inf"), 2**63, -(2**64), 10**400],
        ids=str,
    )
    def test_a_number_that_json_cannot_carry_is_a_defect_and_no_null(self, value):
        for wrapped in (value, [value], {"a": {"b": value}}):
            with pytest.raises(ValueError):
                encode(wrapped)

    @pytest.mark.parametrize(
        "value",
        # As a number without an end, or without a value, begins where it is looked for.
        [0xCB7FF000, 0xCBFFF8, "\u02ff\u02fff\u00f0", int("0xcb7ff8cb7ff8", 16)],
        ids=ascii,
    )
    def test_what_only_looks_like_such_a_number_is_written(self, value):
        assert json.loads(encode({"nothing": None, "value": value})) == {
            "nothing": None,
            "value": value,
        }

    def test_a_text_of_another_class_is_a_text(self):
        class Word(str):
            __slots__ = ()

        assert encode({"a": None, "b": Word("c")}) == b'{"a":null,"b":"c"}'

    def test_json_that_was_written_before_stands_as_it_is(self):
        written = orjson.Fragment(b'{"c":null}')

        assert encode({"a": written, "b": 1.5}) == b'{"a":{"c":null},"b":1.5}'
        with pytest.raises(ValueError):
            encode({"a": written, "b": float("nan")})

    def test_pretty_is_indented(self):
        assert encode({"a": [1]}, pretty=True) == b'{\n  "a": [\n    1\n  ]\n}'

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**62), 2**62)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(max_size=8),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
            max_leaves=10,
        )
    )
    def test_it_reads_back_the_same(self, value):
        assert json.loads(encode(value)) == value

    @given(st.text(st.characters(exclude_categories=[]), max_size=20))
    def test_any_text_is_one_line_of_utf8(self, text):
        line = encode({"text": text, text: 1}).decode()

        assert "\n" not in line
        assert json.loads(line)


def usage(tallies: list[RoleUsage]) -> Any:
    return plain(ActorUsage.of_all(tallies))


def latency(role_usage: RoleUsage) -> Any:
    return plain(ActorLatency.of(role_usage))


class TestTally:
    def test_an_idle_role_has_measured_zeros_and_no_latency(self):
        assert usage([RoleUsage()]) == {
            **EMPTY,
            "calls": 0,
            "attempts": 0,
        }
        assert latency(RoleUsage()) is None

    def test_calls_and_requests_are_counted_apart(self):
        role_usage = RoleUsage(
            completions=(called(attempts=[attempt("read_timeout"), attempt()]), called()),
            failed=(attempt("throttled"), attempt("server_error")),
        )

        assert usage([role_usage]) == {
            "input_tokens": 20,
            "output_tokens": 10,
            "cache_read_tokens": 8,
            "cache_write_tokens": 4,
            "calls": 2,
            "attempts": 5,
        }
        assert latency(role_usage)["unanswered_maybe_billed"] == 2

    def test_one_uncounted_call_makes_the_sum_unknown_but_not_the_calls(self):
        tallies = [
            RoleUsage(completions=(called(), completion("Why?"))),
            RoleUsage(completions=(called(),)),
        ]

        assert usage(tallies) == {
            **dict.fromkeys(EMPTY),
            "calls": 3,
            "attempts": 3,
        }
        assert usage(tallies[1:])["input_tokens"] == 10

    def test_sums(self):
        assert sum_usage([]) == Usage()
        assert sum_usage([USAGE, USAGE]) == USAGE + USAGE
        assert sum_usage([USAGE, None]) is None

    def test_latency_is_of_the_answers_and_waits_are_apart(self):
        calls = [
            replace(
                completion(
                    latency_ms=float(ms),
                    usage=Usage(output_tokens=20),
                    attempts=[attempt("server_error", wait_ms=5.0), attempt(wait_ms=1.0)],
                ),
                ttft_ms=ms / 4,
                first_text_ms=ms / 2,
                service_latency_ms=ms - 10.0,
            )
            for ms in (400, 100, 300, 200)
        ]
        failed = (attempt("throttled", wait_ms=7.0),)

        assert latency(RoleUsage(completions=tuple(calls), failed=failed)) == {
            "ttft_ms": {"p50": 62.5, "p90": 92.5, "p99": 99.25},
            "first_text_ms": {"p50": 125.0, "p90": 185.0, "p99": 198.5},
            "latency_ms": {"p50": 250.0, "p90": 370.0, "p99": 397.0},
            "service_latency_ms": {"p50": 240.0, "p90": 360.0, "p99": 387.0},
            "overhead_ms": {"p50": 10.0, "p90": 10.0, "p99": 10.0},
            "output_tokens_per_s": {"p50": 83.333, "p90": 170.0, "p99": 197.0},
            "waits_ms": {
                "total": 31.0,
                "before_first_attempt": 20.0,
                "between_attempts": 4.0,
                "of_failed_calls": 7.0,
            },
            "unanswered_maybe_billed": 4,
        }

    def test_what_was_not_measured_is_null(self):
        """Nothing was streamed, and the service has told nothing of itself."""
        found = latency(RoleUsage(completions=(completion(latency_ms=8.0),)))

        assert found == {
            **dict.fromkeys(
                (
                    *("ttft_ms", "first_text_ms", "service_latency_ms"),
                    *("overhead_ms", "output_tokens_per_s"),
                )
            ),
            "latency_ms": {"p50": 8.0, "p90": 8.0, "p99": 8.0},
            "waits_ms": dict.fromkeys(
                ("total", "before_first_attempt", "between_attempts", "of_failed_calls"), 0.0
            ),
            "unanswered_maybe_billed": 0,
        }

    def test_calls_that_were_never_answered_have_waits_and_no_latency(self):
        found = latency(RoleUsage(failed=(attempt("read_timeout", wait_ms=3.0),)))

        assert (found["latency_ms"], found["unanswered_maybe_billed"]) == (None, 1)
        assert found["waits_ms"]["of_failed_calls"] == found["waits_ms"]["total"] == 3.0

    @pytest.mark.parametrize(
        ("values", "p50", "p90"),
        [
            ([5.0], 5.0, 5.0),
            ([1.0, 2.0], 1.5, 1.9),
            ([4.0, None, 1.0, 2.0], 2.0, 3.6),
            (list(range(101)), 50.0, 90.0),
        ],
    )
    def test_percentiles_are_interpolated(self, values, p50, p90):
        found = Percentiles.of(values)

        assert (found.p50, found.p90) == (p50, p90)

    def test_no_known_value_has_no_percentile(self):
        assert Percentiles.of([]) is Percentiles.of([None]) is None

    @given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
    def test_percentiles_grow_and_stay_within(self, values):
        found = Percentiles.of(values)
        low, high = min(values), max(values)

        assert found.p50 <= found.p90 <= found.p99
        assert low - 0.001 <= found.p50 <= found.p99 <= high + 0.001


class TestClock:
    def test_times_are_utc_in_whole_seconds(self):
        east = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))

        assert utc(NOON) == utc(east) == "2026-11-20T12:00:00Z"
        assert utc(NOON + timedelta(milliseconds=999)) == "2026-11-20T12:00:00Z"
