"""Finds in a text what can be talked about: its topic, its noun phrases, and its statements.

A few word lists stand in for a grammar: a noun phrase is found by the determiners, prepositions and
verbs around it. Where they cannot tell, and in other languages, the words are quoted as they stand,
since a quotation fits into any sentence.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from socratic_bench.emulator.models.grammar import data_file

READ_LIMIT = 1500
CODE = {False: "the code you wrote", True: "my code"}

_ENGLISH_SHARE = 0.15
_ASCII_SHARE = 0.9
_CODE_MARK = re.compile(r"[{}();=<>]|\bdef |\breturn\b|=>|::|</")
_FEW_WORDS = 3
_FEW_CHARS = 6
_MOST_WORDS, _MOST_CHARS = 15, 88

_SENTENCE = re.compile(r"(?<=[.!?\u2026])(?<!\.\.)\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_CLAUSE = re.compile(
    r"[;:]\s+|\s[-\u2013\u2014]+\s|,?\s+(?:and|but|so|because|while|although|though)\s+"
    r"(?=(?:i|you|he|she|it|we|they|the|a|an|my|our|his|her|their|there|this|that|people|every\w+|no\w+)"
    r"(?:'\w+)?\s)|,\s+(?=(?:and|but|so|which)\s)",
    re.IGNORECASE,
)
_COMMA = re.compile(r"[,;:]\s+|\s[-\u2013\u2014]+\s|[\u3001\uff0c]")
_LEAD = re.compile(
    r"(?:(?:and|but|so|then|because|well|okay|oh|ugh|hm+|no|yes|honestly)\b,?\s+)*"
    r"(?:i (?:think|believe|guess|suppose|would say)(?: that)?\s+|i'd say(?: that)?\s+"
    r"|i (?:know|feel|say|mean) that\s+|i'm (?:quite |pretty )?sure(?: that)?\s+)?"
    r"(?!(?:so|not|of|about|what|how|why|where|who|if)\b)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r",\s*(?:i (?:think|guess|suppose)|right|isn't it|or not|though)$", re.IGNORECASE
)
# A sentence with one of these states nothing.
_UNSURE = re.compile(
    r"\b(?:no idea|(?:don't|do not|didn't) (?:really )?(?:know|remember|understand)|not sure"
    r"|(?:can't|cannot|couldn't|can hardly) (?:really )?(?:say|tell|explain|think|put|prove)"
    r"|hard to say|let me think|i'd have to|never (?:had to|thought|put)|nothing (?:new|more|else)"
    r"|(?:told|said) (?:you )?(?:it )?(?:all|everything|absolutely)|sounds? (?:sensible|good))\b"
    r"|\.\.\. ",
    re.IGNORECASE,
)


WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+(?:['-][^\W_]+)*|[^\w\s]|\n")
_LONGEST = 3
_STOPS = ".!?\n"
# The lists of words that end a noun phrase.
_BREAKING = (
    *("pronouns", "auxiliaries", "conjunctions", "adverbs", "verbs"),
    *("prepositions", "determiners", "loaded"),
)


class Statements(Struct, frozen=True):
    """Quoted sentences of a text; `claims` are about other things than the speaker."""

    quotes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()


class Subject(Struct, frozen=True):
    """What a text is about.

    `phrases` fit after a preposition, and there is always one; `topic` is the first that one can
    have a view of and that stands where topics do, `term` the same if it can be defined.
    """

    phrases: tuple[str, ...]
    statements: Statements
    topic: str | None = None
    term: str | None = None


@lru_cache(maxsize=4096)
def subject_of(text: str, *, is_own: bool = False) -> Subject:
    """Read a text of the other side, whose "my" becomes "your", or one's own."""
    text = _readable(text)
    if _is_code(text):
        return Subject((CODE[is_own],), Statements(), CODE[is_own])
    stated = statements(text)
    if is_own:  # a speaker refers to its own words and does not quote them
        nothing: tuple[str, ...] = ("this",)
    else:  # the first words, of a text that nothing else can be made of
        title = " ".join(WORD.findall(text)[:4])[:40]
        nothing = stated.quotes[:1] or (f'"{title}"' if title else "what you wrote",)
    if not _is_english(text):
        return Subject(nothing, stated)
    tokens = _TOKEN.findall(text)
    located = [*_noun_phrases(tokens, is_own=is_own)]
    topics = (
        phrase
        for phrase, at, end in located
        if _is_sound(phrase) and _is_talked_about(tokens, at, end)
    )
    topic = next(topics, None)
    term = topic if topic and _is_term(topic) else None
    phrases = tuple(dict.fromkeys(phrase for phrase, *_ in located))[:3]
    return Subject(phrases or nothing, stated, topic, term)


@lru_cache(maxsize=4096)
def statements(text: str) -> Statements:
    text = _readable(text)
    if _is_code(text):
        return Statements()
    lead = _LEAD if _is_english(text) else None
    quotes: dict[str, None] = {}
    claims: dict[str, None] = {}
    for sentence in _SENTENCE.split(text)[:8]:
        quotable, assertions = _sayings(sentence, lead)
        quotes |= dict.fromkeys(f'"{quote}"' for quote in quotable)
        claims |= dict.fromkeys(f'"{claim}"' for claim in assertions)
    return Statements(tuple(quotes), tuple(claims))


def _sayings(sentence: str, lead: re.Pattern[str] | None) -> tuple[list[str], list[str]]:
    """What of a sentence is worth quoting, all of it or clauses, and what states something."""
    whole = _bare(sentence, lead)
    if sentence.rstrip().endswith(("?", "\uff1f")) and not _TAIL.search(sentence.rstrip(" ?")):
        return [], []
    clauses = [_bare(part, lead) for part in (_CLAUSE if lead else _COMMA).split(whole)]
    quotable = list(filter(_fits, [whole])) or list(filter(_fits, clauses))
    if not lead:
        # One in lower case depends on another clause.
        quotable = [clause for clause in quotable if not clause[0].islower()]
        return quotable, quotable
    # A clause may state something where the whole is about the speaker.
    claims = list(filter(_is_claim, quotable)) or [
        clause for clause in clauses if _fits(clause) and _is_claim(clause)
    ]
    return list(filter(_is_statement, quotable)), list(filter(_is_statement, claims))


def _is_statement(text: str) -> bool:
    return not _UNSURE.search(text) and any(map(_is_content, text.split()))


def _is_content(word: str) -> bool:
    lists = ("pronouns", "auxiliaries", "conjunctions", "adverbs", "prepositions", "determiners")
    small = words(*lists, "verbs", "generic", "vague", "loaded")
    return len(word) >= _FEW_WORDS and word.isalpha() and word.lower() not in small


def _bare(text: str, lead: re.Pattern[str] | None) -> str:
    text = text.strip(" \t.!?,;:\u2026\u3002\uff01\uff1f\u3001\u00bf\u00a1()*_#>-")
    match = lead.match(text) if lead else None
    return _TAIL.sub("", text[match.end() :] if match else text)


def _fits(text: str) -> bool:
    long = len(text.split())
    is_short = long < _FEW_WORDS and (text.isascii() or len(text) < _FEW_CHARS)
    return not (
        is_short
        or long > _MOST_WORDS
        or len(text) > _MOST_CHARS
        or set(text) & set('"`\u201c\u300c')
    )


def _is_claim(text: str) -> bool:
    """Whether it is general: nothing of the speaker's own, and no story."""
    tokens = text.lower().split()
    if words("speaker") & {*tokens} or tokens[0] in words("story", "auxiliaries"):
        return False
    if words("states") & {*tokens} or any(word.endswith(("'s", "'re", "n't")) for word in tokens):
        return True
    is_past = words("past") & {*tokens} or any(word.endswith("ed") for word in tokens)
    return not is_past and bool(words("auxiliaries", "verbs") & {*tokens})


def _readable(text: str) -> str:
    if len(text) > READ_LIMIT:
        text = text[-READ_LIMIT:].partition(" ")[2]
    return text.replace("\u2019", "'")


def _is_code(text: str) -> bool:
    return len(_CODE_MARK.findall(text)) > max(3, len(text) // 25)


def _is_english(text: str) -> bool:
    tokens = [word.lower() for word in WORD.findall(text)]
    letters = sum(map(len, tokens))
    plain = sum(len(word) for word in tokens if word.isascii())
    lists = ("english", "pronouns", "auxiliaries", "determiners", "prepositions", "conjunctions")
    n_known = sum(word in words(*lists) for word in tokens)
    familiar = len(tokens) <= _FEW_WORDS or n_known >= len(tokens) * _ENGLISH_SHARE
    return familiar and plain >= letters * _ASCII_SHARE


@lru_cache
def words(*names: str) -> frozenset[str]:
    """The words of some lists of the data file, together."""
    return frozenset(word for name in names for word in data_file("words.json")[name].split())


def _noun_phrases(tokens: list[str], *, is_own: bool) -> Iterator[tuple[str, int, int]]:
    """The phrases in their order, each with its place; with `is_own` one's own "my" stays, and
    "your" becomes "my".
    """
    at = 0
    while at < len(tokens):
        phrase, end = _phrase_at(tokens, at, is_own=is_own)
        if phrase:
            yield phrase, at, end
        at = end


def _is_sound(phrase: str) -> bool:
    """No measure, no time, and no clause that was cut before its verb."""
    tokens = phrase.lower().split()
    cut = len(tokens) > 1 and tokens[-1].endswith("ing")
    return not (words("measures") & {*tokens} or cut or any(map(str.isdigit, phrase)))


def _is_talked_about(tokens: list[str], at: int, end: int) -> bool:
    before = tokens[at - 1].lower() if at else "."
    after = tokens[end].lower() if end < len(tokens) else "."
    if len(tokens) <= _LONGEST or before in words("topical"):
        return True
    if before in ("is", "are"):
        return after == "?"
    acts = after in words("auxiliaries", "verbs", "loaded") | {"always", "never", "just", "that"}
    # The capital of a sentence's only first word may be that of a name.
    is_plural = tokens[at].endswith("s") and after in words("plural")
    is_common = is_plural or tokens[at].endswith(tuple(words("abstract")))
    return before in _STOPS and acts and (end > at + 1 or is_common)


def _is_term(phrase: str) -> bool:
    first, *_, last = ["", *phrase.split()] if " " not in phrase else phrase.split()
    is_one = not last.endswith("s") or last.endswith(("ss", "ics", "sis")) or first.endswith("ing")
    return is_one and last.islower() and first not in words("determiners") - {"a", "an"} | {"your"}


def _phrase_at(tokens: list[str], at: int, *, is_own: bool) -> tuple[str | None, int]:
    """The noun phrase that begins at a token, if one is evident, and where to read on."""
    lead = _lead(tokens[at].lower(), is_own=is_own)
    start = at if lead is None else at + 1
    end = start
    while end < len(tokens) and not _breaks(tokens[end].lower()):
        end += 1
    phrase_words = _plain(tokens, start, end)
    evident = lead is not None or _is_evident(tokens, at, end)
    if not (evident and _acceptable(phrase_words, lead)):
        return None, max(end, at + 1)
    return _joined(tokens, [lead, *phrase_words] if lead else phrase_words, end, is_own=is_own)


def _lead(word: str, *, is_own: bool) -> str | None:
    """The determiner as the speaker would say it; `None` if the word is not one to build on."""
    if word in ("my", "our"):
        return word if is_own else "your"
    if word == "your":
        return "my" if is_own else None
    if word in ("a", "an", "the", "his", "her", "their"):
        return word
    return "" if word in words("determiners") else None


def _breaks(word: str) -> bool:
    """Whether a word ends a noun phrase."""
    return (
        word in words(*_BREAKING)
        or word in ("to", "at", "by", "your")
        or (word.endswith("ly") and word not in words("adverbs_not"))
        or not word[0].isalnum()
    )


def _is_evident(tokens: list[str], at: int, end: int) -> bool:
    """Whether a bare noun stands where one must: after a preposition, before a verb, or alone."""
    before = tokens[at - 1].lower() if at else "."
    after = tokens[end].lower() if end < len(tokens) else "."
    if before in words("prepositions"):
        return True
    if before in ("is", "are"):
        return after == "?"
    if before in words("objects_of"):
        return after in ".!?,;\n"
    if before in _STOPS or before in ("that", "and", "but", "because", "if", "whether"):
        return after in words("auxiliaries", "verbs") or len(tokens) <= _LONGEST
    return False


def _plain(tokens: list[str], start: int, end: int) -> list[str]:
    """The words, with the capital of a sentence's first word taken off where it is only that."""
    phrase = tokens[start:end]
    opens = start == 0 or tokens[start - 1] in _STOPS
    if phrase and opens and phrase[0][1:].islower():
        phrase[0] = phrase[0].lower()
    return phrase


def _acceptable(phrase: list[str], lead: str | None) -> bool:
    if not 1 <= len(phrase) <= _LONGEST:
        return False
    last = phrase[-1]
    if lead in ("my", "your", "our"):
        return last.lower() not in words("generic")
    named = len(last) > 2 or (last.isupper() and len(last) > 1)  # noqa: PLR2004
    vague = len(phrase) == 1 and last.lower() in words("vague")
    return named and not vague and last.lower() not in words("generic") and not phrase[0].isdigit()


def _joined(tokens: list[str], phrase: list[str], end: int, *, is_own: bool) -> tuple[str, int]:
    """Go on to a second phrase: "the meaning of life", "quitting my job"."""
    word = tokens[end].lower() if end + 1 < len(tokens) else ""
    if word in words("joiners"):
        second, after = _phrase_at(tokens, end + 1, is_own=is_own)
        if second:
            return f"{' '.join(phrase)} {word} {second}", after
    if phrase[-1].endswith("ing") and word and _lead(word, is_own=is_own):
        second, after = _phrase_at(tokens, end, is_own=is_own)
        if second:
            return f"{' '.join(phrase)} {second}", after
    return " ".join(phrase), end
