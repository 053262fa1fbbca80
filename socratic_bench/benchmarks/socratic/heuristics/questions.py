"""Which sentences ask: by their mark, by their word order, or by asking to be told.

A statement with a question mark ("So you would quit?") counts: it waits for a yes or a no. One
that hands the listener two things back ("So you want to, but you can't?") does not: it sums up.
"""

from itertools import pairwise

from . import words as w
from .grammar import Ask, Clause, Rules, Sentence, says

# Imperatives that ask for words; the second only when told to "me" or "us".
_ANSWERING = w.listed("describe explain elaborate")
_TELLING = w.listed("tell share walk talk show give remind")
_tells_me = says(r" tell (?:me (?:about|more|a|how|what|why)|us about) ")
_LISTENER = w.listed("you we it this there he she they")
# "Had I known", "Should it rain", "may you": inverted, but not asking.
_CONDITIONAL = w.listed("had were should may 's 'd 'll 've 're 'm")
_BEING = w.listed("is was 's has")
_ABOUT = frozenset({("how", "about"), ("what", "about")})
wondering = says(
    r" i (?:\S+ ){0,4}(?:wonder|wondered|wondering|curious) | you to tell me "
    r"| i (?:\S+ ){0,3}(?:like|love|want|wanted|need) (?:\S+ ){0,2}?(?<!you )to"
    r" (?:know|hear|understand|find|learn) "
)


def _inverted(sentence: Sentence) -> bool:
    return any(
        clause.body[:2] in _ABOUT or (clause.ask and _asks_unmarked(clause, clause.ask))
        for clause in sentence.clauses
    )


def _asks_unmarked(clause: Clause, ask: Ask) -> bool:
    """Stricter than with a mark: a subject must follow, and neither "so do I" nor "had I known"."""
    subject = "".join(ask.rest[:1])
    if not (ask.initial and ask.auxiliary):
        return False
    if ask.wh:
        cleft = ask.auxiliary in _BEING and any(map(_verbal, clause.body[1 : -len(ask.rest) - 1]))
        relative = ask.wh == "which" and not ask.head and ask.auxiliary in _BEING | {"are", "were"}
        return not (cleft or relative) and (subject in w.SUBJECT_START or subject == w.HOLE)
    if ask.auxiliary in _CONDITIONAL or clause.words[:1] == ("so",):
        return False
    return subject in _LISTENER or (subject == "i" and ask.auxiliary in {"can", "could"})


def _verbal(word: str) -> bool:
    """A verb or another subject: "what happened next was", "what the author says is"."""
    third_person = word.endswith("s") and not word.endswith(("ss", "us", "is", "news"))
    return third_person or word in w.DETERMINER or word.endswith("ed")


def telling(sentence: Sentence) -> bool:
    """It asks for words from the listener, as a question does."""
    polite = sentence.ask is not None and sentence.ask.polar
    told = not polite and _tells_me(sentence)
    return told or any(_demands(clause) for clause in sentence.clauses)


def _demands(clause: Clause) -> bool:
    if clause.command not in _TELLING | {"say"}:
        return clause.command in _ANSWERING
    after = clause.body[clause.body.index(clause.command) + 1 :][:1]
    return after == ("more",) if clause.command == "say" else after in {("me",), ("us",)}


def _sums_up(sentence: Sentence) -> bool:
    """Two statements about the listener joined, not in the form of a question, command or tag."""
    words = sentence.words
    if w.YOU.isdisjoint(words) or sentence.ask or telling(sentence):
        return False
    if any(clause.command for clause in sentence.clauses):
        return False
    pairs = list(pairwise(words))[1:]
    joined = any(
        word == "but" or (word == "because" and after in w.SUBJECT_START) for word, after in pairs
    )
    asked = any(word in w.AUXILIARY and after == "you" for word, after in pairs)
    return joined and not asked and words[-1] not in w.TAGS


_names_nothing = says(r" (?:that|this|it|more|better|further|curious|wondering|me|us|here|bit) $")


def only_opens(sentence: Sentence) -> bool:
    """Asks for words without a mark, and says nothing of what they should be about."""
    if sentence.mark == "?" or sentence.ask or not _names_nothing(sentence):
        return False
    unnamed = (w.WH | w.WHETHER).isdisjoint(sentence.words)
    return unnamed and (telling(sentence) or wondering(sentence))


ASKING: Rules = {
    "question mark": lambda sentence: sentence.mark == "?",
    "question word order": _inverted,
    "request to tell": telling,
    "wondering aloud": wondering,
}
NOT_ASKING: Rules = {
    "set phrase": says(
        r"^ (?:all right |(?:(?:yeah|yes|really|huh|oh|all|mm-hmm|uh) )+)$| (?:who (?:knows|cares)"
        r"|you know what|guess what|know what i mean|what can i say) $"
    ),
    "summary handed back": _sums_up,
}
