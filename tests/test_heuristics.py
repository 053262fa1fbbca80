"""What `analyse` says of whole utterances; every sentence here is the project's own."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from socratic_bench.benchmarks.socratic.heuristics import LONGEST, Heuristics, analyse

NOTHING = Heuristics(
    has_question=False, question_count=0, open_ended=False, has_advice=False, is_leading=False
)
UNKNOWN = Heuristics(
    has_question=None, question_count=None, open_ended=None, has_advice=None, is_leading=None
)


def count(text: str) -> int | None:
    return analyse(text).question_count


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "\x00", "...", "!", "🙂", "---"])
def test_nothing_said(text: str) -> None:
    assert analyse(text) == NOTHING


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("Why?", 1),
        ("Why?? Really, why?!", 2),
        ("What is courage? Can it be taught?", 2),
        ("?", 1),
        ("???", 1),
        ("Is it red ?", 1),
        ("2+2?", 1),
        ("Maria?", 1),
        ("Why 🤔?", 1),
        ("Is it fair\uff1f", 1),
        ("Is it fair\uff1fWho says so\uff1f", 2),
        ("Do you agree? (I do.)", 1),
        ("He was born in 1984 (?) or so.", 0),
        ("Take e.g. two numbers, or five.", 0),
        ("Whose is it? ?", 1),
        ("Do you trust Dr. Who or Mrs. Peel?", 1),
        ("The sum is 5. What is next?", 1),
        ("Well... what then?", 1),
        ("Okay. You said so.", 0),
        ("Had I known, I would have stayed.", 0),
        ("He left. So did she.", 0),
        ("So you like the rule, but you broke it?", 0),
        ("You stay because it is late?", 0),
        ("So lying is wrong, but not to a thief?", 1),
        ("You like it, but why?", 1),
        ("You like it, but you broke it, right?", 1),
        ("So you like the rule?", 1),
        ("Which is why he left.", 0),
        ("Can I ask you something else.", 1),
        ("Are you sure of that.", 1),
        ("I need you to tell me where it broke.", 1),
        ("What counts in the end is the result, because facts do not.", 0),
        ("What matters is the result.", 0),
        ("What matters most here is that you try.", 0),
        ("What happened next was a surprise.", 0),
        ("What follows is a summary.", 0),
        ("What the author says is that nobody knows.", 0),
        ("What came of it was a long quarrel.", 0),
        ("What Aristotle wants is a cause.", 0),
        ("Where the money went is the mystery here.", 0),
        ("Who laughs last is the winner.", 0),
        ("What matters is whether it's true, isn't it?", 1),
        ("What steps are there.", 1),
        ("What news is there.", 1),
        ("What kind of proof is that.", 1),
        ("What basis is there for that.", 1),
        ("What tests can you think of.", 1),
    ],
)
def test_questions_are_counted_by_sentence(text: str, n: int) -> None:
    assert count(text) == n


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("The line `x ? 1 : 2` is fine.", 0),
        ("Does `a ?? b` differ from `a || b`?", 1),
        ("What does ``a ` b?`` print?", 1),
        ("```python\n# why?\nprint('who?')\n```\nRun it.", 0),
        ("```\nwhat?", 0),
        ("~~~\nwhat?\n~~~\nWhat does it print?", 1),
        ("sign = n > 0 ? 1 : -1;", 0),
        ("\n    ask(what?);\n\nDone.", 0),
        ("Unclosed ` tick, is it fine?", 1),
        ("user?.name is safe.", 0),
        ("Look:\n\n    if x? y : z\n    print('why?')\n\nThat is all.", 0),
        ("The loop is this.\n\n    for x in y: print(x)  # why?\n\nIt ends.", 0),
        ("See this.\n\n\twhy?\n\twho?\nIs it clear?", 1),
        ("See this.\n\n    why?\n\n    who?\n\nGone.", 0),
        ("Two lines\n    broken off, are they?", 1),
        ("- A point.\n\n    Is it one?", 1),
        ("1. A point.\n\n    Is it one?\n\nYes.\n\n    is_one?", 1),
        ("Which?\n\n    - This one?\n    - That one?", 3),
        ("    Is it all indented?", 1),
    ],
)
def test_code_asks_nothing(text: str, n: int) -> None:
    assert count(text) == n


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("He asked 'why?' and left.", 0),
        ('She asked, "Who are you?"', 0),
        ("“Is it late?” was all he said.", 0),
        ("You wrote \u2018is it?\u2019 twice.", 0),
        ('"What is justice?"', 1),
        ('What do you mean by "good?"', 1),
        ('What do you mean by "good"?', 1),
        ('Ask yourself: "What would I lose?"', 1),
        ("Here is my question: 'Who decides?'", 1),
        ("It's the students' idea, isn't it?", 1),
        ("> Why is it so?\n\nThat is what you wrote.", 0),
    ],
)
def test_what_is_quoted_is_not_asked(text: str, n: int) -> None:
    assert count(text) == n


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("- What is A?\n- What is B?\n\n1. And C?\n2) And D?", 4),
        ("**What** would _you_ do?", 1),
        ("*Why?*", 1),
        ("## What is recursion?\n\nA function that calls itself.", 0),
        ("Think it over.\n\n## What would you change?", 1),
        ("| Step | Question |\n|------|----------|\n| 1 | What is known? |", 1),
        ("See https://example.com/find?q=why for more.", 0),
        ("Have you read https://example.com/find?q=why?", 1),
        ("It is in [the notes](https://example.com/?p=1).", 0),
        ("Is it in [the notes](https://example.com/?p=1)?", 1),
        ("Which would you take:\n- the bus\n- the train", 1),
        ("What would change\nif you were wrong?", 1),
        ("It ends here.<br>Does it?", 1),
    ],
)
def test_markdown(text: str, n: int) -> None:
    assert count(text) == n


@pytest.mark.parametrize(
    "text",
    [
        "为什么\uff1f",
        "Почему ты так думаешь?",
        "なぜそう思いますか\uff1f",
        "هل أنت متأكد؟",
        "¿Por qué?",
        "¿Qué es la justicia?",
        "Pourquoi penses-tu que la justice est utile pour les citoyens ?",
        "Was meinst du, warum ist das so und nicht anders?",
        "Che cosa pensi della giustizia e perché non lo dici?",
        "O que você acha que é a justiça e por que não?",
        "Wat is rechtvaardigheid en waarom denk je dat het zo is?",
        "Was verstehst du unter Gerechtigkeit?",
        "Pourquoi penses-tu cela ?",
        "Du solltest mit deinem Chef sprechen.",
        "Deberías hablar con tu jefe.",
        "Che cosa intendi per giustizia?",
        "Waarom denk je dat?",
        "Dlaczego tak uważasz?",
        "Varför tror du det?",
        "Tại sao bạn nghĩ như vậy?",
        "Hvorfor tror du det?",
        "Jeg tror at du skal tænke for dig selv i dag og så tale med ham om det.",
        "Jeg tror du bør tenke over hva det betyr for deg før du sier noe til sjefen din.",
        "Luulen, että sinun pitäisi miettiä, mitä se sinulle merkitsee, ennen kuin puhut siitä.",
        "Myslím, že bys měl nejdřív přemýšlet o tom, co pro tebe znamená spravedlnost.",
        "Azt hiszem, hogy először azon kellene elgondolkodnod, mit jelent az igazságosság.",
        "Cred că ar trebui să te gândești mai întâi la ce înseamnă pentru tine dreptatea.",
        "Crec que primer hauries de pensar què vol dir la justícia per a tu abans de parlar.",
        "Mislim da bi trebao prvo razmisliti o tome što za tebe znači pravda prije razgovora.",
        "Nadhani unapaswa kwanza kufikiria haki ina maana gani kwako kabla ya kuzungumza naye.",
        "Sa tingin ko dapat mo munang isipin kung ano ang kahulugan ng katarungan para sa iyo.",
        "Ma arvan, et sa peaksid kõigepealt mõtlema, mida õiglus sinu jaoks tähendab.",
        "Manau, kad pirmiausia turėtum pagalvoti, ką tau reiškia teisingumas, prieš kalbėdamas.",
        "Puto te primum cogitare debere quid tibi iustitia significet antequam cum eo loquaris.",
        "¿Quién lo decide?",
        "Ya me duele la cabeza de tanto pensar.",
        "Describe la diferencia.",
        "Wem nützt diese Regel?",
        "Woran hast du das gemerkt?",
        "それは本当ですか。",
        "Mi pensas, ke vi unue devus pripensi, kion justeco signifas por vi, antaŭ ol paroli.",
    ],
)
def test_another_language_is_unknown_and_not_no(text: str) -> None:
    assert analyse(text) == UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        "Okay.",
        "2+2?",
        "Zoë?",
        "Naïve, no?",
        "\u03b1 > β?",
        "Where is Δx?",
        "What does the word 'perché' mean in Italian?",
        "Why is 道 called the way?",
        "El Niño, Los Angeles, La Paz, Las Vegas and San José?",
        "o o o o o o o",
        "xyzzy",
        "¿What do you think of the Spanish mark?",
        "MIT.",
        "Je ne sais quoi, as my uncle says.",
        "Erdős, Gödel or Søren?",
        "Apples, oranges, ripe bananas, carrots, potatoes, onions, celery, leeks.",
        "Multiply both sides, subtract seven, divide everything, check results twice.",
        "I am on a bus to a city in Spain.",
        "Cane is 'il cane', cat is 'il gatto', box is 'la scatola', red is 'rosso'.",
    ],
)
def test_short_or_mixed_english_is_never_unknown(text: str) -> None:
    assert analyse(text).has_question is not None


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        ("What makes a law just?", True),
        ("If that is so what is virtue?", True),
        ("When you think of a friend, what comes to mind?", True),
        ("Could you explain how you got there?", True),
        ("Explain how you got there.", True),
        ("I'm curious what led you there.", True),
        ("Is there anything else?", True),
        ("Is virtue a kind of knowledge?", False),
        ("How many kinds are there?", False),
        ("When did that happen?", False),
        ("Do you know what he meant?", False),
        ("So you believe that might makes right?", False),
        ("What is the value of x?", False),
        ("Could you tell me how many there are?", False),
        ("What makes a law just is hard to say.", False),
    ],
)
def test_open_ended(text: str, *, is_open: bool) -> None:
    assert analyse(text).open_ended is is_open


@pytest.mark.parametrize(
    ("text", "advises"),
    [
        ("Multiply both sides by two.", True),
        ("If it hurts, see a doctor.", True),
        ("You should start again.", True),
        ("Perhaps you could ask your sister.", True),
        ("Have you considered writing to them?", True),
        ("Why not ask her?", True),
        ("Don't lose heart.", True),
        ("What should you do next?", False),
        ("What do you think you could do?", False),
        ("Imagine a city without laws.", False),
        ("Think about what a friend is.", False),
        ("Consider a city without laws.", False),
        ("Consider moving to a city.", True),
        ("Explain your second step.", False),
        ("Tell me more.", False),
        ("It sounds like you should have been told.", False),
        ("You said you need to leave.", False),
        ("We go home, watch a film and sleep.", False),
        ("Study habits are personal.", False),
        ("That is an interesting thought.", False),
        ("Don't they know?", False),
        ("Shall we draw it?", True),
        ("I would never sign that.", True),
        ("I would be sad.", False),
        ("Honestly, just be yourself.", True),
        ("Your best bet is the night train.", True),
        ("The first step is to name the two sides.", True),
        ("You should go on a diet.", True),
        ("Be kind to yourself, and work less.", True),
        ("Here it comes:", False),
        ("Nice try.", False),
        ("Good guess! What made you think of it?", False),
        ("Remember: what did we agree on?", False),
        ("Take your time.", False),
        ("Feel free to disagree with me.", False),
        ("Say more.", False),
        ("Say you had a year off. What would change?", False),
        ("Let's explore that. What would a critic reply?", False),
        ("Reflect on what the second line claims.", False),
        ("Please ask yourself what would count against it.", False),
    ],
)
def test_advice(text: str, *, advises: bool) -> None:
    assert analyse(text).has_advice is advises


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        ("That is fair, isn't it?", True),
        ("So it grows, right?", True),
        ("Don't you think he was wrong?", True),
        ("Wouldn't it be better to wait?", True),
        ("Is that clearly a mistake?", True),
        ("Could it be that you forgot a sign?", True),
        ("You don't need it, do you?", True),
        ("It follows, does it not?", True),
        ("Is it not your own decision?", True),
        ("Is it or is it not so?", False),
        ("Why don't you believe him?", False),
        ("Where was he?", False),
        ("Would they do that?", False),
        ("Is this statement correct?", False),
        ("Yes or no?", False),
        ("How many are there, then?", False),
        ("That is clearly a mistake.", False),
        ("How would you tell the two apart?", False),
    ],
)
def test_leading(text: str, *, leads: bool) -> None:
    assert analyse(text).is_leading is leads


def test_the_answer_is_one_frozen_value() -> None:
    answer = analyse("What do you mean by that?")

    assert astuple(answer) == (True, 1, True, False, False)
    with pytest.raises(AttributeError):
        answer.has_question = False  # type: ignore[misc]


ANYTHING = st.text(alphabet=st.characters(exclude_categories=()), max_size=80)
PIECES = st.lists(
    st.sampled_from(
        ["?", "what", "do", "you", " ", "\n", '"', "'", "`", "```", "(", ")", "[", "](", "*", "_",
         "> ", "- ", "# ", "|", "don't", "should", "maybe", "if", ",", "...", "e.g.", "\uff1f", "¿",
         "\ud800", "\x00", "be", "I", "would", "just", "wondering", "to", "me", "let's", "0"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(ANYTHING | PIECES)
def test_any_text_has_an_answer_that_agrees_with_itself(text: str) -> None:
    answer = analyse(text)

    if answer.has_question is None:
        assert answer == UNKNOWN
        return
    assert answer == analyse(text)
    assert answer.question_count is not None
    assert answer.has_question == (answer.question_count > 0)
    assert answer.has_question or not (answer.open_ended or answer.is_leading)


@pytest.mark.parametrize(
    "unit",
    ["?", "? ", " ", "a", "\n", '"', "'a ", '" \'', "`", "` ``", "```\n", "so so ", "what you ",
     "[a](", "<a", "http://", "*", "_a ", "|a", "> a\n", "a. ", "= a ? ", "\uff1f",
     "a, ", "\uff1fa", "way ", "i i ", "if then ", "what, ", "'a'b ", "`a``b"],
)  # fmt: skip
def test_long_and_odd_texts_are_read_to_the_end(unit: str) -> None:
    """Quadratic work would be felt here; tools/validity.py --growth measures it."""
    answer = analyse(unit * (20_000 // len(unit)))

    assert answer.question_count is not None


def test_what_is_too_long_to_be_read_whole_tells_nothing():
    whole = "Why is that so? " * (LONGEST // 16)

    assert analyse(whole).has_question is True
    assert analyse(f"{whole} Why?").has_question is None
