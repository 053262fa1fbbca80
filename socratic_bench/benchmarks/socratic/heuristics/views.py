"""In whose name a clause speaks: the speaker's own, or another's view, a question, a thought."""

from collections.abc import Iterable, Iterator

from . import words as w
from .grammar import Clause, Sentence
from .rule import says_any

# "Your view is that ...": a view with its owner, handed back.
_IN_A_VIEW = (
    " according to you ", " according to your ", " according to his ", " according to her ",
    " according to their ", " in your view ", " on your view ", " in your opinion ",
    " by your rule ", " your rule says ", " your claim is ", " your view is ",
)  # fmt: skip
_HOLDING = w.listed("think believe hold claim argue assume maintain suspect say said")
_HELD = w.listed(
    "thinks thought believes believed argues argued claims claimed holds held says said maintains"
    " maintained insists insisted taught teaches believe think argue claim say"
)
_NO_HOLDER = w.DETERMINER | w.AUXILIARY | w.LEAD | w.listed("who to not being that second")
_EARLY = 5
_UNREAL = frozenset({("were", "true"), ("is", "true"), ("were", "so"), ("were", "false")})


def states(clause: Clause) -> bool:
    """In the speaker's own name, unlike "what should I do", "suppose you could", "she held"."""
    return clause.ask is None and clause.command not in w.SUPPOSING and not _attributes(clause)


def _attributes(clause: Clause) -> bool:
    """Says whose view it is, unless it is the speaker's own: "you think", "the judge held"."""
    body = clause.body
    if not body or clause.command or body[0] in w.CONJUNCTION:
        return False
    if body[0] in w.YOU:
        return next((word for word in body[1:4] if not w.is_adverbial(word)), "") in _HOLDING
    return any(
        body[at] in _HELD and body[at - 1] not in _NO_HOLDER and w.SPEAKERS.isdisjoint(body[:at])
        for at in range(1, min(_EARLY, len(body)))
    )


def declared(sentence: Sentence) -> Iterator[tuple[str, ...]]:
    return (clause.words for clause in sentence.clauses if states(clause))


def states_any(sentence: Sentence, phrases: Iterable[str]) -> bool:
    """Whether one of the phrases stands in what is stated, and not in what is asked."""
    if not says_any(sentence, phrases):
        return False
    lines = [f" {' '.join(words)} " for words in declared(sentence)]
    return any(phrase in line for line in lines for phrase in phrases)


def in_a_view(sentence: Sentence) -> bool:
    return says_any(sentence, _IN_A_VIEW)


def supposes(sentence: Sentence) -> bool:
    """As in "if that were true, ice should sink": what should follow, and not what to do."""
    first = sentence.clauses[0].body if sentence.clauses else ()
    return first[:1] == ("if",) and any(
        first[at : at + 2] in _UNREAL for at in range(1, min(_EARLY, len(first)))
    )
