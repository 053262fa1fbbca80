"""What directive sentences look like: a command without a subject, or a subject and its modal."""

from collections.abc import Iterator

from . import words as w
from .grammar import Clause, Sentence
from .moves import holds_the_talk, moves_the_talk
from .views import declared, states

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
    " know remember recall notice worry think reflect describe explain elaborate ponder wonder"
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
_VERDICT_MODAL = w.listed("would might could may 'd")
_NEAR = 4
# What one wants to be or to know, one wants already.
_WISHED = w.listed("be know understand feel believe have find see hear live make give")
_COURSE = w.listed("way ways step approach option strategy solution trick key thing bet move start")
_BEING = frozenset({"be", "is", "'s"})
_COURSE_REACH = 9
_HEDGE = frozenset({"maybe", "perhaps"})
_HEDGED = w.VERB | {"we", "you", "just", "have", "do", "to", "even", "use"}
_JOINTLY = frozenset({("let", "'s"), ("shall", "we")})
_ELLIPTIC = w.listed("can could might should")
_PROPOSALS = frozenset(
    {("why", "don't", "you"), ("why", "don't", "we"), ("what", "if", "you"), ("what", "if", "we")}
)
_ABOUT = frozenset({("how", "about"), ("what", "about")})
_TALKING = w.listed("telling sharing describing explaining tell share describe explain")
_NO_DEED = w.listed(
    "being having something anything everything nothing thing morning evening feeling meaning"
    " reasoning thinking living learning understanding knowing teaching writing"
)
_CONDITION = frozenset({"if", "when", "once"})
_NOT_BEFORE_TRY = w.listed("to i we they always who not people me")
_TRIED = w.listed("tried considered try consider thought")


def _said_of(sentence: Sentence, subjects: frozenset[str]) -> Iterator[tuple[str, ...]]:
    if _restates(sentence):
        subjects &= _WE
    for clause in sentence.clauses:
        if states(clause):
            opening = clause.start if clause is sentence.clauses[0] else 0
            yield from _after(clause.words, subjects, opening)


def _restates(sentence: Sentence) -> bool:
    """As in "so you have to obey?": the listener's own conclusion, held up to be confirmed."""
    return sentence.mark == "?" and sentence.words[:1] == ("so",)


def _after(
    words: tuple[str, ...], subjects: frozenset[str], opening: int
) -> Iterator[tuple[str, ...]]:
    """What follows each of the subjects, adverbs left out, where its clause depends on no other.

    A "so" among the first `opening` words only goes on; in "a day, so you could" it subordinates.
    """
    for at, word in enumerate(words):
        goes_on = at <= opening and words[at - 1] == "so"
        if word in subjects and (not at or goes_on or words[at - 1] not in _SUBORDINATE):
            here = at + 1
            while here < min(len(words), at + 3) and words[here] in w.ADVERB:
                here += 1
            if here < len(words):
                yield words[here : here + 5]


def commands(sentence: Sentence) -> bool:
    return any(_commands(clause) for clause in sentence.clauses)


def _commands(clause: Clause) -> bool:
    after = clause.body[1:2]
    if clause.command == "consider":
        return after != () and after[0].endswith("ing")
    if clause.command in w.CONSIDERING and _then_acts(clause.body):
        return True
    if clause.command == "remember" and after == ("to",):
        return True
    if clause.command == "say":
        return after != () and after[0] not in _NOT_SAID
    told = clause.command != "" and clause.command not in _TO_THE_MIND
    if told and holds_the_talk(clause.body[clause.body.index(clause.command) :]):
        return False
    asked = clause.command in _ASKED_OF_ONESELF and after == ("yourself",)
    return told and not asked and after not in {("me",), ("us",)}


def _then_acts(body: tuple[str, ...]) -> bool:
    """As in "think about moving", "reflect on it and write a page": a deed after the thought."""
    for before, word, after in zip(body, body[1:], body[2:], strict=False):
        if word == "about" and before in w.CONSIDERING and _deed(after):
            return True
        acts = word in w.VERB and word not in _TO_THE_MIND and word not in _TALKING
        if before == "and" and acts and (after in w.DETERMINER or after in w.OBJECT):
            return w.PRONOUN.isdisjoint(body[: body.index("and")])
    return False


def _deed(word: str) -> bool:
    return word.endswith("ing") and word not in _NO_DEED


def commands_late(sentence: Sentence) -> bool:
    return any(
        _command_at(words, at) for words in declared(sentence) for at in range(1, len(words) - 1)
    )


def _command_at(words: tuple[str, ...], at: int) -> bool:
    word, following = words[at], words[at + 1]
    if word in {"just", "then", "please", "simply"}:
        return following in w.VERB and (word == "please" or words[0] in _CONDITION)
    trying = word == "try" or (word == "consider" and following.endswith("ing"))
    if not trying and (word, following) != ("make", "sure"):
        return False
    if following == "to" and not w.THINKING.isdisjoint(words[at + 2 : at + 3]):
        return False
    return words[at - 1] not in w.AUXILIARY and words[at - 1] not in _NOT_BEFORE_TRY


def invites_jointly(sentence: Sentence) -> bool:
    return any(
        clause.words[at : at + 2] in _JOINTLY and not moves_the_talk(clause.words[at + 2 :])
        for clause in sentence.clauses
        for at in range(len(clause.words) - 1)
    )


def obliges(sentence: Sentence) -> bool:
    told = any(said[0] in _DUTY for said in _said_of(sentence, w.YOU | _WE | _PEOPLE))
    return told or (not _restates(sentence) and any(_ought(words) for words in declared(sentence)))


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
    return any(_needs_to(said) for said in _said_of(sentence, w.YOU | _WE))


def _needs_to(said: tuple[str, ...]) -> bool:
    """As in "need to", "'ve got to", "might want to", "'d better"."""
    if said[:2] == ("want", "to") and not _WISHED.isdisjoint(said[2:]):
        return False
    if said[0] in w.MODAL or said[0] == "'ve":
        said = said[2:] if said[1:2] != () and w.is_adverbial(said[1]) else said[1:]
    return said[:1] == ("better",) or (said[1:2] == ("to",) and said[0] in _NEED)


def gives_option(sentence: Sentence) -> bool:
    if any(said[0] in {"can", "could", "might"} for said in _said_of(sentence, _WE)):
        return True
    for said in _said_of(sentence, w.YOU):
        if said[0] in {"can", "could"} and said[1:2] and said[1] not in _STATIVE:
            return True
    return sentence.mark != "?" and any(_elliptic(clause.body) for clause in sentence.clauses)


def _elliptic(body: tuple[str, ...]) -> bool:
    """As in "Could try it again.": an option without its subject."""
    return len(body) > 1 and body[0] in _ELLIPTIC and body[1] in w.VERB


def in_your_place(sentence: Sentence) -> bool:
    for said in _said_of(sentence, _SPEAKER):
        if said[0] in {"would", "'d", "wouldn't"}:
            verb = next((word for word in said[1:] if not w.is_adverbial(word)), "")
            if verb in w.VERB and verb not in _FEELING:
                return True
    return False


def hedges(sentence: Sentence) -> bool:
    return any(_hedges(clause.words, at) for clause in sentence.clauses for at in _hedged(clause))


def _hedged(clause: Clause) -> Iterator[int]:
    """What follows each hedge that stands first, last or twice; "maybe" alone hedges nothing."""
    for at, word in enumerate(clause.words):
        following = clause.words[at + 1 : at + 2]
        if word in _HEDGE and (at == 0 or following in _HEDGED_NEXT):
            yield at + 1


def _hedges(words: tuple[str, ...], at: int) -> bool:
    """A bare idea, or one for later: "maybe it was late" only guesses at a fact."""
    idea = words[at:] if at < len(words) else words[: at - 1]
    if not idea or idea in _BARE_HEDGE:
        return False
    return _FACTUAL.isdisjoint(idea[:_NEAR])


_BARE_HEDGE = frozenset({("so",), ("not",), ("and",), ("but",)})
_FACTUAL = w.listed("is are was were 's 're did had")
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
    """As in "might also be useful", "could help to": a proposal's modal, then praise or help."""
    words = sentence.words
    return sentence.ask is None and any(
        not _VERDICT_MODAL.isdisjoint(words[max(0, at - 2) : at])
        and (
            not _GOOD.isdisjoint(words[at + 1 : at + 4])
            if word == "be"
            else words[at + 1 : at + 2] == ("to",)
        )
        for at, word in enumerate(words)
        if word in {"be", "help"}
    )


def names_course(sentence: Sentence) -> bool:
    """As in "one way is to", "a good first step would be to", "what you can do is ask"."""
    return any(
        word in _COURSE and _is_to(words[at + 1 : at + _COURSE_REACH])
        for words in declared(sentence)
        for at, word in enumerate(words)
    )


def _is_to(words: tuple[str, ...]) -> bool:
    """The first "is" after the course decides: "is to", "is not to", "you can do is ask"."""
    at = next((at for at, word in enumerate(words) if word in _BEING), len(words))
    bare = (
        words[at - 1 : at] == ("do",) and words[at + 1 : at + 2] != () and words[at + 1] in w.VERB
    )
    return bare or "to" in words[at + 1 : at + 3]


def asks_whether_tried(sentence: Sentence) -> bool:
    return any(
        clause.ask.auxiliary in {"have", "did"}
        and not _TRIED.isdisjoint(clause.ask.rest[1:4])
        and any(word.endswith("ing") for word in clause.ask.rest[2:5])
        for clause in sentence.clauses
        if clause.ask and clause.ask.polar
    )
