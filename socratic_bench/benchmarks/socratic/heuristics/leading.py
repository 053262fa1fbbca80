"""Which questions lead: those that carry the answer they want.

Only the tags are checked against people's labels; the rest follows the rubric's red flags.
"""

from . import words as w
from .grammar import Ask, Rules, Sentence, says

_TAG_PRONOUN = w.listed("i you he she it we they there that")
_TAG_LENGTH = 2
_ALONE = w.listed("right correct")
_ends_with_check = says(
    r" (?:you know|that 's right|am i right"
    r"|is that (?:right|correct|so|what you (?:mean|said))|that what you mean) $"
)
_PRESUMED = w.listed(
    "realise realize realised realized notice admit stop refuse insist keep fail ignore"
)
_PRESUMING_WH = w.listed("when why how")


def _asked(sentence: Sentence) -> list[Ask]:
    return [clause.ask for clause in sentence.clauses if clause.ask]


def _tag(sentence: Sentence) -> bool:
    """Auxiliary and pronoun last: "isn't it", alone or after a statement."""
    words = sentence.words
    if len(words) < _TAG_LENGTH or words[-1] not in _TAG_PRONOUN or words[-2] not in w.AUXILIARY:
        return False
    last = sentence.clauses[-1].body
    weighed = words[-3:-2] == ("or",) and words[0] in w.AUXILIARY
    if weighed or not w.WH.isdisjoint(last):
        return False
    stated = last[:1] != () and last[0] not in w.AUXILIARY and words[-1] != "that"
    return len(last) == _TAG_LENGTH or words[-2] in w.NEGATED or stated


def _check(sentence: Sentence) -> bool:
    words = sentence.words
    if _ends_with_check(sentence):
        return True
    if not words or words[-1] not in w.TAGS or sentence.ask is not None:
        return False
    return words[-2] != "or" if len(words) > 1 else words[-1] in _ALONE


def _negated(sentence: Sentence) -> bool:
    return any(
        ask.polar and (ask.auxiliary in w.NEGATED or ask.rest[1:2] == ("not",))
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


LEADING: Rules = {
    "tag": _tag,
    "check for agreement": _check,
    "negated question": _negated,
    "loaded word": says(r" (?:clearly|obviously|surely|undoubtedly|evidently|of course) "),
    "suggested answer": says(
        r" (?:(?:could|might) it be that|(?:would you|do you|you would) agree"
        r"|would it be (?:better|best|wiser|easier)|is it because) "
    ),
    "presupposition": _presumed,
}
