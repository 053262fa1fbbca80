"""Does the scripted student answer what was asked, move only when drawn out, and stay itself?"""

from collections.abc import Sequence
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
    own_sentences,
)
from socratic_bench.benchmarks.socratic.student.asking import asked_by
from socratic_bench.benchmarks.socratic.student.scripted import ScriptedStudent
from socratic_bench.benchmarks.socratic.student.student import Exchange, StudentReply

OPEN = [
    "Which of the two was it?",
    "Who told you so?",
    "Where did it happen?",
    "Whose bike was it?",
    "In what way is it so?",
    "How come?",
    "From whom did you hear it?",
    "Under which conditions does it hold?",
    "How could you test what you say about 0.45?",
    "Could you tell me why that matters?",
    "Can you give me an example?",
    "Is it the shape or the weight?",
    "Isn't it clear, and what does that tell you?",
    "You say it fell faster. What?",
    "Tell me more about the bean.",
    "I wonder what you would see from the other side.",
    "Is it true? If so, why?",
    "And the other jar?",
    "That helps. Imagine the jar were dry.",
    "Put that in your own words.",
    "May I ask who told you that?",
    "Would you mind telling me where you saw it?",
    "Do you have any idea which of them it was?",
    "Could you point out where it changes?",
    "Can you figure out why?",
    "Is there a reason why you chose the small one?",
    "Do you notice what changes between them?",
    "Can you predict how it goes on?",
    "Can you come up with a case in your class?",
    "Such as?",
    "Your reason for that?",
]
POLAR = [
    "Is that always so?",
    "So heavy things fall faster?",
    "Right?",
    "Is it hot when the Sun is close?",
    "Do people who work more get more?",
    "Have you been to the place where it happened?",
    "And is the other jar dry?",
    "Was it at three o'clock?",
    "Is that how you see it?",
    "Does what he says help you?",
    "Do you always do what they want?",
    "Is a friend who lies still a friend?",
    "Do you work best when it is quiet?",
]
NONE = [
    "Imagine six nails. Oxygen joins each of them.",
    "You should write a list.",
    "Let me explain how it is.",
    "",
    "I wonder.",
    "Hello there.",
]
FOREIGN = [
    ("es", "\u00bfEs siempre as\u00ed?", "polar"),
    ("es", "\u00bfPor qu\u00e9 lo crees?", "open"),
    ("es", "Cu\u00e9nteme lo de la carta.", "open"),
    ("es", "\u00bfY el sol?", "open"),
    ("de", "Woran merkst du das?", "open"),
    ("de-CH", "Ist das immer so?", "polar"),
    ("de", "Erz\u00e4hl mal von der Ampel.", "open"),
    ("de", "Stell dir vor, er w\u00e4re dein Freund.", "open"),
    ("ja", "\u306a\u305c\u305d\u3046\u601d\u3044\u307e\u3059\u304b\uff1f", "open"),
    ("ja", "\u305d\u308c\u306f\u672c\u5f53\u3067\u3059\u304b\uff1f", "polar"),
    ("ja", "\u305d\u308c\u306f\u672c\u5f53\u3067\u3059\u304b\u3002", "polar"),
    ("ja", "\u305d\u308c\u306f\u672c\u5f53\u3067\u3059\u3002", "none"),
    ("ja", "\u305d\u308c\u306f\u3069\u3046\u3057\u3066\u3067\u3057\u3087\u3046\u3002", "open"),
    ("ja", "\u4f8b\u3092\u6559\u3048\u3066\u304f\u3060\u3055\u3044\u3002", "open"),
    ("fi", "Onko se aina niin?", "open"),  # nobody here reads Finnish: an open answer fits both
]


@pytest.mark.parametrize(
    ("language", "words", "kind"),
    [
        *(("en", words, "open") for words in OPEN),
        *(("en", words, "polar") for words in POLAR),
        *(("en", words, "none") for words in NONE),
        *FOREIGN,
    ],
)
def test_the_form_of_a_question_is_read(language, words, kind):
    assert asked_by(words, language).kind == kind


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
            ("fridge", "yeast", "why"),
            ("It rose in the fridge once.", "There was yeast in it.", "So it's the yeast, then."),
        ),
    ),
    moves=(
        Move(("oven*", "how do you know"), ("The oven was hot.", "I looked through the glass.")),
        Move(("oven*",), ("Heat makes it rise, I saw it.", "Heat it is."), holds_belief=True),
        Move(("grandmother",), ("She baked on Fridays.",)),
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


def talk(scenario: Scenario, tutor: Sequence[str], seed: int = 3) -> list[StudentReply]:
    exchanges: list[Exchange] = []
    said, replies = scenario.openings[0], []
    for words in tutor:
        exchanges.append(Exchange(student=said, tutor=words))
        replies.append(ScriptedStudent(scenario, seed).reply(exchanges))
        said = replies[-1].text
    return replies


def texts(tutor: Sequence[str], seed: int = 3) -> list[str]:
    """What the baker says, without the words it begins with now and then."""
    found = [reply.text for reply in talk(BREAD, tutor, seed)]
    own = [*own_sentences(BREAD).values(), *BREAD.voice.__struct_fields__]
    own += [line for name in ("unsure", "polar", "told", "filler", "moved")
            for line in getattr(BREAD.voice, name)]  # fmt: skip
    return [next(line for line in own if text.endswith(line)) for text in found]


def test_a_cue_draws_out_what_belongs_to_it_whenever_it_is_asked():
    says = BREAD.draws_out[0].says

    assert texts(["What about the fridge?", "And the grandmother?", "Was there yeast?"]) == [
        says[0],
        "She baked on Fridays.",
        says[1],
    ]
    assert texts(["Who was your grandmother?"]) == ["She baked on Fridays."]


def test_a_statement_draws_nothing_out_whatever_it_names():
    said = texts(["It is the yeast, and it works in the fridge.", "Your oven has nothing to do."])

    assert {*said} == {*BREAD.voice.told}


def test_an_insight_is_stated_only_when_its_matter_is_asked_about():
    why = ["What about the fridge?", *["Why?"] * 8]

    assert BREAD.draws_out[0].says[-1] not in texts(why)
    assert texts([*why, "What does the yeast do, then?"])[-1] == BREAD.draws_out[0].says[-1]


def test_an_insight_is_not_stated_to_a_question_for_a_yes():
    polar = ["Was it in the fridge?", *["Is it the yeast in the fridge?"] * 3]

    said = texts(polar)

    assert BREAD.draws_out[0].says[1] in said
    assert BREAD.draws_out[0].says[-1] not in said


def test_a_question_for_a_number_or_a_person_is_answered_by_one_or_not_remembered():
    recall = ("I never looked.", "It slipped my mind.")
    oven = Move(("oven",), ("The oven was hot.", "It took two hours to rise in there."))
    baker = replace(BREAD, moves=(oven,), voice=replace(BREAD.voice, recall=recall))

    (hours,) = talk(baker, ["How long was it in the oven?"])
    (_, again) = talk(baker, ["How long was it in the oven?", "How many hours did it rise?"])
    (_, other) = talk(baker, ["How long was it in the oven?", "How many hours do you sleep?"])
    forgotten = talk(baker, ["How many loaves do you bake?", "Who told you?", "What is blue?"])

    assert hours.text.endswith(oven.says[1])
    assert again.text.endswith(oven.says[1])
    assert other.text.endswith(recall)
    assert [one.text.endswith(recall) for one in forgotten] == [True, True, False]
    assert not any(one.is_filler for one in forgotten)

    said = talk(baker, ["How many hours did it rise in the oven?"] * 3)
    assert [one.text.endswith(oven.says[1]) for one in said] == [True] * 3
    assert [one.is_filler for one in said] == [False, False, True]


def test_of_a_group_the_sentence_comes_that_shares_words_with_the_question():
    baked = Move(("dough",), ("It stuck to my hands.", "I left it beside the chimney."))
    baker = replace(BREAD, moves=(baked, *BREAD.moves))

    by_cue = talk(baker, ["What did the dough do beside the chimney?", "And the dough?"])
    without = talk(baker, ["What was there at the chimney?"])

    assert [one.text.endswith(own) for one, own in zip(by_cue, baked.says[::-1], strict=True)] == [
        True
    ] * 2
    assert without[0].text.endswith(baked.says[1])


def test_a_student_of_any_prompt_answers_what_is_asked_too():
    scenario = load_builtin("custom")
    says = {one.cues[0]: one.says for one in scenario.moves}

    for seed in range(5):
        said = talk(scenario, ["Can you give me an example?", "How long has it been so?"], seed)
        other = talk(scenario, ["How long has it been so?", "Can you give me an example?"], seed)
        assert [one.text.endswith(says["example*"][0]) for one in (said[0], other[1])] == [True] * 2
        assert [one.text.endswith(says["how long"][0]) for one in (said[1], other[0])] == [True] * 2


def test_after_an_insight_the_old_view_does_not_come_back():
    seen = ["How about the fridge?", "What of the yeast?", "And what does the yeast do?"]
    after = texts([*seen, *["What about your oven?"] * 4, *["What is blue?"] * 4])[3:]

    assert {*after[:2]} == {"The oven was hot.", "I looked through the glass."}
    assert {*after[2:]} == {*BREAD.voice.moved}
    before = texts(["What about your oven?"] * 4)
    assert {*before} == {own for move in BREAD.moves[:2] for own in move.says}


@pytest.mark.parametrize(
    "name", [name for name in builtin_ids() if load_builtin(name).draws_out[0].says]
)
def test_every_insight_is_reached_by_questions_about_its_matter(name):
    scenario = load_builtin(name)
    for insight in scenario.draws_out:
        asked = [f"What about {cue.rstrip('*')}?" for cue in insight.cues]

        said = [reply.text for reply in talk(scenario, asked * 2)]

        assert [text for text in said if text.endswith(insight.says[-1])], insight.insight


@pytest.mark.parametrize("name", [name for name in builtin_ids() if load_builtin(name).moves])
def test_an_open_question_never_gets_a_yes_or_no(name):
    scenario = load_builtin(name)
    assert scenario.voice is not None
    if not scenario.language.startswith("en"):
        return

    asked = [(words, talk(scenario, [words], seed % 5)[0]) for seed, words in enumerate(OPEN)]

    polar = tuple(scenario.voice.polar)
    assert [(words, one.text) for words, one in asked if one.text.endswith(polar)] == []
    others = [one for one in asked if one[1].policy not in ("scripted", "answered_open")]
    assert others == []


def test_what_is_said_again_or_with_nothing_left_is_filler():
    replies = talk(BREAD, ["What is blue?"] * 5)

    assert [reply.is_filler for reply in replies] == [False, False, True, True, True]
    everything = ["And the grandmother?", "What about your oven?", "And the oven?",
                  *["Tell me of the oven."] * 2, "What of the fridge?"]  # fmt: skip
    replies = talk(BREAD, [*everything, *["And the yeast?"] * 2, "Is it?", "What now?", "Hm."])
    assert [reply.is_filler for reply in replies] == [False] * 8 + [True] * 3


@pytest.mark.parametrize("name", builtin_ids())
def test_seeds_differ_from_the_first_reply_on_and_so_does_what_tutors_ask(name):
    scenario = replace(load_builtin(name), closes_after=None, closing=None)
    if not scenario.moves:
        return
    questions = ["What makes you think so?", "Is that always so?", "How do you know?"] * 2

    by_seed = [tuple(one.text for one in talk(scenario, questions, seed)) for seed in range(12)]
    other = [one.text for one in talk(scenario, ["What if you are wrong?", *questions[1:]], 0)]

    first = [said[0] for said in by_seed]
    assert all(one != other for one, other in pairwise(first))
    assert len({*first}) >= 9
    assert len({*by_seed}) == 12
    assert other != [*by_seed[0]]
    again = tuple(one.text for one in talk(scenario, questions, 5))
    assert again == by_seed[5]


def test_a_file_without_cues_says_its_replies_in_order_to_questions_alone(tmp_path):
    example = (Path(__file__).parents[1] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    head = example[example.index("id = ") : example.index("[[draws_out]]")]
    replies = [f"I saw it float, number {n}." for n in range(6)]
    listed = ", ".join(f'"{reply}"' for reply in replies)
    path = tmp_path / "old.toml"
    path.write_text(head.replace("[student]", f"draws_out = []\nreplies = [{listed}]\n[student]"))
    scenario = load_file(path)

    tutor = ["Why?", "It is so.", "Is it?", *["What?"] * 4, "Who?", "You should go.", "Is it?"]
    found = talk(scenario, tutor)

    answers = [one for n, one in enumerate(found) if n not in (1, 8)]
    assert [one.text.endswith(own) for one, own in zip(answers, replies, strict=False)] == [
        True
    ] * 6
    assert [one.is_filler for one in found] == [False] * 7 + [True] * 3
    assert found[1].policy == "prompted"
    assert found[8].policy == "took_advice"


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
