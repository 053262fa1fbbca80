"""Students that push: when, how, and whether the document finds out what a tutor gives way to."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench import RunConfig
from socratic_bench import run as play
from socratic_bench.benchmarks.socratic.scenarios.loading import (
    builtin_ids,
    load_builtin,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import is_english, own_sentences
from socratic_bench.benchmarks.socratic.student.model import ModelStudent, system_prompt
from socratic_bench.benchmarks.socratic.student.pressure import (
    KINDS,
    Push,
    Schedule,
    direction,
    pushed,
)
from socratic_bench.benchmarks.socratic.student.scripted import ScriptedStudent
from socratic_bench.benchmarks.socratic.turn import Exchange, StudentReply
from socratic_bench.emulator.models.student import pressure_in, requested_pressure
from tests.command import OFFLINE, assert_valid, daily, run
from tests.fakes import ScriptedModel

TUTORS = (
    "What do you mean by that?",
    "Is that so?",
    "You should write a list.",
    "Let me explain how it is. " * 12,
    "Hello there.",
)


def kinds(level: str, seed: int, turns: int = 40, n_turns: int | None = None) -> list[str | None]:
    schedule = Schedule(level=level, seed=seed, n_turns=n_turns)  # type: ignore[arg-type]
    pushes = [schedule.at(turn) for turn in range(turns)]
    return [push.kind if push else None for push in pushes]


def talk(student: ScriptedStudent, tutor: str, turns: int) -> list[StudentReply]:
    exchanges: list[Exchange] = []
    replies: list[StudentReply] = []
    said = student.scenario.openings[0]
    for _ in range(turns):
        exchanges.append(Exchange(student=said, tutor=tutor))
        replies.append(student.reply(exchanges))
        said = replies[-1].text
    return replies


def patient(name: str):
    return replace(load_builtin(name), closes_after=None, closing=None)


def with_replies():
    """A scenario whose student says its replies in order."""
    replies = tuple(f"My reason number {n} is the weather." for n in range(1, 7))
    return replace(patient("career-change"), moves=(), draws_out=(), voice=None, replies=replies)


ENGLISH = [name for name in builtin_ids() if is_english(load_builtin(name))]


class TestSchedule:
    @pytest.mark.parametrize("level", ["low", "high"])
    def test_every_kind_comes_within_forty_turns_and_none_twice_running(self, level):
        for seed in range(200):
            found = kinds(level, seed)
            pushes = [kind for kind in found if kind]

            assert found[0] is None
            assert set(pushes) == set(KINDS)
            assert all(one != next_ for one, next_ in pairwise(pushes))

    def test_low_pushes_in_every_third_turn_and_high_in_seven_of_eight(self):
        for seed in range(50):
            low, high = (kinds(level, seed, 241)[1:] for level in ("low", "high"))

            assert all(sum(map(bool, low[i : i + 3])) == 1 for i in range(0, 240, 3))
            blocks = [high[i : i + 8] for i in range(0, 240, 8)]
            assert all(sorted(filter(None, block)) == sorted(KINDS) for block in blocks)

    @pytest.mark.parametrize("level", ["low", "high"])
    @pytest.mark.parametrize("n_turns", [8, 9, 10, 13, 14, 15, 16, 18, 21, 22, 23, 40])
    def test_every_kind_comes_before_the_end_where_there_is_room_for_seven(self, level, n_turns):
        for seed in range(50):
            found = kinds(level, seed, n_turns, n_turns)

            assert found[0] is None
            assert set(filter(None, found)) == set(KINDS)
            assert Schedule(level=level, seed=seed, n_turns=n_turns).absent_kinds() == ()

    def test_low_pushes_no_more_than_it_must_and_evenly(self):
        for n_turns in range(8, 23):
            pushes = kinds("low", 5, n_turns, n_turns)

            assert sum(map(bool, pushes)) == len(KINDS)
            where = [turn for turn, kind in enumerate(pushes) if kind]
            longest = max(b - a for a, b in pairwise([0, *where, n_turns]))
            assert longest <= 2 * -(-(n_turns - 1) // 7)

    @pytest.mark.parametrize("level", ["low", "high"])
    def test_an_end_that_is_far_changes_nothing(self, level):
        for seed in range(20):
            assert kinds(level, seed, 200, 200) == kinds(level, seed, 200)

    @pytest.mark.parametrize("level", ["low", "high"])
    def test_where_there_is_no_room_the_schedule_says_what_it_misses(self, level):
        for n_turns in range(1, 8):
            schedule = Schedule(level=level, seed=3, n_turns=n_turns)

            come = {kind for kind in kinds(level, 3, n_turns, n_turns) if kind}
            assert {*schedule.absent_kinds()} == {*KINDS} - come != set()

    def test_without_pressure_nothing_is_pushed(self):
        assert kinds("none", 3) == [None] * 40

    def test_the_seed_decides(self):
        assert kinds("high", 1) == kinds("high", 1)
        assert len({tuple(kinds("high", seed)) for seed in range(20)}) == 20

    @pytest.mark.parametrize("level", ["low", "high"])
    def test_the_seed_decides_which_turns_are_pushed_too(self, level):
        assert len({tuple(map(bool, kinds(level, seed))) for seed in range(20)}) == 20

    def test_what_was_said_before_the_start_is_not_pushed(self):
        schedule = Schedule(level="high", seed=1, start=9)

        assert [schedule.at(turn) for turn in range(9)] == [None] * 9
        assert [schedule.at(t) for t in range(9, 30)] == [
            Schedule(level="high", seed=1).at(t) for t in range(9, 30)
        ]


class TestScripted:
    @pytest.mark.parametrize("name", daily(ENGLISH, first=8))
    def test_each_kind_has_words_of_its_own_for_500_turns(self, name):
        """A reader with rules of its own tells the kinds apart, and never finds one that is not."""
        scenario = patient(name)
        for kind in KINDS:
            said = [pushed(scenario, 5, Push(kind, round_)) for round_ in range(62)]

            assert len(set(said)) == 62
            assert {pressure_in(text) for text in said} == {kind}
            assert not [text for text in said if set(text) & set("?{}") or ".." in text]

    @pytest.mark.parametrize("name", ["career-change", "the-longer-decimal", "say-anything-online"])
    @pytest.mark.parametrize("tutor", TUTORS)
    def test_what_is_pushed_is_what_the_reply_says(self, name, tutor):
        student = ScriptedStudent(patient(name), 4, schedule=Schedule(level="high", seed=4))

        replies = talk(student, tutor, 120)

        assert [pressure_in(reply.text) for reply in replies] == [r.pressure for r in replies]
        assert [reply.pressure for reply in replies] == kinds("high", 4, 121)[1:]
        said = [reply.text for reply in replies if not reply.is_filler]
        assert len(set(said)) == len(said)

    @pytest.mark.parametrize("name", sorted({*builtin_ids()} - {*ENGLISH}))
    @pytest.mark.parametrize("kind", KINDS)
    def test_who_speaks_no_english_pushes_in_its_own_language(self, name, kind):
        scenario = patient(name)
        words = getattr(scenario.pressure, kind)

        behind = [pushed(scenario, 5, Push(kind, round_), "Ja.") for round_ in range(6)]
        alone = pushed(scenario, 5, Push(kind, 0))

        assert {text.removeprefix("Ja.").strip() for text in behind} == {*words}
        assert sum(word in alone for word in words) == 2

    @pytest.mark.parametrize("name", ENGLISH)
    def test_no_scenario_s_own_words_are_a_push(self, name):
        scenario = patient(name)
        own = [*scenario.openings, *own_sentences(scenario).values()]
        calm = talk(ScriptedStudent(scenario, 4), TUTORS[0], 60)

        assert {pressure_in(text) for text in (*own, *(r.text for r in calm))} == {None}

    def test_its_own_replies_still_come_in_order_and_none_is_lost(self):
        scenario = with_replies()
        student = ScriptedStudent(scenario, 7, schedule=Schedule(level="high", seed=7))

        texts = [reply.text for reply in talk(student, TUTORS[0], 12)]

        said = [own for text in texts for own in scenario.replies if own in text]
        assert said == list(scenario.replies)

    def test_a_push_stands_behind_a_reply_or_alone(self):
        student = ScriptedStudent(with_replies(), 7, schedule=Schedule(level="high", seed=7))

        replies = [one for one in talk(student, TUTORS[0], 80) if one.pressure]

        alone = [one for one in replies if one.policy == "pushed"]
        assert {one.pressure for one in alone} == set(KINDS)
        assert all(one in alone for one in replies if one.pressure == "false_agreement")
        assert {one.pressure for one in replies if one not in alone} == {*KINDS} - {
            "false_agreement"
        }

    def test_the_length_of_a_run_does_not_change_it(self):
        """Any reply can be made from the exchanges alone."""
        student = ScriptedStudent(patient("custom"), 7, schedule=Schedule(level="high", seed=7))
        replies = talk(student, TUTORS[0], 30)
        said = [student.scenario.openings[0], *(reply.text for reply in replies)]
        exchanges = [Exchange(student=text, tutor=TUTORS[0]) for text in said[:30]]

        assert [student.reply(exchanges[:n]) for n in range(30, 0, -1)] == replies[::-1]


class TestModel:
    SCHEDULE = Schedule(level="high", seed=3)

    def requests(self, turns: int) -> list[Any]:
        model = ScriptedModel(*[f"I think so, number {n}." for n in range(turns)])
        student = ModelStudent(load_builtin("custom"), model, schedule=self.SCHEDULE)
        exchanges: list[Exchange] = []
        said = "Hello."
        for n in range(turns):
            exchanges.append(Exchange(student=said, tutor=f"Why {n}?"))
            reply = student.reply(exchanges)
            push = self.SCHEDULE.at(n + 1)
            assert reply.pressure == (push.kind if push else None)
            said = reply.text
        return [request for request, _ in model.calls]

    def test_the_direction_stands_behind_the_tutor_s_last_words(self):
        for turn, request in enumerate(self.requests(20), start=1):
            words, *notes, stance = [block.text for block in request.messages[-1].content]

            push = self.SCHEDULE.at(turn)
            assert words == f"Why {turn - 1}?"
            assert notes == ([direction(push.kind)] if push else [])
            assert stance.startswith("(Unheard by the tutor, where you stand now: ")

    def test_each_request_goes_on_from_the_one_before_it(self):
        """But for where the student stands now, which is said behind the last words alone."""
        for one, other in pairwise(self.requests(20)):
            *before, last = one.messages
            unchanged = replace(last, content=last.content[:-1])
            assert other.messages[: len(one.messages)] == (*before, unchanged)
            assert (other.system, other.config) == (one.system, one.config)

    def test_the_instructions_are_those_of_a_student_who_does_not_push(self):
        assert self.requests(1)[0].system == system_prompt(load_builtin("custom"))

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_simulated_student_understands_each_direction(self, kind):
        assert requested_pressure(f"Why?\n{direction(kind)}") == kind
        assert requested_pressure(f"Tell me: {direction(kind)[1:-1]}") is None


def played(**values: Any) -> Any:
    return play(
        RunConfig(
            **{
                "model": "emulator.socratic-v1:0",
                "scenario": "career-change",
                "judge_model": "emulator.judge-v1:0",
                "pressure": "high",
                "seed": 7,
                "offline": True,
                **values,
            }
        )
    )


class TestDocument:
    @pytest.mark.parametrize(
        ("kind", "student"),
        [
            *daily([(kind, None) for kind in KINDS], first=2),
            *daily([(kind, "emulator.student-v1:0") for kind in KINDS], first=1),
        ],
    )
    def test_it_finds_out_what_a_tutor_gives_way_to(self, kind, student):
        model = f"emulator.yields-to-{kind.replace('_', '-')}-v1:0"

        metrics = played(model=model, student_model=student).document["metrics"]

        means = metrics["score_by_pressure"]
        assert min(means, key=means.get) == kind
        assert means[kind] < 6
        assert min(mean for name, mean in means.items() if name != kind) > 8
        assert min(metrics["judged_by_pressure"].values()) >= 4

    @pytest.mark.parametrize("scenario", daily(["the-longer-decimal", "quit-the-team"], first=1))
    @pytest.mark.parametrize("pressure", ["low", "high"])
    @pytest.mark.parametrize("seed", daily([4, 11], 4))
    def test_it_finds_out_before_a_student_leaves(self, scenario, pressure, seed):
        document = played(
            model="emulator.yields-to-flattery-v1:0",
            scenario=scenario,
            pressure=pressure,
            seed=seed,
        ).document

        means = document["metrics"]["score_by_pressure"]
        assert document["end_reason"] == "student_closed"
        assert min(document["metrics"]["judged_by_pressure"].values()) >= 1
        assert min(means, key=means.get) == "flattery"
        assert document["notices"] == []

    def test_a_run_too_short_for_all_kinds_says_which_it_misses(self):
        outcome = run(*OFFLINE, "--turns", "5", "--pressure", "high", "--seed", "1")

        document = outcome.document
        means = document["metrics"]["score_by_pressure"]
        absent_kinds = [kind for kind in KINDS if means[kind] is None]
        (notice,) = document["notices"]
        assert 0 < len(absent_kinds) < len(KINDS)
        assert f"has no room for {', '.join(absent_kinds)} in the turns to be played" in notice
        assert "8 turns has room for all" in notice
        assert notice in " ".join(outcome.stderr.split())
        enough = run(*OFFLINE, "--turns", "8", "--pressure", "low").document
        assert enough["notices"] == []
        assert None not in enough["metrics"]["score_by_pressure"].values()

    def test_a_steady_tutor_is_cleared(self):
        means = played().document["metrics"]["score_by_pressure"]

        assert min(means.values()) > 8

    def test_another_tutor_is_pushed_alike(self):
        one, other = (
            played(model=f"emulator.{name}-v1:0", judge_model=None).document["turns"]
            for name in ("socratic", "lecturer")
        )

        assert [turn["pressure"] for turn in one] == [turn["pressure"] for turn in other]
        assert [turn["student"] for turn in one] != [turn["student"] for turn in other]

    @pytest.mark.parametrize("student", [(), ("--student-model", "emulator.student-v1:0")])
    def test_each_kind_can_be_told_apart_in_the_artifacts(self, student, tmp_path):
        words = (*OFFLINE, "--pressure", "high", "--turns", "40", "--seed", "3", "--quiet")
        outcome = run(*words, *student, "--output-dir", str(tmp_path))

        document = outcome.document
        assert outcome.exit_code == 0
        assert_valid("run", document)
        files = sorted(Path(tmp_path).rglob("turn_*.json"))
        raw = [json.loads(file.read_text()) for file in files]
        for one in raw:
            assert_valid("turn", one)
        assert [one["pressure"] for one in raw] == [t["pressure"] for t in document["turns"]]
        assert [one["pressure"] for one in raw] == kinds("high", 3)
        assert [pressure_in(one["student_prompt"]) for one in raw] == kinds("high", 3)
        assert document["student"]["pressure"] == "high"
        assert len(document["student"]["pressure_sha256"]) == 64
        assert document["inputs"]["pressure_sha256"] == document["student"]["pressure_sha256"]

    def test_without_pressure_the_document_says_so(self):
        document = run(*OFFLINE, "--turns", "2").document

        assert [turn["pressure"] for turn in document["turns"]] == [None, None]
        assert document["student"]["pressure"] == "none"
        assert document["student"]["pressure_sha256"] is None
        assert "pressure_sha256" not in document["inputs"]

    def test_an_unknown_level_is_a_mistake(self):
        outcome = run(*OFFLINE, "--pressure", "hard")

        assert outcome.exit_code == 2
        assert "--pressure is 'hard', but must be one of none, low, high." in outcome.stderr

    def test_a_level_of_the_library_s_user_is_checked_too(self):
        assert RunConfig(model="m", pressure="hard").problems()  # type: ignore[arg-type]

    def test_scripted_and_model_student_have_fingerprints_of_their_own(self):
        runs = [
            played(turns=1, judge_model=None, student_model=model).document
            for model in (None, "emulator.student-v1:0")
        ]

        found = {one["student"]["prompt_sha256"] for one in runs}
        assert len(found) == 2
        assert found == {one["inputs"]["student_prompt_sha256"] for one in runs}
