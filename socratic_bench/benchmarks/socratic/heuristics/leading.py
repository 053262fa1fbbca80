"""Which questions lead: those that carry the answer they want.

Only the tags are checked against people's labels; the rest follows the rubric's red flags.
"""

from . import words as w
from .grammar import Ask, Sentence
from .rule import Rule, any_holds, says_any

_TAG_PRONOUN = w.listed("i you he she it we they there that")
_TAG_LENGTH = 2
_TAG_WORDS = w.listed("right correct huh eh innit no yeah yes true")
_ALONE = frozenset({"right", "correct"})
_CHECKS = (
    " you know ", " is that right ", " that 's right ", " is that correct ",
    " is that what you mean ", " that what you mean ", " is that what you said ", " is that so ",
    " am i right ", " wouldn't that be ",
)  # fmt: skip
_LOADED = w.listed("clearly obviously surely undoubtedly evidently plainly")
_ASSENT = (
    " would you agree ", " do you agree that ", " you would agree ", " you 'd agree ",
    " can we agree ", " will you admit ",
)  # fmt: skip
_SUGGESTED = frozenset(
    {("could", "it", "be"), ("might", "it", "be"), ("is", "it", "because"),
     ("was", "it", "because"), ("is", "it", "possible"), ("could", "the", "answer")}
)  # fmt: skip
_BETTER = w.listed("better best wiser smarter easier healthier safer")
_PRESUMED = w.listed(
    "realise realize realised realized notice admit stop refuse insist keep fail ignore"
)
_PRESUMING_WH = frozenset({"when", "why", "how"})


def leads(sentence: Sentence) -> bool:
    return any_holds(LEADING, sentence)


def _asked(sentence: Sentence) -> list[Ask]:
    return [clause.ask for clause in sentence.clauses if clause.ask]


def _tag(sentence: Sentence) -> bool:
    """Auxiliary and pronoun last: "isn't it", alone or after a statement."""
    words = sentence.words
    if len(words) < _TAG_LENGTH or words[-1] not in _TAG_PRONOUN or words[-2] not in w.AUXILIARY:
        return False
    last = sentence.clauses[-1].body
    if not w.WH.isdisjoint(last):
        return False
    if words[-3:-2] == ("or",) and words[0] in w.AUXILIARY:
        return False
    stated = last[0] not in w.AUXILIARY and words[-1] != "that" if last else False
    return len(last) == _TAG_LENGTH or words[-2] in w.NEGATED or stated


def _check(sentence: Sentence) -> bool:
    words = sentence.words
    if any(sentence.line.endswith(phrase) for phrase in _CHECKS):
        return True
    if not words or words[-1] not in _TAG_WORDS or sentence.ask is not None:
        return False
    return words[-2] != "or" if len(words) > 1 else words[-1] in _ALONE


def _negated(sentence: Sentence) -> bool:
    return any(
        ask.polar and (ask.auxiliary in w.NEGATED or ask.rest[1:2] == ("not",))
        for ask in _asked(sentence)
    )


def _loaded(sentence: Sentence) -> bool:
    return not _LOADED.isdisjoint(sentence.words) or says_any(sentence, (" of course ",))


def _assent(sentence: Sentence) -> bool:
    return says_any(sentence, _ASSENT)


def _suggested(sentence: Sentence) -> bool:
    return any(
        ask.polar and (ask.auxiliary, *ask.rest[:2]) in _SUGGESTED for ask in _asked(sentence)
    )


def _weighed(sentence: Sentence) -> bool:
    return any(
        ask.polar and ask.rest[:1] == ("it",) and not _BETTER.isdisjoint(ask.rest[1:5])
        for ask in _asked(sentence)
    )


def _presumed(sentence: Sentence) -> bool:
    """Of "you" only: "when does it stop" is about the world, "how would you stop it" open."""
    return any(
        ask.wh in _PRESUMING_WH
        and ask.auxiliary not in w.MODAL
        and ask.rest[:1] == ("you",)
        and not _PRESUMED.isdisjoint(ask.rest[1:3])
        for ask in _asked(sentence)
    )


LEADING = (
    Rule(
        name="tag",
        because="a statement with a tag asks only to be confirmed",
        example="That settles it, doesn't it?",
        counterexample="How heavy was it?",
        holds=_tag,
    ),
    Rule(
        name="check for agreement",
        because='"right?" after a statement leaves one polite answer',
        example="So the two sides are equal, right?",
        counterexample="Which of the two sides is right?",
        holds=_check,
    ),
    Rule(
        name="negated question",
        because='"don\'t you think" holds the answer that is hoped for',
        example="Don't you think that rule is unfair?",
        counterexample="Why don't you like that rule?",
        holds=_negated,
    ),
    Rule(
        name="loaded word",
        because="what is called obvious is not up for question",
        example="Is that obviously a mistake?",
        counterexample="Is that a mistake?",
        holds=_loaded,
    ),
    Rule(
        name="call for assent",
        because="it asks for agreement and not for a view",
        example="Would you agree that virtue can be taught?",
        counterexample="Would you say that virtue can be taught?",
        holds=_assent,
    ),
    Rule(
        name="suggested answer",
        because="the answer stands in the question, with a 'could it be' before it",
        example="Could it be that you forgot the minus sign?",
        counterexample="Could you look at the signs again?",
        holds=_suggested,
    ),
    Rule(
        name="better way",
        because="a yes or no about what is better names the better way",
        example="Would it be better to wait a year?",
        counterexample="Which of them would be better?",
        holds=_weighed,
    ),
    Rule(
        name="presupposition",
        because='"when did you realise" takes for granted that you did',
        example="When did you realise that the plan was bad?",
        counterexample="When did the plan stop working?",
        holds=_presumed,
    ),
)
