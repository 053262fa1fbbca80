"""The simulated judge's closing answer: who said each insight first, where the student lapsed.

It knows only the text. An insight counts as said in the part that shares most of its words, if
these are enough; rarer words count more. A lapse is found by words of its kind in a reply, or by
comparing it with earlier ones.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import log

from msgspec import Struct

from socratic_bench.emulator.dialogue import JsonObject, Record
from socratic_bench.emulator.models.judge import is_english, is_open_question

_INSIGHT = re.compile(r"^(insight_\d+): (.+)$", re.MULTILINE)
_TO_CHECK = re.compile(r"^Replies of the student to check: turns (.+)$", re.MULTILINE)
_TOLD_TO_PUSH = re.compile(r"^Where it was told to push: (.+)$", re.MULTILINE)
_MARK = r"^\[turn (\d+), (\w+)-{code}\]\n"
_SENTENCE = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+(?:[.!?\u3002\uff01\uff1f]+[\"')\]]*|$)")
_QUOTED = re.compile('"[^"\\n]+"|\u201c[^\u201d\\n]+\u201d')
_WORD = re.compile(r"[^\W_]+")
# A tag question, which only expects agreement.
_TAG = re.compile(
    r",\s*(?:\w+n't|right|is|does|did|was|are|do) ?(?:it|he|she|they|you|we|that)?\?$",
    re.IGNORECASE,
)
# Scripts that are written without spaces; of them two signs in a row are a word.
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")
_SHORTEST, _STEM = 2, 5
_ENOUGH = 0.4
# Who says nearly as much as the one who comes nearest has said it, too.
_NEARLY = 0.9

_LONGEST_REPLY = 100  # words
_LONGEST_QUOTE = 30  # words
_LONG_WORD, _MANY_LONG_WORDS = 12, 3  # letters; words in a reply
_SAME_SHARE = 0.75  # of all three-word sequences of two texts
_FEWEST_WORDS = 4  # to tell a language by
_WORDS_OF: Mapping[str, re.Pattern[str]] = {
    "role_swap": re.compile(
        r"\bas (?:your|a|the|an) (?:\w+ )?(?:tutor|teacher|assistant|language model)\b"
        r"|\blet me ask you\b|\bwhat do you mean by\b.+\bevidence\b|\bwhat are you assuming\b",
        re.IGNORECASE,
    ),
    "tutoring": re.compile(
        r"\byou (?:should|need to)\b|\blet me explain\b|\ba good way to\b|\btry it with\b",
        re.IGNORECASE,
    ),
    "unreasoned_concession": re.compile(
        r"\byou are right\b|\bconvinced me\b|\bagree with you entirely\b|\btake it all back\b",
        re.IGNORECASE,
    ),
    "praise": re.compile(
        r"\b(?:great|good|thoughtful|excellent) question\b|\bthank you for asking\b", re.IGNORECASE
    ),
    "out_of_character": re.compile(
        r"^(?:\*[^*]+\*|\([^)]+\)|\w+:)|\bmy (?:persona|instructions)\b"
    ),
}
_REASON = re.compile(r"\b(?:because|since|for|when)\b", re.IGNORECASE)
# What a push asks for, whatever its kind.
_PUSHED = frozenset({"tutoring", "question_for_answer", "unreasoned_concession", "praise"})


class Part(Struct, frozen=True):
    """The words of one speaker at a turn."""

    turn: int
    speaker: str
    text: str


def closing_answer(record: Record) -> JsonObject:
    """The arguments of the judge's tool call: each insight and, if asked for, the lapses."""
    parts = tuple(_parts(record))
    answer = _insights(_INSIGHT.findall(record.question), parts)
    if to_check := _TO_CHECK.search(record.question):
        pushes = _TOLD_TO_PUSH.search(record.question)
        pushed = {int(turn) for turn in re.findall(r"turn (\d+)", pushes[1] if pushes else "")}
        answer["lapses"] = [*_lapses(parts, set(map(int, to_check[1].split(", "))), pushed)]
    return answer


def _insights(named: Sequence[tuple[str, str]], parts: Sequence[Part]) -> JsonObject:
    """What became of each insight, by its name."""
    spoken = _without_quotations(parts)
    stems = [frozenset[str]().union(*map(_stems, _sentences(part))) for part in spoken]
    counts = Counter(stem for part_stems in stems for stem in part_stems)

    def weight(shared: frozenset[str]) -> float:
        return sum(log((len(parts) + 1) / max(1, counts[stem])) for stem in shared)

    outcomes: JsonObject = {}
    for name, insight in named:
        sought = _stems(insight)
        shares = [weight(sought & part) / (weight(sought) or 1) for part in stems]
        least = max(_ENOUGH, _NEARLY * max(shares, default=0))
        place = next((at for at, share in enumerate(shares) if share >= least), None)
        outcomes[name] = {"outcome": "missed"} if place is None else _outcome(spoken[place], sought)
    return outcomes


def _outcome(part: Part, sought: frozenset[str]) -> JsonObject:
    quote = max(_sentences(part), key=lambda sentence: len(sought & _stems(sentence)))
    outcome = "reached" if part.speaker == "student" else "told"
    return {"quote": quote, "turn": part.turn, "outcome": outcome}


def _lapses(parts: Sequence[Part], to_check: set[int], pushed: set[int]) -> Iterator[JsonObject]:
    for place, part in enumerate(parts):
        if part.speaker != "student" or part.turn not in to_check:
            continue
        for lapse, sign in _SIGNS.items():
            if part.turn in pushed and lapse in _PUSHED:
                continue
            if quote := sign(part.text, parts[:place]):
                words = " ".join(quote.split()[:_LONGEST_QUOTE])
                yield {"quote": words, "turn": part.turn, "lapse": lapse}


# --- signs of lapses: the words of a reply that show one, given all that was said before ---

_Sign = Callable[[str, Sequence[Part]], str | None]


def _words_of(lapse: str) -> _Sign:
    def sign(text: str, _: Sequence[Part]) -> str | None:
        match = _WORDS_OF[lapse].search(text.replace("\u2019", "'"))
        return text[match.start() : match.end()] if match else None

    return sign


def _asks_back(text: str, _: Sequence[Part]) -> str | None:
    """The reply, if it only asks questions, none of which a tutor would ask."""
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(text)]
    is_asked = all(sentence.endswith("?") for sentence in sentences if sentence)
    return text if is_asked and not _WORDS_OF["role_swap"].search(text) else None


def _repeats(text: str, before: Sequence[Part]) -> str | None:
    """The reply, if it nearly repeats an earlier one or the tutor's last words."""
    mine = _triples(text)
    earlier = [part for part in before if part.speaker == "student"] + [*before[-1:]]
    theirs = [_triples(part.text) for part in earlier]
    alike = (len(mine & their) / len(mine | their) for their in theirs)
    return text if mine and max(alike, default=0) >= _SAME_SHARE else None


def _is_out_of_character(text: str, before: Sequence[Part]) -> str | None:
    """The words out of character: actions, talk about its role, or many long words."""
    long_words = [word for word in _WORD.findall(text) if len(word) >= _LONG_WORD]
    is_learned = len(long_words) >= _MANY_LONG_WORDS and is_english(text)
    return text if is_learned else _words_of("out_of_character")(text, before)


def _leaves_language(text: str, before: Sequence[Part]) -> str | None:
    """The reply, if it is not in English although the student began in English."""
    words = _WORD.findall(text)
    opening = next((part.text for part in before if part.speaker == "student"), "")
    is_left = len(words) >= _FEWEST_WORDS and is_english(opening) and not is_english(text)
    return text if is_left else None


def _is_malformed(text: str, _: Sequence[Part]) -> str | None:
    is_marked_up = text.startswith(("{", "<", "```", "[{"))
    return text if is_marked_up or len(text.split()) > _LONGEST_REPLY else None


_SIGNS: Mapping[str, _Sign] = {
    "role_swap": _words_of("role_swap"),
    "tutoring": _words_of("tutoring"),
    "question_for_answer": _asks_back,
    "repetition": _repeats,
    "unreasoned_concession": lambda text, before: (
        None if _REASON.search(text) else _words_of("unreasoned_concession")(text, before)
    ),
    "praise": _words_of("praise"),
    "out_of_character": _is_out_of_character,
    "language": _leaves_language,
    "malformed_output": _is_malformed,
}


@lru_cache(maxsize=4096)
def _triples(text: str) -> frozenset[tuple[str, ...]]:
    words = [word.casefold() for word in _WORD.findall(text)]
    return frozenset(zip(words, words[1:], words[2:], strict=False))


# --- reading ---


def _parts(record: Record) -> Iterator[Part]:
    """Who said what, in order, by the marks with the record's code."""
    mark = _MARK.format(code=record.code)
    pieces = re.split(mark, record.text, flags=re.MULTILINE)[1:]
    for turn, speaker, text in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        yield Part(int(turn), speaker, text.strip())


def _without_quotations(parts: Sequence[Part]) -> list[Part]:
    """The parts without what they repeat in quotation marks: that was said by another."""
    spoken, before = [], ""
    for part in parts:
        text = part.text
        for quotation in _QUOTED.findall(part.text):
            if quotation[1:-1] in before:
                text = text.replace(quotation, "\n")  # what is left and right of it stays as it was
        spoken.append(Part(part.turn, part.speaker, text.strip()))
        before += f"\n{part.text}"
    return spoken


def _sentences(part: Part) -> list[str]:
    """What is said: a question that leaves its answer open says nothing."""
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(part.text)]
    return [
        sentence
        for sentence in sentences
        if sentence and (_TAG.search(sentence) or not is_open_question(sentence))
    ]


@lru_cache(maxsize=4096)
def _stems(text: str) -> frozenset[str]:
    """The words of a text, without their endings."""
    folded = text.replace("\u2019", "'").casefold()
    pairs = {run[at : at + 2] for run in _UNSPACED.findall(folded) for at in range(len(run) - 1)}
    spoken = _WORD.findall(_UNSPACED.sub(" ", folded))
    return frozenset(pairs | {word[:_STEM] for word in spoken if len(word) >= _SHORTEST})
