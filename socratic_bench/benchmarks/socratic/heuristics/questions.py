"""Which sentences ask, which of them are open, and which lead.

A sentence asks by its mark, by its word order, or by a request to be told something. A statement
with a question mark ("So you would quit?") counts, since it waits for a yes or a no. One that hands
the listener two things back ("So you want to, but you can't?") does not: it sums up.

A question is open by its wh-word or by inviting a story; a short fact, yes or no close it. One that
carries the answer it wants leads. Of the rules for leading only the tags are checked against
people's labels; the others follow the rubric's red flags.
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


def _asks_unmarked(clause: Clause, ask: Ask) -> bool:
    """Whether the word order asks, unlike "so do I" and "had I known"."""
    subject = "".join(ask.remainder[:1])
    if not (ask.initial and ask.auxiliary):
        return False
    if ask.wh:
        cleft = ask.auxiliary in _BEING and any(
            map(_verbal, clause.body[1 : -len(ask.remainder) - 1])
        )
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
    """Whether it demands an answer as a question does: "tell me more"."""
    polite = sentence.ask is not None and sentence.ask.polar
    tells_me = not polite and _tells_me(sentence)
    return tells_me or any(_demands(clause) for clause in sentence.clauses)


def _demands(clause: Clause) -> bool:
    if clause.command not in _TELLING | {"say"}:
        return clause.command in _ANSWERING
    after = clause.body[clause.body.index(clause.command) + 1 :][:1]
    return after == ("more",) if clause.command == "say" else after in {("me",), ("us",)}


def _sums_up(sentence: Sentence) -> bool:
    """Whether it joins two statements about the listener, without asking or commanding."""
    words = sentence.words
    if w.YOU.isdisjoint(words) or sentence.ask or telling(sentence):
        return False
    if any(clause.command for clause in sentence.clauses):
        return False
    pairs = list(pairwise(words))[1:]
    joined = any(
        word == "but" or (word == "because" and after in w.SUBJECT_START) for word, after in pairs
    )
    is_inverted = any(word in w.AUXILIARY and after == "you" for word, after in pairs)
    return joined and not is_inverted and words[-1] not in w.TAGS


_names_nothing = says(r" (?:that|this|it|more|better|further|curious|wondering|me|us|here|bit) $")


def only_opens(sentence: Sentence) -> bool:
    """Whether it demands an answer without saying what about: "tell me more", "I wonder"."""
    if sentence.mark == "?" or sentence.ask or not _names_nothing(sentence):
        return False
    unnamed = (w.WH | w.WHETHER).isdisjoint(sentence.words)
    return unnamed and (telling(sentence) or wondering(sentence))


ASKING: Rules = {
    "question mark": lambda sentence: sentence.mark == "?",
    "question word order": lambda sentence: any(
        clause.body[:2] in _ABOUT or (clause.ask and _asks_unmarked(clause, clause.ask))
        for clause in sentence.clauses
    ),
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


def _short_fact(ask: Ask) -> bool:
    """Whether it asks for a place, time, person, amount or name, and not for reasons."""
    if ask.wh in _FACT_WH:
        grounds = ask.wh == "which" and ask.head in _GROUND
        right = (
            ask.wh == "when"
            and ask.remainder[:1] == ("it",)
            and not _RIGHT.isdisjoint(ask.remainder)
        )
        from_where = ask.remainder[-2:] == ("come", "from") and ask.remainder[0] not in w.PERSON
        return not (grounds or right or (ask.wh == "where" and from_where))
    if ask.head in _FACT_HEAD:
        return True
    if not ask.remainder and not ask.head:
        return ask.wh == "what" and not ask.auxiliary
    naming = ask.wh == "what" and not ask.head and ask.auxiliary in {"is", "'s", "are", "was"}
    return naming and not _of_a_kind(ask.remainder) and not _FACT_NOUN.isdisjoint(ask.remainder[:4])


def _of_a_kind(remainder: tuple[str, ...]) -> bool:
    """Whether it asks about a kind of thing ("the value of a promise"), not about one value."""
    at = next((at for at, word in enumerate(remainder[:4]) if word in _ACCOUNTED), len(remainder))
    governed = remainder[at + 2 :]
    symbols = (word for word in governed if word[0].isdigit() or (len(word) == 1 and word != "a"))
    return governed[:1] != () and governed[0] not in _DEFINITE and not any(symbols)


def _invites(sentence: Sentence) -> bool:
    ask = sentence.ask
    if ask is None or not ask.polar:
        return False
    return (ask.auxiliary in w.MODAL or ask.remainder[1:2] == ("mind",)) and _offers_room(sentence)


def _wonders_wide(sentence: Sentence) -> bool:
    """Such as "I wonder what", "I'd like to hear about", but not "I wonder if"."""
    polar = sentence.ask is not None and sentence.ask.polar
    return wondering(sentence) and not polar and not _wonders_whether(sentence)


OPENING: Rules = {
    # The last question of the sentence: "if ..., and what would you do?".
    "wide wh-question": lambda sentence: (
        sentence.ask is not None and not sentence.ask.polar and not _short_fact(sentence.ask)
    ),
    "request to tell": lambda sentence: telling(sentence) and not _asks_amount(sentence),
    "invitation": _invites,
    "wondering what": _wonders_wide,
    "room for more": says(
        r" (?:(?:any|some)thing else|what else|(?:any|your) (?:thoughts|ideas)) "
    ),
}


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


def _asks(sentence: Sentence) -> list[Ask]:
    return [clause.ask for clause in sentence.clauses if clause.ask]


def _ends_with_tag(sentence: Sentence) -> bool:
    """Whether it ends with auxiliary and pronoun, alone or after a statement: "isn't it"."""
    words = sentence.words
    if len(words) < _TAG_LENGTH or words[-1] not in _TAG_PRONOUN or words[-2] not in w.AUXILIARY:
        return False
    last = sentence.clauses[-1].body
    weighed = words[-3:-2] == ("or",) and words[0] in w.AUXILIARY
    if weighed or not w.WH.isdisjoint(last):
        return False
    stated = last[:1] != () and last[0] not in w.AUXILIARY and words[-1] != "that"
    return len(last) == _TAG_LENGTH or words[-2] in w.NEGATED or stated


def _checks_agreement(sentence: Sentence) -> bool:
    words = sentence.words
    if _ends_with_check(sentence):
        return True
    if not words or words[-1] not in w.TAGS or sentence.ask is not None:
        return False
    return words[-2] != "or" if len(words) > 1 else words[-1] in _ALONE


def _is_negated(sentence: Sentence) -> bool:
    return any(
        ask.polar and (ask.auxiliary in w.NEGATED or ask.remainder[1:2] == ("not",))
        for ask in _asks(sentence)
    )


def _presumes(sentence: Sentence) -> bool:
    """Whether it presupposes what the listener does: "when do you stop", not "... does it stop"."""
    return any(
        ask.wh in _PRESUMING_WH
        and ask.auxiliary not in w.MODAL
        and ask.remainder[:1] == ("you",)
        and not _PRESUMED.isdisjoint(ask.remainder[1:3])
        for ask in _asks(sentence)
    )


LEADING: Rules = {
    "tag": _ends_with_tag,
    "check for agreement": _checks_agreement,
    "negated question": _is_negated,
    "loaded word": says(r" (?:clearly|obviously|surely|undoubtedly|evidently|of course) "),
    "suggested answer": says(
        r" (?:(?:could|might) it be that|(?:would you|do you|you would) agree"
        r"|would it be (?:better|best|wiser|easier)|is it because) "
    ),
    "presupposition": _presumes,
}
