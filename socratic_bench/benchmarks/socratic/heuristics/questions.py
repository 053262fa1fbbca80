"""Which sentences ask: by their mark, by their word order, or by asking to be told.

A statement with a question mark ("So you would quit?") counts: it waits for a yes or a no.
"""

from . import words as w
from .grammar import Ask, Clause, Sentence
from .rule import Rule, any_holds, says_any

# Imperatives that ask for words; those of the second line only when told to "me" or "us".
_ANSWERING = w.listed("describe explain elaborate")
_TELLING = w.listed("tell share walk talk show give remind")
_TELL_ME = (
    " tell me about ", " tell me more ", " tell me a ", " tell me how ", " tell me what ",
    " tell me why ", " tell us about ",
)  # fmt: skip
_LISTENER = w.listed("you we it this there he she they")
# "Had I known", "Should it rain", "may you": inverted, but not asking.
_CONDITIONAL = w.listed("had were should may 's 'd 'll 've 're 'm")
_BE = w.listed("is are was were 's")
_SINGULAR = w.listed("is was 's has")
# What follows a wh-word here is a subject of its own, and the clause asks nothing.
_NOUN_OPENERS = w.listed("a an the my your his her its our their every each no some")
_HAPPENING = w.listed("matters happens happened follows followed remains counts")
_PAST = w.listed("came went made took got gave began became struck broke led stood meant felt kept")
_NOUN_ENDINGS = ("ss", "us", "is", "ics")
_NOUNS_IN_S = w.listed("news series species means lens gas always perhaps as 's was has does")
_WONDERING = w.listed("wonder wondered wondering curious")
_WISH = w.listed("like love want wanted need")
_LEARN = w.listed("know hear understand find learn")
_WHETHER = frozenset({"if", "whether"})
# "I'm curious about that.", "Say more.": what is asked is still to come.
_UNNAMED = w.listed("that this it more better further curious wondering me us here bit")
_REACH = 5
_PROPOSING = frozenset({("how", "about"), ("what", "about"), ("how", "come"), ("what", "if")})
_IDIOMS = (
    " who knows ", " who cares ", " you know what ", " guess what ", " know what i mean ",
    " what can i say ", " how dare you ",
)  # fmt: skip
_NODS = w.listed("yeah yes really huh oh all mm-hmm uh")


def asks(sentence: Sentence) -> bool:
    return any_holds(ASKING, sentence) and not any_holds(NOT_ASKING, sentence)


def _marked(sentence: Sentence) -> bool:
    return sentence.mark == "?"


def _inverted(sentence: Sentence) -> bool:
    return any(clause.ask and _asks_unmarked(clause, clause.ask) for clause in sentence.clauses)


def _asks_unmarked(clause: Clause, ask: Ask) -> bool:
    """Stricter than with a mark: a subject must follow, and neither "so do I" nor "had I known"."""
    subject = ask.rest[0] if ask.rest else ""
    if not (ask.initial and ask.inverted):
        return False
    if not ask.polar:
        if _cleft(clause.body[1 : -len(ask.rest) - 1], ask):
            return False
        named = ask.wh != "which" or ask.head != "" or ask.auxiliary not in _BE
        return named and (subject in w.SUBJECT_START or subject == w.HOLE)
    if ask.auxiliary in _CONDITIONAL or "so" in clause.words[: clause.start]:
        return False
    return subject in _LISTENER or (subject == "i" and ask.auxiliary in {"can", "could"})


def _cleft(between: tuple[str, ...], ask: Ask) -> bool:
    """As in "what matters is" and "what the author says is": a verb precedes the auxiliary.

    A plural noun takes no "is", so that a word in -s before one is a verb.
    """
    if not between:
        return False
    if ask.head in _NOUN_OPENERS or ask.head in _HAPPENING:
        return True
    if ask.wh in {"what", "who"} and _past(ask.head):
        return True
    verbal = _third_person(ask.head) or _third_person(between[-1])
    return ask.auxiliary in _SINGULAR and verbal


def _third_person(word: str) -> bool:
    return word.endswith("s") and not word.endswith(_NOUN_ENDINGS) and word not in _NOUNS_IN_S


def _past(word: str) -> bool:
    return word in _PAST or (word.endswith("ed") and not word.endswith("eed") and word != "red")


def telling(sentence: Sentence) -> bool:
    polite = sentence.ask is not None and sentence.ask.polar
    told = not polite and says_any(sentence, _TELL_ME)
    return told or any(_demands(clause) for clause in sentence.clauses)


def _demands(clause: Clause) -> bool:
    if clause.command in _ANSWERING:
        return True
    if clause.command not in _TELLING | {"say"}:
        return False
    after = clause.body[clause.body.index(clause.command) + 1 :][:1]
    return after == ("more",) if clause.command == "say" else after in {("me",), ("us",)}


def wondering(sentence: Sentence) -> bool:
    """First person, and a verb of not knowing yet."""
    words = sentence.words
    return any(
        (word in _WONDERING or word in _LEARN or word == "me") and _wonders_at(words, at)
        for at, word in enumerate(words)
    )


def _wonders_at(words: tuple[str, ...], at: int) -> bool:
    before = words[max(0, at - _REACH) : at]
    if words[at] == "me":
        return before[-3:] == ("you", "to", "tell")
    if words[at] in _WONDERING:
        return "i" in before
    wishes = "i" in before and not _WISH.isdisjoint(before)
    return wishes and before[-1] == "to" and before[-2:-1] != ("you",)


def proposing(sentence: Sentence) -> bool:
    return any(clause.body[:2] in _PROPOSING for clause in sentence.clauses)


def _idiom(sentence: Sentence) -> bool:
    line = sentence.line
    return any(line.endswith(phrase) for phrase in _IDIOMS)


def _nod(sentence: Sentence) -> bool:
    words = sentence.words
    return words == ("all", "right") or (bool(words) and all(word in _NODS for word in words))


def _answered(sentence: Sentence) -> bool:
    return sentence.followed_by[:1] == ("because",) and len(sentence.words) > 0


def only_opens(sentence: Sentence) -> bool:
    """Asks for words without a mark, and says nothing of what they should be about."""
    words = sentence.words
    if sentence.mark == "?" or sentence.ask or not (telling(sentence) or wondering(sentence)):
        return False
    return words[-1] in _UNNAMED and w.WH.isdisjoint(words) and _WHETHER.isdisjoint(words)


ASKING = (
    Rule(
        name="question mark",
        because="the writer says so, whatever the words do",
        example="You would call that fair?",
        counterexample="You would call that fair.",
        holds=_marked,
    ),
    Rule(
        name="question word order",
        because="an auxiliary before its subject asks, even where the mark was forgotten",
        example="So what do you make of the second premise.",
        counterexample="What you make of the second premise is up to you.",
        holds=_inverted,
    ),
    Rule(
        name="request to tell",
        because="it asks for words from the listener, as a question does",
        example="Tell me about the first time it failed.",
        counterexample="Tell your brother about the first time it failed.",
        holds=telling,
    ),
    Rule(
        name="wondering aloud",
        because="a speaker who says what they do not know waits to hear it",
        example="I'd like to hear how you got from there to here.",
        counterexample="You would like to hear how they got there.",
        holds=wondering,
    ),
    Rule(
        name="proposal form",
        because='"how about" and "what if" ask without a verb of asking',
        example="What about the people who disagree.",
        counterexample="That is what the people disagree about.",
        holds=proposing,
    ),
)
NOT_ASKING = (
    Rule(
        name="idiom",
        because="nobody answers these",
        example="But then, who knows?",
        counterexample="Who knows the way?",
        holds=_idiom,
    ),
    Rule(
        name="nod",
        because="a listener's sound with a mark keeps the talk going and asks for nothing",
        example="Really?",
        counterexample="Really so soon?",
        holds=_nod,
    ),
    Rule(
        name="answered at once",
        because="the speaker who goes on with 'because' has not asked anybody else",
        example="Why is the sky dark at night? Because the universe has an age.",
        counterexample="Why is the sky dark at night? The stars are many.",
        holds=_answered,
    ),
)
