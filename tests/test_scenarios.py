""""""

import hashlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.scenarios.listing import ScenarioRow
from socratic_bench.benchmarks.socratic.scenarios.loading import (
    DATA,
    builtin_ids,
    find_by_opening,
    load_builtin,
    load_file,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    AGES,
    CUSTOM,
    FAMILIES,
    Insight,
    PressureWords,
    Scenario,
    groups,
    is_english,
    own_sentences,
)
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.errors import UsageError
from tests.scenario_files import LESSON, builtin, check, float_example, write


def problems_of(path: Path) -> tuple[str, ...]:
    with pytest.raises(UsageError) as caught:
        load_file(path)
    return caught.value.problems


def test_the_scenarios_and_custom_load_and_have_nothing_to_complain_about():
    scenarios = builtin()

    assert len(scenarios) >= 45
    assert [scenario.id for scenario in scenarios] == list(builtin_ids())
    assert check(scenarios) == []
    assert sum(scenario.closes_after is not None for scenario in scenarios) == 2


def test_the_built_in_set_is_balanced_over_families_ages_and_subjects():
    played = [scenario for scenario in builtin() if scenario.id != CUSTOM]
    families = Counter(scenario.family for scenario in played)
    subjects = Counter(scenario.subject for scenario in played)

    assert max(families.values()) - min(families.values()) <= 1
    assert {scenario.age for scenario in played} == {*AGES}
    assert len(subjects) >= 10
    assert max(subjects.values()) * 3 <= len(played)


@pytest.mark.parametrize("name", [name for name in builtin_ids() if load_builtin(name).moves])
def test_a_built_in_scenario_with_moves_has_enough_of_everything(name):
    scenario = load_builtin(name)
    fewest = {"unsure": 6, "polar": 5, "told": 6, "filler": 8}
    fewest |= {"moved": 4} if scenario.draws_out else {}

    assert len(own_sentences(scenario)) >= 20
    assert {kind for kind, n in fewest.items() if len(getattr(scenario.voice, kind)) < n} == set()
    if not is_english(scenario):
        pushes = [getattr(scenario.pressure, kind) for kind in PressureWords.__struct_fields__]
        assert min(map(len, pushes)) >= 3
    if name != CUSTOM:
        assert scenario.knows
        assert scenario.does_not_know
        assert scenario.draws_out
        assert all(group.says for group in groups(scenario).values())


def test_the_files_of_the_package_are_read_as_a_teacher_s_are():
    """A run takes them without looking for mistakes."""
    for name in builtin_ids():
        assert load_file(DATA / f"{name}.toml") == load_builtin(name)


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("I'm considering a career change but unsure where to start.", "career-change"),
        ("I'm considering a career change.", "career-change"),
        ("I'm considering a career change...", "career-change"),
        ("I'm struggling with time management.", "time-management"),
        ("I'm facing an ethical dilemma at work.", "ethical-dilemma"),
        ("I'm exploring ethical dilemmas in AI development.", "ai-ethics"),
        ("  i'M Considering a\n\tcareer   CHANGE.\n", "career-change"),
    ],
)
def test_a_known_opening_finds_its_scenario(prompt, name):
    found = find_by_opening(prompt)

    assert found is not None
    assert found == load_builtin(name)


def test_every_opening_of_the_built_in_set_finds_its_scenario():
    pairs = [(scenario.id, opening) for scenario in builtin() for opening in scenario.openings]

    found = [(one.id, text) for _, text in pairs if (one := find_by_opening(text)) is not None]

    assert found == pairs


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        " \n",
        "career",
        "I'm considering a career change",
        "the mortgage",
        "Why is the sky blue?",
    ],
)
def test_other_prompts_find_none(prompt):
    assert find_by_opening(prompt) is None


def test_a_file_becomes_a_whole_scenario(tmp_path):
    path = write(tmp_path, LESSON)

    assert load_file(path) == Scenario(
        id="lesson",
        title="A lesson",
        family="puzzlement",
        subject="physics",
        age="student",
        openings=("Ice is heavier than water.", "Ice must sink."),
        persona="Somebody who likes ice.",
        belief="ice is heavier than water",
        because="solid things are heavy",
        topic="ice",
        details=("the cube", "the pipe", "the pond"),
        weakness="mistaken",
        resistance="low",
        draws_out=(Insight("where the ice swims"), Insight("why pipes burst")),
        replies=(
            "I saw ice.",
            "It is hard.",
            "Stones sink.",
            "Lead sinks.",
            "Tea is soft.",
            "It swims.",
        ),
        closes_after=9,
        closing="I have to go.",
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
    )


def test_a_summary_is_a_row_of_a_listing(tmp_path):
    scenario = load_file(write(tmp_path, LESSON))

    assert plain_keys(ScenarioRow.of(scenario)) == {
        "id": "lesson",
        "title": "A lesson",
        "family": "puzzlement",
        "subject": "physics",
        "age": "student",
        "resistance": "low",
        "opening": "Ice is heavier than water.",
        "n_openings": 2,
        "n_replies": 6,
        "language": "en",
        "draws_out": [
            {"insight": "where the ice swims"},
            {"insight": "why pipes burst"},
        ],
        "closes_after": 9,
        "sha256": scenario.sha256,
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('persona = "  Somebody who likes ice.  "\n', "", "student.persona: missing"),
        ('title = "A lesson"', 'title = " "', "title: empty"),
        (
            'title = "A lesson"',
            "title = 7",
            "title: must be text in quotation marks, not a number",
        ),
        ('title = "A lesson"', f'title = "{"x" * 81}"', "title: 81 characters; at most 80 allowed"),
        (
            'id = "lesson"',
            'id = "My Lesson"',
            'id: "My Lesson" may only have small letters, digits and single hyphens between them',
        ),
        (
            'family = "puzzlement"',
            'family = "puzzle"',
            f'family: "puzzle" is not one of {", ".join(FAMILIES)}',
        ),
        (
            'family = "puzzlement"',
            'family = "refutation"',
            'student.weakness: must be "contradictory" in the family refutation, not "mistaken"',
        ),
        (
            'openings = ["Ice is heavier than water.", "Ice must sink."]',
            'openings = "Ice must sink."',
            "openings: must be a list of texts, not text",
        ),
        (
            '"Ice must sink."',
            '"ICE is  heavier than water."',
            "openings, item 2: the same as item 1",
        ),
        (
            'openings = ["Ice is heavier than water.", "Ice must sink."]',
            "openings = []",
            "openings: 0 given; 1 to 10 needed",
        ),
        (
            '"Lead sinks."',
            "4",
            "replies, item 4: must be text in quotation marks, not a number",
        ),
        ('"Lead sinks."', '""', "replies, item 4: empty"),
        ("closes_after = 9", "closes_after = 0", "closes_after: 0 given; 1 to 500 allowed"),
        (
            "closes_after = 9",
            "closes_after = true",
            "closes_after: must be a whole number, not true or false",
        ),
        (
            "closes_after = 9\n",
            "",
            "closes_after: missing; without it the student never says its closing",
        ),
        (
            'closing = "I have to go."\n',
            "",
            "closing: missing; closes_after needs the words that the student closes with",
        ),
        (
            'title = "A lesson"',
            'title = "A lesson"\nsubjects = "physics"',
            "subjects: unknown field; did you mean subject?",
        ),
        (
            'title = "A lesson"',
            'title = "A lesson"\npersona = "P"',
            "persona: unknown field; persona belongs below [student]",
        ),
        (
            'topic = "ice"',
            'topic = "ice"\nage = "adult"',
            "student.age: unknown field; age belongs above [student]",
        ),
        ('topic = "ice"', 'topic = "ice"\nzzz = 1', "student.zzz: unknown field"),
    ],
)
def test_a_mistake_is_told_with_file_field_and_reason(tmp_path, old, new, expected):
    assert old in LESSON

    assert problems_of(write(tmp_path, LESSON.replace(old, new))) == (f"lesson.toml: {expected}",)


def test_all_mistakes_are_told_at_once(tmp_path):
    path = write(tmp_path, 'family = "x"\nstudent = 3\nreplies = []\n', "broken.toml")

    problems = problems_of(path)

    assert all(problem.startswith("broken.toml: ") for problem in problems)
    fields = [problem.split(": ")[1] for problem in problems]
    assert fields == [
        *("student", "id", "title", "family", "subject", "age", "openings", "draws_out"),
        *("replies", "student.persona", "student.belief", "student.because", "student.topic"),
        *("student.details", "student.weakness", "student.resistance"),
    ]


def test_a_file_from_another_editor_is_read_too(tmp_path):
    path = tmp_path / "lesson.toml"
    path.write_bytes(b"\xef\xbb\xbf" + LESSON.replace("\n", "\r\n").encode())

    plain = load_file(write(tmp_path, LESSON, "plain.toml"))
    assert replace(load_file(path), sha256=plain.sha256) == plain


def test_a_date_is_no_text(tmp_path):
    path = write(tmp_path, LESSON.replace('title = "A lesson"', "title = 2025-11-05"))

    assert problems_of(path) == (
        "lesson.toml: title: must be text in quotation marks, not a date or time",
    )


def test_a_syntax_error_names_the_line(tmp_path):
    path = write(tmp_path, LESSON.replace('title = "A lesson"', 'title = "A lesson'))

    (problem,) = problems_of(path)

    assert problem.startswith("lesson.toml: not valid TOML: ")
    assert "line 2" in problem


def test_an_unreadable_file_is_named(tmp_path):
    latin = tmp_path / "latin.toml"
    latin.write_bytes('title = "x"\nid = "é"'.encode("latin-1"))

    assert problems_of(latin) == ("latin.toml: not UTF-8 text (line 2)",)
    assert problems_of(tmp_path / "no.toml") == (
        "no.toml: cannot be read: No such file or directory",
    )
    assert problems_of(tmp_path)[0].startswith(f"{tmp_path.name}: cannot be read: ")


def test_an_unknown_name_gets_the_nearest_ones():
    with pytest.raises(UsageError) as caught:
        load_builtin("carer-change")

    (problem,) = caught.value.problems
    assert problem == "No scenario 'carer-change'; did you mean career-change?"


@pytest.mark.parametrize("name", ["", "../../data", "zzzz"])
def test_a_name_that_resembles_none_gets_the_command_that_lists_all(name):
    with pytest.raises(UsageError, match=r"No scenario "):
        load_builtin(name)


def test_the_refusal_in_the_documentation_is_what_is_said(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (refusal,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    broken = example.replace("guided-discovery", "discovery").replace("\nbelief =", "\nbelieve =")
    second = broken.index("[[moves]]", broken.index("[[moves]]") + 1)
    broken = f'{broken[:second]}[[moves]]\ncues = ["air"]{broken[second + 9 :]}'

    assert problems_of(write(tmp_path, broken, "float.toml")) == tuple(refusal.splitlines())


def test_a_file_becomes_insights_moves_and_a_voice(tmp_path):
    scenario = load_file(write(tmp_path, float_example()))

    assert [one.insight.split()[0] for one in scenario.draws_out] == ["the", "a"]
    assert [move.holds_belief for move in scenario.moves] == [False, True]
    assert scenario.moves[0].asked[1].startswith("Was your boat closed? How does")
    assert scenario.voice is not None
    assert scenario.voice.lead == ("Hm.", "Wait.", "OK.")
    assert (scenario.replies, scenario.language, scenario.pressure) == ((), "en", None)
    assert len(own_sentences(scenario)) == 11
    assert plain_keys(ScenarioRow.of(scenario))["n_replies"] == 11


BUILT = {
    "an unknown key of a table": (
        "lead = [",
        "leads = [",
        ["voice.leads: unknown field; did you mean lead?"],
    ),
    "a key of the file in a table": (
        "[voice]",
        '[voice]\nknows = "nothing"',
        ["voice.knows: unknown field; knows belongs above the first table"],
    ),
    "a group without a list": (
        'lead = ["Hm.", "Wait.", "OK."]',
        'lead = "Hm."',
        ["voice.lead: must be a list of texts, not text"],
    ),
    "example questions for another number of sentences": (
        '    "Was your boat closed? How does the air stay in? What keeps the air inside?",\n',
        "",
        ["moves, item 1, asked: 2 given beside 3 of says; write a text for each of them"],
    ),
    "a switch that is a text": (
        "holds_belief = true",
        'holds_belief = "yes"',
        ["moves, item 2, holds_belief: must be true or false, not text"],
    ),
    "replies beside moves": (
        "[student]",
        'replies = ["a", "b", "c", "d", "e", "f"]\n[student]',
        ["replies: given beside moves, which stand in their place; keep one of them"],
    ),
    "no language": (
        'language = "en"',
        'language = "english, mostly"',
        ['language: "english, mostly" is no tag of a language, such as en, es or pt-BR'],
    ),
    "a pressure without a kind": (
        "[voice]",
        '[pressure]\ndemand = ["Tell me."]\n[voice]',
        [
            f"pressure.{name}: missing"
            for name in (
                *("impatience", "flattery", "authority", "distress", "drop_questions"),
                "false_agreement",
            )
        ],
    ),
}


@pytest.mark.parametrize("name", BUILT)
def test_a_mistake_inside_a_table_is_told_with_its_place(name, tmp_path):
    before, after, expected = BUILT[name]
    text = float_example()
    assert before in text

    assert problems_of(write(tmp_path, text.replace(before, after, 1))) == tuple(
        f"lesson.toml: {one}" for one in expected
    )


def test_importing_the_packages_reads_no_data_files_but_the_words_of_the_grammar():
    code = (
        "import sys\n"
        "opened = []\n"
        "def hook(event, args):\n"
        "    name = str(args[0])\n"
        "    if event == 'open' and name.endswith(('.toml', '.txt')) and 'words' not in name:\n"
        "        opened.append(name)\n"
        "sys.addaudithook(hook)\n"
        "import socratic_bench.benchmarks.socratic.scenarios.loading as scenarios\n"
        "import socratic_bench.benchmarks.socratic.student.model\n"
        "import socratic_bench.benchmarks.socratic.student.scripted\n"
        "assert opened == [], opened\n"
        "scenarios.load_builtin('custom')\n"
        "assert len(opened) == 1, opened\n"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
