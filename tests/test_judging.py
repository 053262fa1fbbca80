import json
import re
from collections.abc import Callable, Sized
from importlib.resources import files
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.errors import ModelError
from socratic_bench.judging.judge import Judge
from socratic_bench.judging.request import delimiter_code, repair_request, verdict_request
from socratic_bench.judging.rubric import load_rubric
from socratic_bench.judging.verdict import MAX_REPLY_CHARS, Unreadable, read_verdict
from socratic_bench.ports.benchmark import JudgeInput
from socratic_bench.turns import Judged, Unscored, Verdict
from socratic_bench.types import (
    CallKey,
    Completion,
    Message,
    Reasoning,
    Request,
    Text,
    ToolResult,
    ToolUse,
)
from tests.fakes import DIMENSIONS, NOON, RUBRIC, ScriptedModel, completion

GOOD: dict[str, Any] = {
    "form": 3,
    "substance": 2.5,
    "purity": 0,
    "rationale": {"form": "One question.", "substance": "It probes.", "purity": "It tells."},
}
GOOD_VERDICT = Verdict(
    scores={"form": 3.0, "substance": 2.5, "purity": 0.0},
    rationale={"form": "One question.", "substance": "It probes.", "purity": "It tells."},
    judge_model="judge",
)
GOOD_TEXT = json.dumps(GOOD)
JUDGE_INPUT = JudgeInput(
    (("student", "Hello."), ("tutor", "Why?"), ("student", "Because.")), "What follows?"
)


def by_tool(*arguments: Any, stop_reason: str = "tool_use") -> Completion:
    blocks = [ToolUse(f"id-{n}", "record_verdict", given) for n, given in enumerate(arguments)]
    return completion(blocks, stop_reason=stop_reason)


def read(answer: Completion | str) -> Verdict | Unreadable:
    answer = completion(answer) if isinstance(answer, str) else answer
    return read_verdict(answer, RUBRIC, judge_model="judge")


def reason(answer: Completion | str) -> str:
    found = read(answer)
    assert isinstance(found, Unreadable)
    return found.reason


def changed(**scores: Any) -> dict[str, Any]:
    return {**GOOD, **scores}


def numbers(cases: Sized) -> list[str]:
    """Names for cases that are too long to be their own."""
    return [str(number) for number in range(len(cases))]


WRAPPED: list[Completion | str] = [
    by_tool(GOOD),
    by_tool(GOOD, stop_reason="end_turn"),
    by_tool(GOOD, GOOD),
    completion([Text("Here it is."), ToolUse("id", "record_verdict", GOOD)]),
    completion([Reasoning('{"form": 0}'), ToolUse("id", "record_verdict", GOOD)]),
    GOOD_TEXT,
    json.dumps(GOOD, indent=2),
    f"```json\n{GOOD_TEXT}\n```",
    f"```\n{GOOD_TEXT}\n```",
    f"Here is my verdict:\n{GOOD_TEXT}\nI hope that this helps!",
    f"The set {{a, b}} aside, and with braces }} in prose {{: {GOOD_TEXT}",
    f"{GOOD_TEXT}\n\nAgain: {GOOD_TEXT}",
    completion([Reasoning('{"form": 0}'), Text(GOOD_TEXT)]),
    json.dumps(changed(form=3.0, extra={"form": 0})),
]


class TestGoodVerdicts:
    @pytest.mark.parametrize("answer", WRAPPED, ids=numbers(WRAPPED))
    def test_a_verdict_is_read_however_it_is_wrapped(self, answer):
        assert read(answer) == GOOD_VERDICT

    @pytest.mark.parametrize(
        ("name", "score"),
        [
            (dimension.name, dimension.low + dimension.step * step)
            for dimension in RUBRIC.dimensions
            for step in range(int((dimension.high - dimension.low) / dimension.step) + 1)
        ],
    )
    def test_every_half_step_of_every_range_is_a_score(self, name, score):
        found = read(by_tool(changed(**{name: score})))

        assert isinstance(found, Verdict)
        assert found.scores[name] == score

    def test_the_overall_score_is_the_sum(self):
        assert GOOD_VERDICT.overall_score == 5.5

    @pytest.mark.parametrize(
        "rationale", [None, "Good.", 5, [], {}, {"form": None}, {"form": 5}, {"form": "  "}]
    )
    def test_a_verdict_without_reasons_still_counts(self, rationale):
        found = read(by_tool(changed(rationale=rationale)))

        assert isinstance(found, Verdict)
        assert found.rationale == dict.fromkeys(DIMENSIONS)

    def test_reasons_are_bounded_and_can_be_written(self):
        reasons = {"form": "a\ud800" + "x" * 10_000, "substance": "s", "purity": "p"}
        found = read(by_tool(changed(rationale=reasons)))

        assert isinstance(found, Verdict)
        assert found.rationale["form"] == "a\ufffd" + "x" * 3_998


UNUSABLE_ANSWERS: list[tuple[Completion | str, str]] = [
    ("", "empty_verdict"),
    (" \n\t", "empty_verdict"),
    (completion([]), "empty_verdict"),
    (completion([Reasoning(GOOD_TEXT)]), "empty_verdict"),
    ("The tutor did well; I would give it 7 of 10.", "unreadable_verdict"),
    ("form: 3, substance: 3, purity: 4", "unreadable_verdict"),
    (GOOD_TEXT[:-1], "unreadable_verdict"),
    (f'{{"example": {GOOD_TEXT}, "form": 3', "unreadable_verdict"),
    (f'{{"form": }} {GOOD_TEXT}', "unreadable_verdict"),
    ("[3, 2.5, 0]", "unreadable_verdict"),
    (GOOD_TEXT + json.dumps(changed(form=1)), "unreadable_verdict"),
    (f'For example {{"form": 0}}. My own: {GOOD_TEXT}', "unreadable_verdict"),
    (GOOD_TEXT.replace("2.5", "NaN"), "unreadable_verdict"),
    (GOOD_TEXT.replace("2.5", "Infinity"), "unreadable_verdict"),
    (GOOD_TEXT.replace("2.5", "-Infinity"), "unreadable_verdict"),
    (GOOD_TEXT.replace("2.5", "1e999"), "invalid_verdict"),
    (GOOD_TEXT.replace("2.5", "9" * 400), "invalid_verdict"),
    (GOOD_TEXT.replace("2.5", "9" * 5000), "unreadable_verdict"),
    (GOOD_TEXT.replace("2.5", '"2.5"'), "invalid_verdict"),
    (GOOD_TEXT.replace("2.5", "true"), "invalid_verdict"),
    (GOOD_TEXT.replace("2.5", "2,5"), "unreadable_verdict"),
    ('{"a":' * 5_000 + "1" + "}" * 5_000, "unreadable_verdict"),
    ("{" * 20_000, "unreadable_verdict"),
    ('{"verdict": ' + GOOD_TEXT + "}", "invalid_verdict"),
    (GOOD_TEXT + " " * MAX_REPLY_CHARS, "unreadable_verdict"),
    (by_tool(GOOD, changed(form=1)), "unreadable_verdict"),
    (by_tool(None), "unreadable_verdict"),
    (by_tool("3"), "unreadable_verdict"),
    (by_tool([GOOD]), "unreadable_verdict"),
    (by_tool({}), "invalid_verdict"),
]


class TestBadVerdicts:
    @pytest.mark.parametrize(
        "score",
        [
            -0.5,
            3.5,
            10,
            1.25,
            2.9,
            1e-9,
            True,
            False,
            None,
            "3",
            "high",
            [3],
            {"score": 3},
            float("nan"),
            float("inf"),
            -float("inf"),
            10**400,
            -(10**400),
            1e308,
        ],
        ids=repr,
    )
    def test_anything_but_a_half_step_within_the_range_is_none(self, score):
        found = read(by_tool(changed(form=score)))

        assert isinstance(found, Unreadable)
        assert found.reason == "invalid_verdict"
        assert found.problem.startswith("form is ")

    def test_a_missing_dimension_is_named(self):
        given = {name: value for name, value in GOOD.items() if name != "purity"}

        assert read(by_tool(given)) == Unreadable("invalid_verdict", "purity is missing.")

    def test_every_problem_is_named(self):
        assert read(by_tool({"form": 9, "substance": 0.3})) == Unreadable(
            "invalid_verdict",
            "form is 9, out of 0 to 3. substance is 0.3, not in steps of 0.5. purity is missing.",
        )

    @pytest.mark.parametrize(("answer", "why"), UNUSABLE_ANSWERS, ids=numbers(UNUSABLE_ANSWERS))
    def test_what_cannot_be_read_is_no_verdict(self, answer, why):
        assert reason(answer) == why

    def test_a_score_that_is_given_twice_is_not_chosen_from(self):
        """JSON readers differ in which of two equal keys they keep."""
        twice = GOOD_TEXT.replace('"form": 3', '"form": 0, "form": 3')

        assert reason(twice) == "unreadable_verdict"

    @pytest.mark.parametrize(
        ("stop_reason", "why"),
        [
            ("content_filtered", "content_filtered"),
            ("guardrail_intervened", "guardrail"),
            ("model_context_window_exceeded", "context_window"),
            ("max_tokens", "cut_off"),
        ],
    )
    @pytest.mark.parametrize("answer", [completion(GOOD_TEXT), by_tool(GOOD)], ids=["text", "tool"])
    def test_how_it_stopped_counts_before_what_it_says(self, answer, stop_reason, why):
        """A whole verdict behind a filter was not the judge's last word."""
        stopped = completion(answer.message.content, stop_reason=stop_reason)

        assert reason(stopped) == why

    @pytest.mark.parametrize("stop_reason", ["malformed_model_output", "malformed_tool_use"])
    def test_output_that_the_service_calls_malformed_is_not_read(self, stop_reason):
        assert isinstance(read(completion(GOOD_TEXT, stop_reason=stop_reason)), Unreadable)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([0, 0.5, 3, 4, 4.5, "3", 10**400])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*DIMENSIONS, "rationale", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)
VERDICTS = st.fixed_dictionaries(dict.fromkeys(DIMENSIONS, JSON), optional={"rationale": JSON})


def only_what_was_said(found: Verdict | Unreadable, given: Any) -> None:
    """Scores lie in range and on their step, and stand literally in what was given."""
    if isinstance(found, Unreadable):
        return
    assert list(found.scores) == list(DIMENSIONS)
    for dimension in RUBRIC.dimensions:
        score = found.scores[dimension.name]
        said = given[dimension.name]
        assert type(said) in (int, float)
        assert score == said
        assert dimension.low <= score <= dimension.high
        assert (score / dimension.step).is_integer()


@given(JSON | VERDICTS)
def test_any_tool_call_is_a_true_verdict_or_none(arguments):
    only_what_was_said(read(by_tool(arguments)), arguments)


@given(JSON | VERDICTS, st.text(max_size=10), st.text(max_size=10))
def test_any_json_in_words_is_a_true_verdict_or_none(value, before, after):
    found = read(f"{before}{json.dumps(value)}{after}")

    candidates = list(objects_in(value))
    if isinstance(found, Verdict):
        assert any(matches(found, candidate) for candidate in candidates)


def objects_in(value: Any) -> Any:
    """The outermost objects of a JSON value."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from objects_in(item)


def matches(found: Verdict, candidate: Any) -> bool:
    try:
        only_what_was_said(found, candidate)
    except (AssertionError, KeyError):
        return False
    return True


@given(st.text(st.characters(exclude_categories=[]), max_size=60))
def test_any_text_is_a_verdict_or_none(text):
    assert isinstance(read(text), Verdict | Unreadable)


@given(st.text(alphabet='{}[]":,.0123 aefklmnorstuy', max_size=80))
def test_any_text_that_looks_like_json_is_a_verdict_or_none(text):
    assert isinstance(read(text), Verdict | Unreadable)


def asked(judge_input: JudgeInput = JUDGE_INPUT, *, seed: int = 7, index: int = 0) -> Request:
    model = ScriptedModel(by_tool(GOOD), model_id="judge")
    judge(model, seed=seed).judge(judge_input, index)
    return model.calls[0][0]


def judge(model: ScriptedModel, *, seed: int = 7, now: Callable[[], Any] = lambda: NOON) -> Judge:
    return Judge(model=model, rubric=RUBRIC, seed=seed, now=now)


def judged_by(*answers: Completion | str | Exception) -> tuple[Judged, ScriptedModel]:
    model = ScriptedModel(*answers, model_id="judge")
    return judge(model).judge(JUDGE_INPUT, 3), model


UNUSABLE = "This is prose."


class TestJudge:
    def test_a_good_verdict_takes_one_call(self):
        first = by_tool(GOOD)
        found, model = judged_by(first)

        assert found == Judged(outcome=GOOD_VERDICT, calls=(first,), finished_at=NOON)
        assert [key for _, key in model.calls] == [CallKey(role="judge", index=3)]

    def test_an_unusable_one_is_asked_for_once_more(self):
        first, second = completion(UNUSABLE), by_tool(GOOD)
        found, model = judged_by(first, second)

        assert found == Judged(outcome=GOOD_VERDICT, calls=(first, second), finished_at=NOON)
        assert [key for _, key in model.calls] == [
            CallKey(role="judge", index=3),
            CallKey(role="judge", index=3, repeat=1),
        ]

    def test_and_not_a_third_time(self):
        first, second = completion(UNUSABLE), completion("Still prose.")
        found, model = judged_by(first, second)

        assert found == Judged(
            outcome=Unscored(
                reason="unreadable_verdict",
                message="The judge's answer cannot be used: it holds no JSON object.",
                raw_reply="Still prose.",
            ),
            calls=(first, second),
            finished_at=NOON,
        )
        assert len(model.calls) == 2

    def test_the_raw_reply_keeps_a_tool_call_that_could_not_be_used(self):
        found, _ = judged_by(by_tool({"form": 9}), by_tool({"form": 8}))

        assert isinstance(found.outcome, Unscored)
        assert found.outcome.raw_reply == '{"form": 8}'

    def test_the_raw_reply_is_bounded_and_can_be_written(self):
        found, _ = judged_by(UNUSABLE, "\ud800" * (MAX_REPLY_CHARS + 1))

        assert isinstance(found.outcome, Unscored)
        assert found.outcome.raw_reply == "\ufffd" * MAX_REPLY_CHARS

    def test_a_repair_continues_the_conversation_in_words(self):
        _, model = judged_by(UNUSABLE, by_tool(GOOD))
        (first, _), (second, _) = model.calls

        assert second == Request(
            system=first.system,
            messages=(*first.messages, Message.assistant(UNUSABLE), second.messages[-1]),
            config=first.config,
            tool=first.tool,
        )
        assert second.messages[-1].role == "user"
        assert "it holds no JSON object." in second.messages[-1].text

    def test_a_repair_answers_every_tool_call(self):
        """The service refuses a conversation with a tool call that nobody answered."""
        first = by_tool(GOOD, changed(form=1))
        _, model = judged_by(first, by_tool(GOOD))
        request, _ = model.calls[1]

        assert request.messages[-2] == Message("assistant", first.message.content)
        results = request.messages[-1].content
        assert [(type(block), block.id, block.is_error) for block in results] == [
            (ToolResult, "id-0", True),
            (ToolResult, "id-1", True),
        ]

    def test_a_repair_of_nothing_sends_no_empty_message(self):
        """The service refuses blank text."""
        _, model = judged_by(completion([], stop_reason="content_filtered"), by_tool(GOOD))

        assert all(message.text.strip() for message in model.calls[1][0].messages)

    def test_a_repair_does_not_repeat_the_judges_thoughts(self):
        first = completion([Reasoning("Hm."), Text(UNUSABLE)])
        request = repair_request(asked(), first, "It is prose.")

        assert request.messages[-2] == Message.assistant(UNUSABLE)

    def test_used_up_retries_leave_the_turn_unjudged(self):
        gone = ModelError("Slow.", code="throttled", end_reason="unavailable", retryable=True)
        found, model = judged_by(gone)

        assert found == Judged(
            outcome=Unscored(reason="unavailable", message="Slow.", raw_reply=None),
            calls=(),
            finished_at=NOON,
        )
        assert len(model.calls) == 1

    def test_used_up_retries_of_the_repair_keep_what_was_said_before(self):
        gone = ModelError("Slow.", code="throttled", end_reason="unavailable", retryable=True)
        found, _ = judged_by(UNUSABLE, gone)

        assert found.outcome == Unscored(reason="unavailable", message="Slow.", raw_reply=UNUSABLE)
        assert found.calls == (completion(UNUSABLE),)

    @pytest.mark.parametrize("reason", ["context_window", "content_filtered"])
    def test_a_reply_that_is_refused_before_the_judge_reads_it_costs_one_turn(self, reason):
        refused = ModelError("Refused.", code=reason, end_reason=reason)

        assert judged_by(refused)[0].outcome == Unscored(
            reason=reason, message="Refused.", raw_reply=None
        )

    @pytest.mark.parametrize(
        "end_reason", ["access", "credentials", "unknown_model", "refused_request"]
    )
    @pytest.mark.parametrize("before", [(), (UNUSABLE,)], ids=["first", "repair"])
    def test_what_would_befall_every_turn_flies(self, end_reason, before):
        denied = ModelError("No.", code="denied", end_reason=end_reason)

        with pytest.raises(ModelError) as raised:
            judged_by(*before, denied)
        assert raised.value is denied

    @pytest.mark.parametrize(
        "stop_reason", ["content_filtered", "guardrail_intervened", "max_tokens"]
    )
    def test_a_perfect_verdict_behind_a_filter_stays_unjudged(self, stop_reason):
        stopped = by_tool(GOOD, stop_reason=stop_reason)
        found, _ = judged_by(stopped, stopped)

        assert isinstance(found.outcome, Unscored)


class TestRequest:
    def test_the_reply_stands_between_delimiters_after_its_context(self):
        code = delimiter_code(7, CallKey(role="judge", index=0), JUDGE_INPUT)

        assert [message.role for message in asked().messages] == ["user"]
        assert asked().messages[0].text == (
            f"<context-{code}>\n[student-{code}]\nHello.\n\n[tutor-{code}]\nWhy?\n\n"
            f"[student-{code}]\nBecause.\n"
            f"</context-{code}>\n\n<reply-{code}>\nWhat follows?\n</reply-{code}>\n\n"
            f"Score the text between <reply-{code}> and </reply-{code}>."
        )

    def test_the_rubric_stands_in_the_system_prompt_with_every_range(self):
        system = asked().system or ""

        assert system.startswith("Score the reply.\n\n")
        for line in (
            "form: 0 to 3 in steps of 0.5\n  3: whole\n  0: none",
            "substance: 0 to 3 in steps of 0.5\n  3: deep",
            "purity: 0 to 4 in steps of 0.5\n  4: neutral",
        ):
            assert line in system

    def test_the_tool_asks_for_every_score_after_its_reason(self):
        tool = asked().tool
        assert tool is not None
        schema: Any = tool.input_schema

        assert list(schema["properties"]) == ["rationale", *DIMENSIONS]
        assert schema["required"] == ["rationale", *DIMENSIONS]
        assert schema["properties"]["purity"] == {
            "type": "number",
            "minimum": 0,
            "maximum": 4,
            "multipleOf": 0.5,
        }

    def test_what_is_the_same_for_every_turn_comes_first(self):
        one, other = asked(), asked(JudgeInput((), "Something else."), index=5)

        assert (one.system, one.tool, one.config) == (other.system, other.tool, other.config)

    def test_the_same_seed_and_call_are_the_same_request(self):
        assert asked(seed=3, index=2) == asked(seed=3, index=2)

    def test_delimiters_differ_by_seed_and_by_call(self):
        keys = [
            CallKey(role=role, index=index, part=part)
            for role, index, part in product(("judge", "tutor"), range(20), ("", "a", "b"))
        ]
        codes = [delimiter_code(seed, key, JUDGE_INPUT) for seed, key in product(range(20), keys)]

        assert len(set(codes)) == len(codes) == 20 * 120
        assert all(re.fullmatch(r"[0-9a-f]{16}", code) for code in codes)

    def test_no_delimiter_is_in_what_the_tutor_was_ever_shown(self):
        """Neither in the judge input's context nor in what is fixed for all runs."""
        code = delimiter_code(7, CallKey(role="judge", index=0), JUDGE_INPUT)

        assert code not in (asked().system or "")
        assert asked().messages[0].text.count(code) == 9


SPEAKERS = ("student", "tutor")
RUBRICS = files("socratic_bench.benchmarks.socratic") / "rubrics"


class TestRubricFile:
    def test_every_example_has_a_score_in_each_dimension_within_its_range_and_on_its_step(self):
        rubric = load_rubric(RUBRICS / "socratic-disposition-2.toml", speakers=SPEAKERS)

        assert rubric.examples
        for one in rubric.examples:
            assert list(one.scores) == [d.name for d in rubric.dimensions]
            for d in rubric.dimensions:
                assert d.low <= one.scores[d.name] <= d.high
                assert one.scores[d.name] % d.step == 0

    def test_the_examples_are_part_of_what_is_the_same_for_every_verdict(self):
        rubric = load_rubric(RUBRICS / "socratic-disposition-2.toml", speakers=SPEAKERS)
        system = verdict_request(rubric, JUDGE_INPUT, code="c0de").system

        assert system == verdict_request(rubric, JUDGE_INPUT, code="f00d").system
        for one in rubric.examples:
            assert json.dumps(one.reply, ensure_ascii=False) in system

    def test_the_hash_changes_with_any_byte_of_the_file(self, tmp_path):
        body = (RUBRICS / "socratic-disposition-2.toml").read_bytes()
        one, other = tmp_path / "one.toml", tmp_path / "other.toml"
        one.write_bytes(body)
        other.write_bytes(body + b"\n")

        assert (
            load_rubric(one, speakers=SPEAKERS).sha256
            != load_rubric(other, speakers=SPEAKERS).sha256
        )


def test_a_verdict_request_carries_its_code():
    request = verdict_request(RUBRIC, JUDGE_INPUT, code="c0de")

    assert "<reply-c0de>\nWhat follows?\n</reply-c0de>" in request.messages[0].text
