"""Does the scripted student answer what was asked, move only when drawn out, and stay itself?"""

import random
from collections.abc import Iterator, Sequence
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
    load_file,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    Insight,
    Move,
    Scenario,
    Voice,
    groups,
    own_sentences,
)
from socratic_bench.benchmarks.socratic.student.scripted import (
    THRESHOLD,
    ScriptedStudent,
    questions_in,
    similarities,
)
from socratic_bench.benchmarks.socratic.turn import Exchange, StudentReply

BREAD = Scenario(
    id="bread",
    title="Bread",
    family="puzzlement",
    subject="cooking",
    age="adult",
    openings=("Bread rises because of the heat.",),
    draws_out=(
        Insight(
            "yeast makes it rise before it is warm",
            ("It rose in the fridge once.", "There was yeast in it.", "So it's the yeast, then."),
            (
                "Has it ever risen in the cold? What happened in the fridge?",
                "What did you put into it? What are the ingredients?",
                "What follows from that for the heat? What makes it rise, then?",
            ),
        ),
    ),
    moves=(
        Move(
            ("The oven was hot.", "I looked through the glass."),
            ("How warm was the oven?", "How do you know? What have you seen yourself?"),
        ),
        Move(
            ("Heat makes it rise, I saw it.",),
            ("Why do you think it is the heat? What is your reason?",),
            holds_belief=True,
        ),
        Move(("She baked on Fridays.",), ("Who taught you? What about your grandmother?",)),
    ),
    voice=Voice(
        unsure=("I'd have to bake it first.", "I only know my oven's light."),
        polar=("Sort of.", "Could be."),
        told=("If you say so.", "I'll remember that."),
        filler=("I've no more to say. It's the heat.", "That's all."),
        moved=("I'm thinking about that yeast.", "I'd try it cold next."),
    ),
    persona="A baker.",
    belief="bread rises because of heat",
    because="the oven is hot",
    topic="bread",
    details=("the loaf", "the crust", "the glass"),
    weakness="mistaken",
    resistance="low",
    sha256="0" * 64,
)
STEPS = BREAD.draws_out[0].says
COLD = "What happened in the fridge?"
UNKNOWN = "Why did Napoleon march on Moscow?"


def talk(scenario: Scenario, tutor: Sequence[str], seed: int = 3) -> list[StudentReply]:
    exchanges: list[Exchange] = []
    student, replies = scenario.openings[0], []
    for words in tutor:
        exchanges.append(Exchange(student=student, tutor=words))
        replies.append(ScriptedStudent(scenario, seed).reply(exchanges))
        student = replies[-1].text
    return replies


def texts(tutor: Sequence[str], seed: int = 3) -> list[str]:
    """What the baker says, without the words it begins with now and then."""
    kinds = ("unsure", "polar", "told", "filler", "moved")
    lines = [line for kind in kinds for line in getattr(BREAD.voice, kind)]
    known = [*own_sentences(BREAD).values(), *lines]
    replies = talk(BREAD, tutor, seed)
    return [next(line for line in known if reply.text.endswith(line)) for reply in replies]


def test_a_question_gets_the_sentence_that_it_is_closest_to_and_each_comes_once():
    asked = ["And your grandmother, what about her?", "How hot was that oven?"]

    assert texts(asked) == ["She baked on Fridays.", "The oven was hot."]
    assert texts(asked[:1] * 2)[1] in BREAD.voice.unsure


def test_a_question_that_is_close_to_no_sentence_gets_no_answer():
    (reply,) = talk(BREAD, [UNKNOWN])

    assert reply.policy == "answered_open"
    assert reply.text.endswith(BREAD.voice.unsure)


@pytest.mark.parametrize(
    ("words", "policy", "kind"),
    [
        ("Does football matter?", "answered_closed", "polar"),
        ("It is the yeast, and it works in the fridge.", "prompted", "told"),
        ("You should put the dough in the fridge. Does that help?", "took_advice", "told"),
        ("The yeast in it makes gas. " * 12, "heard_lecture", "told"),
        ("", "prompted", "told"),
        ("\u4f60\u600e\u4e48\u770b\uff1f", "answered_open", "unsure"),
    ],
)
def test_what_the_tutor_did_decides_which_line_comes(words, policy, kind):
    (reply,) = talk(BREAD, [words])

    assert reply.policy == policy
    assert reply.text.endswith(getattr(BREAD.voice, kind))


def test_the_steps_to_an_insight_come_in_order_whichever_is_asked_for():
    last_first = ["What follows from that for the heat?", "What did you put into it?", COLD]

    assert texts(last_first) == [*STEPS]


def test_following_up_what_was_said_leads_on_to_an_insight():
    follow_up = 'When you say "It rose in the fridge once", what do you mean?'

    assert texts([COLD, follow_up]) == [*STEPS[:2]]
    assert texts([COLD, "What do you mean?"])[1] not in STEPS


def test_the_same_bare_question_again_and_again_leads_nowhere():
    for name in builtin_ids():
        scenario = replace(load_builtin(name), closes_after=None, closing=None)
        steps = [insight.says[-1:] for insight in scenario.draws_out]

        said = " ".join(reply.text for reply in talk(scenario, ["Why?"] * 20))

        assert sum(bool(last) and last[0] in said for last in steps) <= 1


def test_after_an_insight_the_old_view_does_not_come_back():
    seen = [COLD, "What did you put into it?", "What makes it rise, then?"]
    why = "Why do you think it is the heat?"

    assert texts([why]) == [BREAD.moves[1].says[0]]
    assert {*texts([*seen, why, UNKNOWN])[3:]} <= {*BREAD.voice.moved}


def test_what_is_said_again_or_with_nothing_left_is_filler():
    assert [reply.is_filler for reply in talk(BREAD, [UNKNOWN] * 4)] == [False] * 2 + [True] * 2
    everything = [
        question
        for group in groups(BREAD).values()
        for asked in group.asked
        for question in questions_in(asked)[:1]
    ]
    replies = talk(BREAD, [*everything[3:], *everything[:3], UNKNOWN, "Is it?", "Hm."])
    assert [reply.is_filler for reply in replies] == [False] * len(everything) + [True] * 3


def test_a_question_ends_with_its_mark_and_a_long_sentence_without_one_is_read_once():
    assert questions_in("Well. Why so? And then! \u306a\u305c\u304b\u3002 Hm") == (
        "Why so?",
        "\u306a\u305c\u304b\u3002",
    )
    assert questions_in(f"{'W' * 1_000_000}ell. Why?") == ("Why?",)


# --- the shipped scenarios ---

SPANISH = "\u00bfCu\u00e1ntos a\u00f1os tiene tu hijo Efra\u00edn?"
JAPANESE = (  # why do you think so
    "\u3069\u3046\u3057\u3066\u305d\u3046\u601d\u3044\u307e\u3059\u304b\u3002"
)


def examples(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Each example question of a scenario, behind its sentence."""
    for group in groups(scenario).values():
        for sentence, asked in zip(group.says, group.asked, strict=True):
            yield from ((sentence, question) for question in questions_in(asked))


def without(scenario: Scenario, question: str) -> Scenario:
    """The scenario without one of its example questions."""

    def shortened(group: Any) -> Any:
        return replace(group, asked=tuple(text.replace(question, "") for text in group.asked))

    return replace(
        scenario,
        draws_out=tuple(map(shortened, scenario.draws_out)),
        moves=tuple(map(shortened, scenario.moves)),
    )


def closest(scenario: Scenario, question: str) -> str | None:
    """The sentence that a question gets, the order of steps aside."""
    similar = similarities(scenario, question)
    best = max(similar, key=similar.__getitem__)
    return best if similar[best] >= THRESHOLD else None


@pytest.mark.parametrize("name", builtin_ids())
def test_an_example_question_gets_its_own_sentence(name):
    scenario = load_builtin(name)
    answers: dict[str, set[str]] = {}
    for sentence, question in examples(scenario):
        answers.setdefault(question, set()).add(sentence)

    wrong = [q for q, sentences in answers.items() if closest(scenario, q) not in sentences]

    assert len(wrong) <= len(answers) // 50


def test_many_questions_that_are_no_examples_get_their_sentence_and_few_strange_ones_any():
    """What docs/dev/validity.md tells of the threshold, on a sample."""
    rng = random.Random(1)
    scenarios = [load_builtin(name) for name in builtin_ids() if name != "custom"]
    english = [scenario for scenario in scenarios if scenario.language == "en"]
    held_out = []
    for scenario in scenarios:
        for sentence, question in rng.sample([*examples(scenario)], 3):
            held_out.append((closest(without(scenario, question), question), sentence))
    strange = (
        *("Which football club do you support?", "How tall is the Eiffel Tower?"),
        *("When did you last go swimming in the sea?", "What is your favourite film?"),
    )
    answered = [closest(scenario, question) for scenario in english for question in strange]

    assert sum(found == sentence for found, sentence in held_out) >= 0.2 * len(held_out)
    assert sum(found is not None for found in answered) <= 0.1 * len(answered)


@pytest.mark.parametrize(
    ("name", "question", "words"),
    [
        ("calls-itself", "What have you undertaken to repair the crash?", "swapped two lines"),
        ("forgive-my-sister", SPANISH, "hijo Efra\u00edn tiene"),
        ("own-fault", "Was hat deine Schwester in der Küche gesagt?", "Schwester hat"),
        ("polite-words", JAPANESE, "\u5148\u751f\u306e\u8aac\u660e\u3092"),
    ],
)
def test_a_question_in_the_scenario_s_language_is_answered_in_it(name, question, words):
    (reply,) = talk(load_builtin(name), [question])

    assert words in reply.text


@pytest.mark.parametrize("name", builtin_ids())
def test_seeds_differ_from_the_first_reply_on(name):
    scenario = replace(load_builtin(name), closes_after=None, closing=None)
    questions = ["What makes you think so?", "Is that always so?", "How do you know?"] * 2

    by_seed = [tuple(one.text for one in talk(scenario, questions, seed)) for seed in range(12)]

    assert all(one[0] != other[0] for one, other in pairwise(by_seed))
    assert len({*by_seed}) >= 10
    assert tuple(one.text for one in talk(scenario, questions, 5)) == by_seed[5]


def test_a_file_without_moves_says_its_replies_in_order_to_questions_alone(tmp_path):
    example = (Path(__file__).parents[1] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    head = example[example.index("id = ") : example.index("[[draws_out]]")]
    replies = [f"I saw it float, number {n}." for n in range(6)]
    listed = ", ".join(f'"{reply}"' for reply in replies)
    path = tmp_path / "old.toml"
    path.write_text(head.replace("[student]", f"draws_out = []\nreplies = [{listed}]\n[student]"))
    scenario = load_file(path)

    tutor = ["Why?", "It is so.", "Is it?", *["What?"] * 4, "Who?", "You should go.", "Is it?"]
    replies_given = talk(scenario, tutor)

    answers = [one for n, one in enumerate(replies_given) if n not in (1, 8)]
    assert [one.text.endswith(own) for one, own in zip(answers, replies, strict=False)] == [
        True
    ] * 6
    assert [one.is_filler for one in replies_given] == [False] * 7 + [True] * 3
    assert replies_given[1].policy == "prompted"
    assert replies_given[8].policy == "took_advice"


def filled(**values: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model": "emulator.socratic-v1:0",
        "scenario": "plants-and-light",
        "turns": 40,
        "seed": 3,
        "offline": True,
        "judge_model": None,
    }
    return play(RunConfig(**{**asked, **values})).document


def test_the_document_says_which_turns_are_filler_and_a_notice_from_where():
    document = filled(seed=4, turns=60)

    filler = [turn["turn"] for turn in document["turns"] if turn["student_filler"]]
    assert document["n_turns"] == 60
    assert 1 < len(filler) <= 20
    assert document["student"]["filler_turns"] == len(filler)
    assert document["student"]["edition"] == "socratic-student-3"
    (notice,) = document["notices"]
    assert f"nothing new to say in {len(filler)} turns, first in turn {filler[0]}:" in notice


def test_a_model_s_words_are_its_own():
    assert filled(student_model="emulator.student-v1:0", turns=2)["student"]["filler_turns"] is None
