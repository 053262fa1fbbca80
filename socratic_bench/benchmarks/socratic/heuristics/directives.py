"""What directive sentences look like: a command without a subject, or a subject and its modal."""

from collections.abc import Iterator

from . import words as w
from .grammar import Clause, Sentence
from .rule import says_any

_YOU = frozenset({"you", "u", "ya"})
_WE = frozenset({"we"})
_PEOPLE = w.listed("people everyone everybody someone somebody one")
_SPEAKER = frozenset({"i"})
_DUTY = w.listed("should shouldn't ought must gotta")
_NEED = w.listed("need needs have has got want better")
_STATIVE = w.listed("be see hear have tell imagine get")
_GOOD = w.listed(
    "good nice great better best easier useful helpful interesting worth ideal wise smart"
)
# Commands to the mind or for words: to follow them is to think or to answer, not to do.
_TO_THE_MIND = w.listed(
    "imagine suppose assume guess hope mean note hear believe thank excuse forgive wish picture"
    " know remember recall notice worry think reflect describe explain elaborate"
)
# "Say you had one wish" supposes, "say more" asks.
_NOT_SAID = w.PRONOUN | {"more", "a", "that"}
_ASKED_OF_ONESELF = frozenset({"ask", "tell", "remind"})
# "I would think" says what the speaker feels, "I would ask" what the speaker would do.
_FEELING = w.listed(
    "think love like say imagine hope guess appreciate feel know believe understand want enjoy"
    " assume expect call bet see have be"
)
# After these a clause depends on another: "so you can", "things you could".
_SUBORDINATE = w.listed(
    "that so what which where as if when because how why whatever until once who than things thing"
    " way everything all anything something whether wherever"
)
_ADVERB = w.listed(
    "just always also really probably actually still definitely maybe perhaps all both simply only"
    " then certainly even guys"
)
_VERDICT_MODAL = w.listed("would might could may 'd")
_HEDGE = frozenset({"maybe", "perhaps"})
_HEDGED = w.VERB | {"we", "you", "just", "have", "do", "to", "even", "use"}
_ELLIPTIC = w.listed("can could might should")
_PROPOSALS = frozenset(
    {("why", "don't", "you"), ("why", "don't", "we"), ("what", "if", "you"), ("what", "if", "we")}
)
_ABOUT = frozenset({("how", "about"), ("what", "about")})
_TALKING = w.listed("telling sharing describing explaining tell share describe explain")
_CONDITION = frozenset({"if", "when", "once"})
_NOT_BEFORE_TRY = w.listed("to i we they always who not people")
_TRIED = w.listed("tried considered try consider")


def _said_of(sentence: Sentence, subjects: frozenset[str]) -> Iterator[tuple[str, ...]]:
    for clause in sentence.clauses:
        if clause.ask is None:
            yield from _after(clause.words, subjects)


def _after(words: tuple[str, ...], subjects: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """What follows each of the subjects, adverbs left out, where its clause depends on no other."""
    for at, word in enumerate(words):
        if word in subjects and not (at and words[at - 1] in _SUBORDINATE):
            here = at + 1
            while here < min(len(words), at + 3) and words[here] in _ADVERB:
                here += 1
            if here < len(words):
                yield words[here : here + 4]


def _declared(sentence: Sentence) -> Iterator[tuple[str, ...]]:
    """The clauses that do not ask: "what should I do" tells nobody to do anything."""
    return (clause.words for clause in sentence.clauses if clause.ask is None)


def commands(sentence: Sentence) -> bool:
    return any(_commands(clause) for clause in sentence.clauses)


def _commands(clause: Clause) -> bool:
    after = clause.body[1:2]
    if clause.command == "consider":
        return after != () and after[0].endswith("ing")
    if clause.command == "say":
        return after != () and after[0] not in _NOT_SAID
    told = clause.command != "" and clause.command not in _TO_THE_MIND
    asked = clause.command in _ASKED_OF_ONESELF and after == ("yourself",)
    return told and not asked and after not in {("me",), ("us",)}


def commands_late(sentence: Sentence) -> bool:
    return any(
        _command_at(words, at) for words in _declared(sentence) for at in range(1, len(words) - 1)
    )


def _command_at(words: tuple[str, ...], at: int) -> bool:
    word, following = words[at], words[at + 1]
    if word in {"just", "then", "please", "simply"}:
        return following in w.VERB and (word == "please" or words[0] in _CONDITION)
    trying = word == "try" or (word == "consider" and following.endswith("ing"))
    if not trying and (word, following) != ("make", "sure"):
        return False
    return words[at - 1] not in w.AUXILIARY and words[at - 1] not in _NOT_BEFORE_TRY


_THINKING_TOGETHER = (
    " let 's see ", " let 's say ", " let 's assume ", " let 's suppose ", " let 's imagine ",
    " let 's think ", " let 's reflect ", " let 's explore ", " let 's examine ",
    " let 's consider ", " let 's unpack ", " let 's pause ",
)  # fmt: skip


def invites_jointly(sentence: Sentence) -> bool:
    if says_any(sentence, (" shall we ",)):
        return True
    return says_any(sentence, (" let 's ",)) and not says_any(sentence, _THINKING_TOGETHER)


def obliges(sentence: Sentence) -> bool:
    told = any(said[0] in _DUTY for said in _said_of(sentence, _YOU | _WE | _PEOPLE))
    return told or any(_ought(words) for words in _declared(sentence))


def _ought(words: tuple[str, ...]) -> bool:
    """Yes to "it should be shorter", but to neither "I should" nor "should have been"."""
    return any(
        word in {"should", "shouldn't"}
        and words[at - 1] not in _SUBORDINATE
        and words[at - 1] != "i"
        and words[at + 1 : at + 2] != ("have",)
        for at, word in enumerate(words)
        if at
    )


def needs(sentence: Sentence) -> bool:
    return any(_needs_to(said) for said in _said_of(sentence, _YOU | _WE))


def _needs_to(said: tuple[str, ...]) -> bool:
    """As in "need to", "'ve got to", "might want to", "'d better"."""
    if said[0] in w.MODAL or said[0] == "'ve":
        said = said[1:]
    return said[:1] == ("better",) or (said[1:2] == ("to",) and said[0] in _NEED)


def gives_option(sentence: Sentence) -> bool:
    if any(said[0] in {"can", "could", "might"} for said in _said_of(sentence, _WE)):
        return True
    for said in _said_of(sentence, _YOU):
        if said[0] in {"can", "could"} and said[1:2] and said[1] not in _STATIVE:
            return True
    return sentence.mark != "?" and any(_elliptic(clause.body) for clause in sentence.clauses)


def _elliptic(body: tuple[str, ...]) -> bool:
    """As in "Could try it again.": an option without its subject."""
    return len(body) > 1 and body[0] in _ELLIPTIC and body[1] in w.VERB


def in_your_place(sentence: Sentence) -> bool:
    for said in _said_of(sentence, _SPEAKER):
        if said[0] in {"would", "'d", "wouldn't"}:
            verb = next((word for word in said[1:] if not _adverbial(word)), "")
            if verb in w.VERB and verb not in _FEELING:
                return True
    return False


def _adverbial(word: str) -> bool:
    return word in _ADVERB or word in {"not", "never"} or w.is_adverb(word)


def hedges(sentence: Sentence) -> bool:
    return any(
        word in _HEDGE and (at == 0 or clause.words[at + 1 : at + 2] in _HEDGED_NEXT)
        for clause in sentence.clauses
        for at, word in enumerate(clause.words)
    )


_HEDGED_NEXT = frozenset({(word,) for word in _HEDGED} | {()})


def proposes(sentence: Sentence) -> bool:
    return any(_proposes(clause.body) for clause in sentence.clauses)


def _proposes(body: tuple[str, ...]) -> bool:
    if body[:3] in _PROPOSALS:
        return _TALKING.isdisjoint(body)
    if body[:2] == ("why", "not"):
        return body[2:] != ()
    return body[:2] in _ABOUT and body[2:] != () and body[2].endswith("ing")


def praises_beforehand(sentence: Sentence) -> bool:
    """As in "might also be useful": the modal of a proposal, then a word of praise."""
    words = sentence.words
    return sentence.ask is None and any(
        word == "be"
        and not _VERDICT_MODAL.isdisjoint(words[max(0, at - 2) : at])
        and not _GOOD.isdisjoint(words[at + 1 : at + 4])
        for at, word in enumerate(words)
    )


def asks_whether_tried(sentence: Sentence) -> bool:
    return any(
        clause.ask.auxiliary in {"have", "did"}
        and not _TRIED.isdisjoint(clause.ask.rest[1:4])
        and any(word.endswith("ing") for word in clause.ask.rest[2:5])
        for clause in sentence.clauses
        if clause.ask and clause.ask.polar
    )
