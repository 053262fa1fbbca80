"""What the checker finds in scenarios, one by one and together, and how the command says it."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.scenarios import check as checker
from socratic_bench.benchmarks.socratic.scenarios.loading import (
    DATA,
    builtin_ids,
    load_builtin,
    load_file,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    Scenario,
    n_words,
    own_sentences,
    plain,
)
from socratic_bench.errors import MOST_SHOWN
from tests.command import Outcome, assert_valid, daily, run
from tests.scenario_files import GOOD, builtin, check, float_example, write

_OWN_WORDS = 5  # shorter ones are anybody's


@pytest.fixture(scope="module", autouse=True)
def built_in_ones_are_checked_once():
    advice_on = checker._advice_on
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checker, "_advice_on", cache(lambda scenario: (*advice_on(scenario),)))
        yield


def test_no_two_students_say_the_same_sentence():
    said: Counter[str] = Counter()
    for one in builtin():
        lines = [*own_sentences(one).values()]
        for words in filter(None, (one.voice, one.pressure)):
            lines += [line for kind in words.__struct_fields__ for line in getattr(words, kind)]
        for sentence in re.split(r"(?<=[.!?\u3002])\s*", " ".join(lines)):
            if n_words(sentence) >= _OWN_WORDS:
                said[plain(sentence)] += 1

    assert [sentence for sentence, times in said.items() if times > 1] == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"persona": "A boy."}, ["student.persona: 2 words say too little; write 15 or more"]),
        (
            {"topic": "about ice."},
            [
                "student.topic: leave out the mark at the end; it stands inside sentences",
                'student.topic: leave out "about" at the beginning; the program puts it there',
            ],
        ),
        (
            {"belief": "that ice is heavier than water"},
            ['student.belief: leave out "that" at the beginning; the program puts it there'],
        ),
        (
            {"replies": ("I put one cube in a glass.", "I put one cube in my glass.")},
            ["replies, item 2: says nearly the same as item 1"],
        ),
        (
            {"replies": ("Do ponds freeze from below?",)},
            ["replies, item 1: asks a question; asking is the tutor's part"],
        ),
        (
            {"details": ("the \x07feather", "the stone", "the\x9b moon")},
            [
                "student.details: holds the control character U+0007",
                "student.details: holds the control character U+009B",
            ],
        ),
        (
            {"because": "heavy things fall faster than the light ones"},
            ["student.because: says the belief again; write what it rests on"],
        ),
        (
            {"openings": ("Ice sinks because it's cold.", "Ice sinks since it is cold.")},
            ["openings: all of them say nearly the same; write one that begins elsewhere"],
        ),
        (
            {"closes_after": 2, "closing": "Can I go now?"},
            [
                "closing: asks a question, and nobody is there to answer it",
                "closes_after: 2 is too early; write 8 or more",
            ],
        ),
        (
            {"replies": ("word " * 71,)},
            ["replies, item 1: longer than 70 words; students say less"],
        ),
        *(
            (
                {"replies": (reply,)},
                ["replies, item 1: answers something that may not have been asked"],
            )
            for reply in (
                "Yes, exactly that.",
                "Because it's cold.",
                "Hm, good question.",
                "Since you asked about ponds, they freeze.",
                "Well, yes, I suppose so.",
                "I'd say yes, it would sink.",
                "Sure, I can give you an example.",
                "Of course not, nobody would drop it.",
                "That's because it had no lid.",
                "I agree with that, stones are heavy.",
                "To your point, stones are heavy.",
                "I dropped it because of what I told you when you wanted to know.",
                "Hmm, no, the feather was slower.",
                "Oh, right, the air was there too.",
                "I don't know, I never asked my uncle.",
                "I couldn't say.",
                "Hm, I never asked myself that.",
                "You're right about the feather.",
                "Not really, no.",
                "Well, not that I know of.",
                "Neither, if I'm honest.",
                "It depends on the stone.",
            )
        ),
    ],
)
def test_the_checker_finds(changes, expected):
    good = load_builtin("heavy-falls-faster")

    assert check([replace(good, **changes)]) == [f"{good.id}: {one}" for one in expected]


@pytest.mark.parametrize(
    "reply",
    [
        "No one in my class has tried it.",
        "Well, the feather came down last.",
        "My uncle is sure that stones are faster.",
        "I agreed with my uncle at once.",
        "It was not right of him to laugh.",
        "I don't know anybody who tried it on the moon.",
        "I don't know why the feather is slower.",
        "My uncle never asked himself how fast it goes.",
        "Neither stone was wet.",
        "Both of the stones came down together, that was odd.",
    ],
)
def test_the_checker_leaves_a_statement_alone(reply):
    assert check([replace(load_builtin("heavy-falls-faster"), replies=(reply,))]) == []


def test_an_opening_is_taken_in_other_spelling_too():
    one = replace(load_builtin("career-change"), openings=("There's no way out.", "I'm stuck."))
    other = replace(load_builtin("milk-price"), openings=("x", "There is no way out!"))

    assert check([one, other]) == [
        'milk-price: openings: "There is no way out!" belongs to career-change already'
    ]


def test_the_checker_compares_scenarios():
    one = load_builtin("career-change")
    other = replace(load_builtin("milk-price"), openings=("x", one.openings[1].upper()))

    assert check([one, other, other]) == [
        "milk-price: id: used by 2 scenarios",
        f'milk-price: openings: "{other.openings[1]}" belongs to career-change already',
        f'milk-price: openings: "{other.openings[1]}" belongs to career-change already',
    ]


def test_the_example_in_the_documentation_loads_and_is_clean(tmp_path):
    page = Path(__file__).parents[1] / "docs" / "scenarios.md"
    (example,) = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)

    scenario = load_file(write(tmp_path, example))

    assert check([*builtin(), scenario]) == []


def changed(**fields: object) -> list[str]:
    """What the checker says of the documented example with other words in its first group."""
    scenario = load_file_of_example()
    move = replace(scenario.moves[0], **fields)
    found = check([replace(scenario, moves=(move, *scenario.moves[1:]))])
    return [line.removeprefix("why-ships-float: moves, item 1, ") for line in found]


def load_file_of_example() -> Scenario:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return load_file(write(Path(folder), float_example()))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("Exactly, it carried nineteen coins.", "agrees with something that may not have been"),
        ("You're right, it was the foil.", "agrees with something that may not have been said"),
        ("That's a good question, my boat had no lid.", "praises the question"),
        ("My boat swam, end of story.", "closes the case, and the dialogue goes on"),
        ("*shrugs* My boat had no lid.", "holds a stage direction; only what is said counts"),
        ("Not really, my boat had no lid.", "answers a yes-or-no question, and may follow anot"),
        ("Did my boat have a lid?", "asks a question; asking is the tutor's part"),
        ("In my boat there is air, and ships float on it.", "states the belief; mark its group"),
    ],
)
def test_the_checker_finds_what_a_student_should_not_say(said, problem):
    (found,) = changed(says=(said,))

    assert found.startswith(f"says, item 1: {problem}")


@pytest.mark.parametrize(
    "said",
    [
        "I don't know what was under it. Maybe the water.",
        "It depends on the foil, I'd say. Mine was thin.",
        "My uncle was right about the foil.",
        "Right next to the bowl there was a puddle.",
        "Air was in it, and it sank all the same (I weighed it).",
    ],
)
def test_the_checker_leaves_a_person_s_words_alone(said):
    assert changed(says=(said,)) == []


def test_the_checker_wants_example_questions_to_be_questions():
    assert changed(asked=("What did you build? Tell me more.",)) == [
        "asked, item 1: no question at the end; each ends with its mark"
    ]


def test_the_checker_wants_example_questions_for_every_group():
    assert changed(asked=()) == [
        "asked: missing; without example questions hardly any question fits"
    ]


# --- the command ----------------------------------------------------------------------------------


def checked(*files: Path | str) -> tuple[Outcome, dict[str, Any]]:
    outcome = run("scenarios", "--check", *map(str, files))
    assert_valid("scenario_check", outcome.document)
    return outcome, outcome.document


def test_the_built_in_scenarios_pass_the_check():
    outcome, document = checked()

    assert (outcome.exit_code, document["ok"], document["n_problems"]) == (0, True, 0)
    assert [one["id"] for one in document["scenarios"]] == list(builtin_ids())
    assert sum(document["families"].values()) == len(builtin_ids()) - 1  # `custom` has none
    assert sum(document["ages"].values()) == sum(document["subjects"].values()) == 44
    assert "45 scenarios, 0 problems" in outcome.stderr


def test_a_good_file_of_one_s_own_passes_too(tmp_path):
    outcome, document = checked(write(tmp_path, GOOD))

    assert (outcome.exit_code, document["n_problems"]) == (0, 0)
    assert document["scenarios"][-1] == {
        "id": "lesson",
        "file": str(tmp_path / "lesson.toml"),
        "family": "puzzlement",
        "problems": [],
    }


FLAWS = {
    "fields": ('family = "puzzlement"\n', "", "lesson.toml: family: missing"),
    "lengths": ("Likes ice and asks", "X" * 800, "lesson.toml: student.persona: "),
    "one opening": (', "Ice must sink."', "", "lesson: openings: 1 given; write two or more"),
    "duplicates": ('"Stones sink."', '"Lead sinks!"', "lesson: replies, item 4: says nearly"),
    "an unasked answer": ('"I saw ice."', '"Yes, I saw ice."', "lesson: replies, item 1: answers"),
    "a question": ('"I saw ice."', '"Did I see ice?"', "lesson: replies, item 1: asks a question"),
    "an opening again": ('"Stones sink."', '"Ice must sink."', "lesson: replies: one of them is"),
    "a question to draw out": (
        "why pipes burst in winter",
        "why do pipes burst?",
        "lesson: draws_out, item 2: a question",
    ),
    "too little to draw out": (
        "why pipes burst in winter",
        "burst pipes",
        "lesson: draws_out, item 2: says too little",
    ),
    "the belief to draw out": (
        "why pipes burst in winter",
        "ice is heavier than water",
        "lesson: draws_out, item 2: is the belief",
    ),
}


@pytest.mark.parametrize("name", daily(FLAWS, "fields", "duplicates"))
def test_each_flaw_of_a_file_is_found_and_told_on_both_streams(name, tmp_path):
    before, after, line = FLAWS[name]
    assert before in GOOD

    outcome, document = checked(write(tmp_path, GOOD.replace(before, after)))

    own = document["scenarios"][-1]
    assert (outcome.exit_code, document["ok"]) == (2, False)
    assert [found for found in own["problems"] if found.startswith(line)]
    assert document["n_problems"] == len(own["problems"])
    assert f"  - {line}" in outcome.stderr
    assert not [one for one in document["scenarios"][:-1] if one["problems"]]


def test_what_two_scenarios_share_belongs_to_neither(tmp_path):
    taken = write(tmp_path, GOOD.replace('id = "lesson"', 'id = "custom"'))

    outcome, document = checked(taken, tmp_path / "none.toml")

    assert outcome.exit_code == 2
    line = f"custom: id: used by 2 scenarios: the built-in one, {taken}"
    assert line in document["problems"]
    assert line in outcome.stderr
    assert document["scenarios"][-1]["id"] is None
    assert "none.toml: cannot be read" in document["scenarios"][-1]["problems"][0]


def test_two_files_of_one_id_are_told_apart(tmp_path):
    files = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for file in files:
        file.write_text(GOOD, encoding="utf-8")

    _, document = checked(*files)

    assert document["problems"] == [f"lesson: id: used by 2 scenarios: {files[0]}, {files[1]}"]


def test_a_copy_under_another_id_is_found(tmp_path):
    known = (DATA / "milk-price.toml").read_text(encoding="utf-8")
    first, last = known.index("openings = ["), known.index("knows = ")
    openings = 'openings = ["My shop sells milk too cheaply.", "Farmers deserve better."]\n'
    copy = (known[:first] + openings + known[last:]).replace('"milk-price"', '"cheap-milk"', 1)

    _, document = checked(write(tmp_path, copy))

    taken = [
        "cheap-milk: student.belief: belongs to milk-price already",
        *(
            f"cheap-milk: {place}: belongs to milk-price already"
            for place in own_sentences(load_builtin("milk-price"))
        ),
    ]
    rest = f"And {len(taken) - MOST_SHOWN} more."
    assert document["scenarios"][-1]["problems"] == [*taken[:MOST_SHOWN], rest]


def test_files_without_check_are_a_mistake(tmp_path):
    outcome = run("scenarios", str(write(tmp_path, GOOD)))

    assert outcome.exit_code == 2
    assert_valid("error", outcome.document)
    assert "Files need --check." in outcome.stderr
