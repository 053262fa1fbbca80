"""Advice to the writer of a scenario, beyond what makes a file valid."""

import difflib
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.loading import fields_in
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    QUESTION_MARKS,
    Scenario,
    groups,
    is_english,
    is_unspaced,
    n_words,
    normal,
    own_sentences,
    plain,
)
from socratic_bench.types import plural

# The id of the scenario that it is about, and "field: reason".
Advice = tuple[str, str]
_FEWEST_WORDS = {"persona": 15, "belief": 4, "because": 4}
_FEWEST_OPENINGS = 2
_DRAWN_WORDS = 4
_EARLIEST_CLOSE = 8  # from here on there is room for every kind of pressure
_MARKS = ".!?\u3002\uff01\uff1f"
# All but tab and line breaks.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ALIKE = 0.8
_MOST_WORDS = 70
_SHORT_WORD = 3
_LINKS = frozenset(
    ("because", "there", "them", "they", "that", "this", "than", "with", "from", "have")
)
# By the name of a pattern in faults.toml.
_FAULTS = {
    "agrees": "agrees with something that may not have been said",
    "praises": "praises the question",
    "closes": "closes the case, and the dialogue goes on",
    "stage_direction": "holds a stage direction; only what is said counts",
}


def check(scenarios: Sequence[Scenario], *, files: Sequence[str | None] = ()) -> Iterator[Advice]:
    """All advice, with what is borrowed from earlier ones; `files`: where each is from."""
    for scenario in scenarios:
        yield from ((scenario.id, advice) for advice in _advice_on(scenario))
    yield from _repeated_ids(scenarios, files)
    yield from _borrowed(scenarios)


def _advice_on(scenario: Scenario) -> Iterator[str]:
    for path, text in _texts_in(scenario):
        if match := _CONTROL.search(text):
            yield f"{path}: holds the control character U+{ord(match[0]):04X}"
    rules = (_lengths, _openings, _insights, _clauses, _closing, _wrong_sentences)
    for rule in (*rules, _unfinished_groups, _unmarked_belief):
        yield from rule(scenario)


def _texts_in(table: Struct, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a scenario with the field that it stands in."""
    for field in fields_in(type(table)):
        path = f"{place}{field.path}"
        value = getattr(table, field.path.removeprefix("student."))
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, str):
                yield path, item
            elif isinstance(item, Struct):
                yield from _texts_in(item, f"{path}.")


def _lengths(scenario: Scenario) -> Iterator[str]:
    for name, fewest in _FEWEST_WORDS.items():
        count = n_words(getattr(scenario, name))
        if count < fewest:
            amount = plural(count, "word says", "words say")
            yield f"student.{name}: {amount} too little; write {fewest} or more"


def _openings(scenario: Scenario) -> Iterator[str]:
    if len(scenario.openings) < _FEWEST_OPENINGS:
        yield "openings: 1 given; write two or more, since a tutor may know one of them by heart"
    elif all(_is_alike(scenario.openings[0], other) for other in scenario.openings):
        yield "openings: all of them say nearly the same; write one that begins elsewhere"
    openings = set(map(plain, scenario.openings))
    again = [place for place, text in own_sentences(scenario).items() if plain(text) in openings]
    for list_of in dict.fromkeys(place.rpartition(", ")[0] for place in again):
        yield f"{list_of}: one of them is an opening, which the student has said already"


def _closing(scenario: Scenario) -> Iterator[str]:
    if "?" in (scenario.closing or ""):
        yield "closing: asks a question, and nobody is there to answer it"
    if scenario.closes_after is not None and scenario.closes_after < _EARLIEST_CLOSE:
        yield f"closes_after: {scenario.closes_after} is too early; write {_EARLIEST_CLOSE} or more"


def _insights(scenario: Scenario) -> Iterator[str]:
    """Insights that are questions, say too little, or are the belief."""
    for position, insight in enumerate(scenario.draws_out, start=1):
        text = insight.insight
        if text[-1] in QUESTION_MARKS:
            yield f"draws_out, item {position}: a question; write what its answer brings to light"
        if n_words(text) < _DRAWN_WORDS:
            yield f"draws_out, item {position}: says too little; write {_DRAWN_WORDS} words or more"
        if normal(text) == normal(scenario.belief):
            yield f"draws_out, item {position}: is the belief, so there is nothing to draw out"


def _clauses(scenario: Scenario) -> Iterator[str]:
    if _is_alike(scenario.because, scenario.belief):
        yield "student.because: says the belief again; write what it rests on"
    clauses = [("belief", "that", scenario.belief), ("because", "because", scenario.because)]
    nouns = [("topic", "about", scenario.topic)]
    nouns += [(f"details, item {n}", "about", text) for n, text in enumerate(scenario.details, 1)]
    for name, word, text in [*clauses, *nouns]:
        if text[-1] in _MARKS:
            yield f"student.{name}: leave out the mark at the end; it stands inside sentences"
        if is_english(scenario) and text.casefold().startswith(f"{word} "):
            yield f'student.{name}: leave out "{word}" at the beginning; the program puts it there'


def _repeated_ids(scenarios: Sequence[Scenario], files: Sequence[str | None]) -> Iterator[Advice]:
    for name, count in Counter(scenario.id for scenario in scenarios).items():
        if count > 1:
            pairs = zip(scenarios, files, strict=False)
            places = [file or "the built-in one" for scenario, file in pairs if scenario.id == name]
            where = f": {', '.join(places)}" if places else ""
            yield name, f"id: used by {count} scenarios{where}"


def _borrowed(scenarios: Sequence[Scenario]) -> Iterator[Advice]:
    """What a scenario has in common with an earlier scenario of another id."""
    sentences = [
        {place: plain(text) for place, text in own_sentences(scenario).items()}
        for scenario in scenarios
    ]
    texts = [{*by_place.values()} for by_place in sentences]
    for n, scenario in enumerate(scenarios):
        for at, owner in enumerate(scenarios[:n]):
            if owner.id == scenario.id:
                continue
            places = [
                f'openings: "{opening}"'
                for opening in scenario.openings
                if any(_is_alike(opening, other) for other in owner.openings)
            ]
            places += ["student.belief:"] * (plain(scenario.belief) == plain(owner.belief))
            places += [f"{place}:" for place, text in sentences[n].items() if text in texts[at]]
            yield from ((scenario.id, f"{place} belongs to {owner.id} already") for place in places)


def _wrong_sentences(scenario: Scenario) -> Iterator[str]:
    sentences, lines = own_sentences(scenario), _voice_lines(scenario)
    for where, text in {**sentences, **lines}.items():
        if n_words(text) > _MOST_WORDS:
            yield f"{where}: longer than {_MOST_WORDS} words; students say less"
        if not QUESTION_MARKS.isdisjoint(text):
            yield f"{where}: asks a question; asking is the tutor's part"
        in_order = where.startswith("replies")
        faults = _FAULTS
        if in_order:
            faults = {"unasked": "answers something that may not have been asked"}
        for sign, fault in faults.items():
            if _matches(scenario, sign, text):
                yield f"{where}: {fault}"
        may_be_polar = where.startswith(("voice.polar", "voice.told"))
        if not in_order and not may_be_polar and _matches(scenario, "polar", text):
            yield f"{where}: answers a yes-or-no question, and may follow another"
    yield from _repetitions({**sentences, **lines})


def _unfinished_groups(scenario: Scenario) -> Iterator[str]:
    """Sentences without example questions, and examples that are no questions."""
    for place, group in groups(scenario).items():
        if group.says and not group.asked:
            yield f"{place}, asked: missing; without example questions hardly any question fits"
        for n, text in enumerate(group.asked, 1):
            if text[-1] not in QUESTION_MARKS:
                yield f"{place}, asked, item {n}: no question at the end; each ends with its mark"


def _unmarked_belief(scenario: Scenario) -> Iterator[str]:
    """Sentences that state the belief and may come after an insight."""
    belief = _content_words(scenario.belief)
    if not (is_english(scenario) and belief):
        return
    mark = "mark its group with holds_belief = true"
    sentences = [
        (f"moves, item {n}, says, item {m}", text, mark)
        for n, move in enumerate(scenario.moves, 1)
        for m, text in enumerate(move.says, 1)
        if not move.holds_belief
    ]
    moved = scenario.voice.moved if scenario.voice else ()
    sentences += [
        (f"voice.moved, item {n}", text, "it follows an insight") for n, text in enumerate(moved, 1)
    ]
    for where, text, advice in sentences:
        if belief <= _content_words(text):
            yield f"{where}: states the belief; {advice}"


def _content_words(text: str) -> frozenset[str]:
    words = frozenset(word for word in plain(text).split() if len(word) > _SHORT_WORD)
    return words - _LINKS


def _is_alike(text: str, other: str) -> bool:
    match = difflib.SequenceMatcher(None, plain(text), plain(other))
    # The first two are upper bounds, and much cheaper.
    ratios = (match.real_quick_ratio, match.quick_ratio, match.ratio)
    return all(ratio() >= _ALIKE for ratio in ratios)


def _matches(scenario: Scenario, sign: str, text: str) -> bool:
    straight = text.replace("\u2019", "'")
    return is_english(scenario) and _sign(sign).search(straight) is not None


@cache
def _sign(name: str) -> re.Pattern[str]:
    signs = tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8"))
    pattern = "".join(signs[name]).replace("@marker", "".join(signs["marker"]))
    return re.compile(pattern, re.IGNORECASE)


def _voice_lines(scenario: Scenario) -> dict[str, str]:
    if scenario.voice is None:
        return {}
    return {
        f"voice.{name}, item {n}": text
        for name in ("unsure", "polar", "told", "filler", "moved")
        for n, text in enumerate(getattr(scenario.voice, name), 1)
    }


def _repetitions(sentences: Mapping[str, str]) -> Iterator[str]:
    """Only pairs that share half of their words are compared letter by letter."""
    bits: dict[str, int] = {}  # each word has one
    rows = []
    for where, text in sentences.items():
        words = {*plain(text)} if is_unspaced(text) else {*plain(text).split()}
        mask = sum(1 << bits.setdefault(word, len(bits)) for word in words)
        rows.append((where, text, len(words), mask))
    for (where, text, n, mask), (place, other, m, mask_of_other) in itertools.combinations(rows, 2):
        n_common = (mask & mask_of_other).bit_count()
        if 2 * n_common >= max(n, m) and _is_alike(text, other):
            start, _, number = where.rpartition(", ")
            same = number if place.startswith(f"{start}, ") else where
            yield f"{place}: says nearly the same as {same}"
