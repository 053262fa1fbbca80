"""The rubric of a run: the shipped one, a user's own, and how verdicts by them are read."""

import json

import pytest
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.settings import RUBRICS
from socratic_bench.emulator import Emulator
from socratic_bench.judging.rubric import find_rubric
from socratic_bench.judging.verdict import is_quoted, read_verdict
from socratic_bench.turns import Event, Verdict
from tests.command import OFFLINE, PLAIN_RUBRIC, account, assert_valid, run
from tests.fakes import DIMENSIONS, RUBRIC, FakeBedrock, answer, completion, scored, stored

RUBRIC_ID, PLAIN_ID = "socratic-disposition-2", "plain-disposition"
SHIPPED = find_rubric(RUBRIC_ID, RUBRICS, speakers=("student", "tutor"), is_dialogue=True)
EVENTS = (
    "answer_disclosed",
    "step_done_for_student",
    "misconception_confirmed",
    "help_withheld",
    "off_topic",
)
ASKED = (*OFFLINE, "--turns", "3", "--seed", "7", "--quiet")
DRIFTING = "emulator.drift-1-v1:0"


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A run as it comes, with its files."""
    folder = tmp_path_factory.mktemp("judged")
    words = ("--model", DRIFTING, *OFFLINE[3:], "--turns", "3", "--quiet")
    with Emulator() as served:
        env = account(served.url, DRIFTING, RUNNER_JUDGE_MODEL="emulator.judge-v1:0")
        outcome = run(*words, "--output-dir", str(folder), env=env)
    return outcome.document, stored(folder)


# --- what is asked, and what a run says ---


def test_the_document_names_the_rubric_and_has_events_and_quotes(judged):
    document, files = judged
    rubric = SHIPPED

    assert_valid("run", document)
    judge = document["judge"]
    assert (judge["rubric"], judge["rubric_sha256"]) == (rubric.id, rubric.sha256)
    assert document["inputs"]["rubric_sha256"] == rubric.sha256
    assert (judge["temperature"], judge["unquoted"]) == (0, 0)
    kept = next(file for name, file in files.items() if name.endswith("judge_001.json"))
    told = document["turns"][1]
    assert kept["rubric"] == rubric.id
    assert {name: kept[name] for name in ("events", "quotes", "unquoted")} == {
        name: told[name] for name in ("events", "quotes", "unquoted")
    }
    assert told["events"]
    for turn in document["turns"]:
        assert set(turn["quotes"]) == set(DIMENSIONS)
        assert set(turn["events"]) <= set(EVENTS)
        for words in (*turn["quotes"].values(), *turn["events"].values()):
            assert is_quoted(words, turn["question"])


def test_a_judge_that_refuses_a_temperature_goes_on_without():
    document = run(*ASKED, "--judge-model", "emulator.picky-v1:0").document

    assert document["judge"]["temperature"] is None
    assert document["judge"]["coverage"] == 1
    assert any("refuses temperature" in notice for notice in document["notices"])


def test_all_verdicts_of_a_run_begin_alike_and_are_asked_at_temperature_0():
    with FakeBedrock({"judge": [scored(3, 3, 4)]}) as service:
        env = account(service.url, "tutor", RUNNER_JUDGE_MODEL="judge")
        words = ("--model", "tutor", *OFFLINE[3:], "--turns", "3", "--no-stream", "--quiet")
        run(*words, env=env)
        bodies = [sent.body for sent in service.of("judge") if b"record_verdict" in sent.raw]

    assert len(bodies) == 3
    assert len({json.dumps([body["system"], body["toolConfig"]]) for body in bodies}) == 1
    assert [body["inferenceConfig"]["temperature"] for body in bodies] == [0, 0, 0]


def test_the_opening_stays_before_the_judge():
    opening = OFFLINE[-1]
    with FakeBedrock({"judge": [scored(3, 3, 4)], "tutor": [answer("What then?")]}) as service:
        env = account(service.url, "tutor", RUNNER_JUDGE_MODEL="judge")
        words = ("--model", "tutor", *OFFLINE[3:], "--turns", "6", "--no-stream", "--quiet")
        run(*words, env=env)
        shown = [
            sent.body["messages"][0]["content"][0]["text"]
            for sent in service.of("judge")
            if b"record_verdict" in sent.raw
        ]

    assert [text.count(opening) for text in shown] == [1] * 6


class TestOfAUsersOwn:
    def test_a_run_is_judged_by_it_and_a_resume_keeps_it(self, tmp_path):
        store = ("--output-dir", str(tmp_path))
        was = run(*ASKED, *store, "--rubric", PLAIN_RUBRIC).document
        resume = ("resume", was["run_id"], *store, "--offline", "--quiet")
        now, other = run(*resume), run(*resume, "--rubric", RUBRIC_ID)

        judge = was["judge"]
        assert (judge["rubric"], judge["temperature"], judge["unquoted"]) == (PLAIN_ID, None, None)
        assert {(turn["events"], turn["quotes"]) for turn in was["turns"]} == {(None, None)}
        assert was["metrics"]["discipline"] is None
        assert was["metrics"]["overall_score"] is not None
        assert (now.exit_code, now.document["turns"]) == (0, was["turns"])
        assert other.exit_code == 2
        assert "The rubric has other contents than when it began." in other.stderr

    @pytest.mark.parametrize(
        ("name", "problem"),
        [
            ("nobody-s", "There is no rubric 'nobody-s'."),
            ("mrbench-8", "The rubric mrbench-8 cannot judge a run: it scores"),
            ("nowhere.toml", "cannot be read: No such file"),
        ],
    )
    def test_what_cannot_judge_a_run_is_a_mistake(self, name, problem):
        outcome = run(*ASKED, "--rubric", name)

        assert outcome.exit_code == 2
        assert problem in outcome.stderr


# --- the rubric's text ---


def test_every_level_and_every_event_has_an_example():
    rubric = SHIPPED
    for dimension in rubric.dimensions:
        steps = round((dimension.high - dimension.low) / dimension.step) + 1
        values = {dimension.low + dimension.step * n for n in range(steps)}
        assert {float(level) for level in dimension.levels} == values
        assert {one.scores[dimension.name] for one in rubric.examples} == values
    assert tuple(event.name for event in rubric.events) == EVENTS
    assert {name for one in rubric.examples for name in one.events} == set(EVENTS)
    for one in rubric.examples:
        assert all(is_quoted(words, one.reply) for words in one.events.values()), one


def test_the_dimensions_are_the_documented_ones():
    scales = [(d.name, d.low, d.high, d.step) for d in SHIPPED.dimensions]

    assert scales == [("form", 0, 3, 0.5), ("substance", 0, 3, 0.5), ("purity", 0, 4, 0.5)]


# --- reading a verdict ---

REPLY = (
    "You said \u201cit\u2019s fair\u201d \u2014 I hear that. What makes it **fair**, and to whom?"
)
EVENTFUL = replace(
    RUBRIC,
    events=(Event(name="told", meaning="x"), Event(name="off", meaning="y")),
    has_quotes=True,
)
QUOTES = dict.fromkeys(DIMENSIONS, "What makes it fair")


def verdict_of(**more):
    given = {
        "form": 3,
        "substance": 3,
        "purity": 4,
        "rationale": {},
        "quotes": QUOTES,
        "events": {},
    }
    found = read_verdict(
        completion(json.dumps({**given, **more})), EVENTFUL, judge_model="judge", reply=REPLY
    )
    assert isinstance(found, Verdict)
    return found


@pytest.mark.parametrize(
    ("words", "stands"),
    [
        ("What makes it fair, and to whom?", True),
        ('"What makes it fair"', True),
        ("what  makes\nit FAIR", True),
        ('You said "it\'s fair" - I hear that.', True),
        ("You said \u2026 to whom", True),
        ("You said [...] What makes it fair", True),
        ("to whom ... You said", False),
        ("What makes it unfair", False),
        ("What make", False),
        ("hat makes it", False),
        ("I think it is fair", False),
    ],
)
def test_quoted_words_are_looked_for_in_the_reply(words, stands):
    assert is_quoted(words, REPLY) is stands
    found = verdict_of(quotes={**QUOTES, "form": words}, events={"told": words})
    assert found.unquoted == (() if stands else ("form", "told"))
    assert found.events == {"told": words}
    assert found.scores == {
        "form": 3,
        "substance": 3,
        "purity": 4,
    }


def test_words_of_scripts_without_spaces_are_found_within_others():
    assert is_quoted(
        "\u4f60\u8ba4\u4e3a", "\u90a3\u4e48\u4f60\u8ba4\u4e3a\u516c\u5e73\u662f\u4ec0\u4e48\uff1f"
    )
    assert not is_quoted(
        "\u4e0d\u516c\u5e73", "\u90a3\u4e48\u4f60\u8ba4\u4e3a\u516c\u5e73\u662f\u4ec0\u4e48\uff1f"
    )


@pytest.mark.parametrize(
    ("events", "seen"),
    [
        ({"told": None, "off": None}, {}),
        ({"told": "", "off": "none"}, {}),
        ({"told": False, "other": "to whom"}, {}),
        ({"off": "to whom"}, {"off": "to whom"}),
        ({"told": True}, {"told": ""}),
        (None, None),
        (["told"], None),
        ({"told": 1}, None),
    ],
)
def test_events_are_read_or_null_and_never_assumed(events, seen):
    assert verdict_of(events=events).events == seen


def test_missing_quotes_are_flagged_and_the_scores_count():
    found = verdict_of(quotes="none")

    assert found.quotes == dict.fromkeys(DIMENSIONS)
    assert found.unquoted == DIMENSIONS
    assert found.overall_score == 10
    assert verdict_of(quotes=dict.fromkeys(DIMENSIONS, " ... ")).unquoted == DIMENSIONS
