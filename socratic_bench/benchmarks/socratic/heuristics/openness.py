"""Which questions leave the answer to the one who answers.

A question is open by its wh-word or by inviting a story; a short fact, yes or no close it.
"""

from . import words as w
from .grammar import Ask, Rules, Sentence, says
from .questions import telling, wondering

_FACT_WH = w.listed("when where who whose whom which")
_FACT_HEAD = w.listed(
    "many much long often old far big tall deep soon late early large fast time number day year"
    " date color colour grade age percent percentage size month week"
)
_AMOUNT = "|".join(sorted(_FACT_HEAD))
_FACT_NOUN = w.listed(
    "word name number answer result value sum total difference product time date color colour"
    " longest most unit formula"
)
# Of these nouns an account can be given, too, if they are not those of one thing.
_ACCOUNTED = w.listed("answer result value difference")
_DEFINITE = w.listed("the this that these those it") | {w.HOLE}
_GROUND = w.listed(
    "assumption assumptions reason reasons premise premises principle principles evidence belief"
    " beliefs argument arguments"
)
_RIGHT = w.listed("right wrong fair just okay acceptable justified good reasonable")
_asks_amount = says(rf" how (?:{_AMOUNT}) ")
_offers_room = says(
    r" (?:can|could|would|will|do) you (?:\S+ ){0,2}?(?:tell|describe|explain|share|elaborate|walk"
    r"|expand|give|talk (?:me|us|through)|say (?:more|a)|(?:help|let) me|show (?:me|us)|think of"
    rf"|mind (?:telling|sharing|explaining)) (?!(?:\S+ ){{0,3}}(?:{_AMOUNT}) )"
)
_wonders_whether = says(r" (?:wonder|wondered|wondering|curious|know|hear) (?:if|whether) ")


def _asks_wide(sentence: Sentence) -> bool:
    """The last question of the sentence decides: "if ..., and what would you do?"."""
    ask = sentence.ask
    return ask is not None and not ask.polar and not _short_fact(ask)


def _short_fact(ask: Ask) -> bool:
    """A place, a time, a person, an amount, or the name of a thing; not what a view rests on."""
    if ask.wh in _FACT_WH:
        grounds = ask.wh == "which" and ask.head in _GROUND
        right = ask.wh == "when" and ask.rest[:1] == ("it",) and not _RIGHT.isdisjoint(ask.rest)
        from_where = ask.rest[-2:] == ("come", "from") and ask.rest[0] not in w.PERSON
        return not (grounds or right or (ask.wh == "where" and from_where))
    if ask.head in _FACT_HEAD:
        return True
    if not ask.rest and not ask.head:
        return ask.wh == "what" and not ask.auxiliary
    naming = ask.wh == "what" and not ask.head and ask.auxiliary in {"is", "'s", "are", "was"}
    return naming and not _of_a_kind(ask.rest) and not _FACT_NOUN.isdisjoint(ask.rest[:4])


def _of_a_kind(rest: tuple[str, ...]) -> bool:
    """As in "the value of a promise": an account of a kind, not one value of one thing."""
    at = next((at for at, word in enumerate(rest[:4]) if word in _ACCOUNTED), len(rest))
    governed = rest[at + 2 :]
    symbols = (word for word in governed if word[0].isdigit() or (len(word) == 1 and word != "a"))
    return governed[:1] != () and governed[0] not in _DEFINITE and not any(symbols)


def _invites(sentence: Sentence) -> bool:
    ask = sentence.ask
    if ask is None or not ask.polar:
        return False
    return (ask.auxiliary in w.MODAL or ask.rest[1:2] == ("mind",)) and _offers_room(sentence)


def _tells_wide(sentence: Sentence) -> bool:
    return telling(sentence) and not _asks_amount(sentence)


def _wonders_wide(sentence: Sentence) -> bool:
    """Such as "I wonder what", "I'd like to hear about", but not "I wonder if"."""
    polar = sentence.ask is not None and sentence.ask.polar
    return wondering(sentence) and not polar and not _wonders_whether(sentence)


OPENING: Rules = {
    "wide wh-question": _asks_wide,
    "request to tell": _tells_wide,
    "invitation": _invites,
    "wondering what": _wonders_wide,
    "room for more": says(
        r" (?:(?:any|some)thing else|what else|(?:any|your) (?:thoughts|ideas)) "
    ),
}
