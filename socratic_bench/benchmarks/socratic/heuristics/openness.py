"""Which questions leave the answer to the one who answers.

A question is open by its wh-word or by inviting a story; a short fact, yes or no close it.
"""

from . import words as w
from .grammar import Ask, Sentence
from .questions import proposing, telling, wondering
from .rule import Rule, any_holds, says_any

_FACT_WH = w.listed("when where who whose whom which")
_FACT_HEAD = w.listed(
    "many much long often old far big tall deep soon late early large fast time number day year"
    " date color colour grade age percent percentage size month week"
)
_FACT_NOUN = w.listed(
    "word name number answer result value sum total difference product time date color colour"
    " longest most unit formula"
)
# Of these nouns an account can be given, too, if they are not those of one thing.
_ACCOUNTED = w.listed("answer result value difference")
_DEFINITE = w.listed("the this that these those your my his her its our their it each")
_GOVERNED = 2
_GROUND = w.listed(
    "assumption assumptions reason reasons premise premises principle principles evidence belief"
    " beliefs consideration considerations argument arguments"
)
_PERSON = w.listed("you he she they we i it")
_RIGHT = w.listed("right wrong fair just okay ok acceptable justified good reasonable permissible")
_AMOUNTS = tuple(f" how {head} " for head in sorted(_FACT_HEAD))
_OFFER = w.listed("can could would will")
_STORY = w.listed("tell describe explain share elaborate walk expand give")
_STORY_PAIRS = frozenset(
    {("talk", "me"), ("talk", "us"), ("talk", "through"), ("say", "more"), ("help", "me"),
     ("show", "me"), ("show", "us"), ("say", "a"), ("let", "me"), ("mind", "telling"),
     ("mind", "sharing"), ("mind", "explaining"), ("think", "of")}
)  # fmt: skip
_ROOM = (
    " anything else ", " any thoughts ", " any ideas ", " what else ", " something else ",
    " your thoughts ",
)  # fmt: skip
_SETTLING = frozenset({"if", "we", "i"})
_WHETHER = (
    " wonder if ", " wondered if ", " wondering if ", " curious if ", " know if ",
    " wonder whether ", " wondering whether ", " know whether ", " hear whether ",
    " curious whether ",
)  # fmt: skip


def is_open(sentence: Sentence) -> bool:
    return any_holds(OPENING, sentence)


def _asks_wide(sentence: Sentence) -> bool:
    """The last question of the sentence decides: "if ..., and what would you do?"."""
    ask = sentence.ask
    return ask is not None and not ask.polar and not _short_fact(ask)


def _short_fact(ask: Ask) -> bool:
    """A place, a time, a person, an amount, or the name of a thing."""
    if ask.wh in _FACT_WH:
        return not _of_reasons(ask)
    if ask.head in _FACT_HEAD:
        return True
    if not ask.rest and not ask.head:
        return ask.wh == "what" and not ask.auxiliary
    naming = ask.wh == "what" and not ask.head and ask.auxiliary in {"is", "'s", "are", "was"}
    noun = next((at for at, word in enumerate(ask.rest[:4]) if word in _FACT_NOUN), -1)
    return naming and noun >= 0 and not _in_general(ask.rest[noun:])


def _of_reasons(ask: Ask) -> bool:
    """Asks where a view comes from, on which assumption it rests, when something is right."""
    if ask.wh == "which":
        return ask.head in _GROUND
    if ask.wh == "where":
        return ask.rest[-2:] == ("come", "from") and ask.rest[0] not in _PERSON
    return (
        ask.wh == "when"
        and ask.rest[:1] == ("it",)
        and ask.rest[1:2] != ()
        and (ask.rest[1] in _RIGHT and "to" in ask.rest)
    )


def _in_general(noun: tuple[str, ...]) -> bool:
    """As in "the value of a promise": an account of a kind, not one value of one thing."""
    if noun[0] not in _ACCOUNTED or len(noun) <= _GOVERNED or noun[1] not in w.PREPOSITION:
        return False
    definite = noun[2] in _DEFINITE and noun[1] != "between"
    return not definite and not any(map(_symbol, noun[2:]))


def _symbol(word: str) -> bool:
    return word == w.HOLE or word[0].isdigit() or (len(word) == 1 and word not in {"a", "i"})


def _invites(sentence: Sentence) -> bool:
    ask = sentence.ask
    if ask is None or not ask.polar or ask.rest[:1] != ("you",):
        return False
    verbs = [at for at in range(1, min(4, len(ask.rest))) if _storytelling(ask.rest, at)]
    offered = ask.auxiliary in _OFFER or ask.rest[1:2] == ("mind",)
    return offered and bool(verbs) and _FACT_HEAD.isdisjoint(ask.rest[verbs[0] : verbs[0] + 4])


def _storytelling(words: tuple[str, ...], at: int) -> bool:
    return words[at] in _STORY or words[at : at + 2] in _STORY_PAIRS


def _tells_wide(sentence: Sentence) -> bool:
    return telling(sentence) and not says_any(sentence, _AMOUNTS)


def _wonders_wide(sentence: Sentence) -> bool:
    """Such as "I wonder what", "I'd like to hear about", but not "I wonder if"."""
    if not wondering(sentence) or (sentence.ask and sentence.ask.polar):
        return False
    return not says_any(sentence, _WHETHER)


def _proposes_wide(sentence: Sentence) -> bool:
    """Such as "how about your plans"; yes or no would settle "how about if we met"."""
    settled = sentence.ask is not None and sentence.ask.polar
    return proposing(sentence) and not settled and _SETTLING.isdisjoint(sentence.words[2:5])


def _gives_room(sentence: Sentence) -> bool:
    return says_any(sentence, _ROOM)


OPENING = (
    Rule(
        name="wide wh-question",
        because="what, why and how ask for an account, unless a short fact is all they want",
        example="Why does that follow?",
        counterexample="How many steps does that take?",
        holds=_asks_wide,
    ),
    Rule(
        name="request to tell",
        because="what is told is as long as the teller likes",
        example="Walk me through your second step.",
        counterexample="Walk the dog, will you?",
        holds=_tells_wide,
    ),
    Rule(
        name="invitation",
        because="yes or no would be an answer by the form, but nobody stops there",
        example="Can you tell me more about that?",
        counterexample="Can you lift that?",
        holds=_invites,
    ),
    Rule(
        name="wondering what",
        because="the speaker names what they want to hear about, and only that",
        example="I wonder what that would change for you.",
        counterexample="I wonder if that would change.",
        holds=_wonders_wide,
    ),
    Rule(
        name="topic offered",
        because='"what about ..." puts up a topic and leaves the rest to the listener',
        example="What about your other reasons?",
        counterexample="How about we stop here?",
        holds=_proposes_wide,
    ),
    Rule(
        name="room for more",
        because="whoever asks for anything else has named nothing",
        example="Is there anything else on your mind?",
        counterexample="Is there one thing on your mind?",
        holds=_gives_room,
    ),
)
