"""What a scenario file may say and still should not: advice to its writer, one line each."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.fields import fields_in
from socratic_bench.benchmarks.socratic.scenarios.says import (
    is_alike,
    too_little,
    unfinished_groups,
    unmarked_belief,
    wrong_sentences,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    AGES,
    CUSTOM,
    FAMILIES,
    Scenario,
    is_english,
    normal,
    own_sentences,
)
from socratic_bench.benchmarks.socratic.scenarios.wording import QUESTION_MARKS, n_words, plain
from socratic_bench.types import plural

# The id of the scenario that has it, or `ALL`, and "field: reason".
Advice = tuple[str, str]
ALL = "all"
_FEWEST_WORDS = {"persona": 15, "belief": 4, "because": 4}
_FEWEST_OPENINGS = 2
_DRAWN_WORDS = 4
_EARLIEST_CLOSE = 8  # from here on there is room for every kind of pressure
_ENOUGH_FOR_AGES = 12
_ENOUGH_FOR_SUBJECTS = 6
_MARKS = ".!?\u3002\uff01\uff1f"
# All but tab and line breaks.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def check(scenarios: Sequence[Scenario], *, files: Sequence[str | None] = ()) -> Iterator[Advice]:
    """Everything worth a second look; nothing is good.

    Pass the built-in scenarios along with one's own to find what is taken from them. `files` says
    where each comes from, `None` from the package, to distinguish two of one id.
    """
    for one in scenarios:
        yield from ((one.id, found) for found in _each(one))
    yield from _ids(scenarios, files)
    yield from _shared(scenarios)


def unbalanced(scenarios: Sequence[Scenario]) -> Iterator[Advice]:
    """What the scenarios lack as a set: material, families of one size, all ages and subjects."""
    for one in scenarios:
        yield from ((one.id, found) for found in too_little(one))
    played = [one for one in scenarios if one.id != CUSTOM]
    yield from _uneven_families(played)
    ages = {one.age for one in played}
    if len(played) >= _ENOUGH_FOR_AGES and (missing := [a for a in AGES if a not in ages]):
        yield ALL, f"age: no scenario for {', '.join(missing)}"
    for subject, count in Counter(one.subject for one in played).items():
        if len(played) >= _ENOUGH_FOR_SUBJECTS and count * 3 > len(played):
            yield ALL, f"subject: {subject} has more than a third of all scenarios"


def _uneven_families(played: Sequence[Scenario]) -> Iterator[Advice]:
    counts = Counter(one.family for one in played)
    sizes = {family: counts[family] for family in FAMILIES}
    if max(sizes.values()) - min(sizes.values()) > 1:
        listed = ", ".join(f"{family} {size}" for family, size in sizes.items())
        yield ALL, f"family: sizes differ by more than one ({listed})"


def _each(scenario: Scenario) -> Iterator[str]:
    own = (_control, _lengths, _openings, _drawn_out, _clauses, _closing)
    for find in (*own, wrong_sentences, unfinished_groups, unmarked_belief):
        yield from find(scenario)


def _control(scenario: Scenario) -> Iterator[str]:
    for path, text in _texts(scenario):
        if found := _CONTROL.search(text):
            yield f"{path}: holds the control character U+{ord(found[0]):04X}"


def _texts(table: Struct, place: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a scenario with the field that it stands in."""
    for field in fields_in(type(table)):
        path = f"{place}{field.path}"
        value = getattr(table, field.path.removeprefix("student."))
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, str):
                yield path, one
            elif isinstance(one, Struct):
                yield from _texts(one, f"{path}.")


def _lengths(scenario: Scenario) -> Iterator[str]:
    for name, fewest in _FEWEST_WORDS.items():
        found = n_words(getattr(scenario, name))
        if found < fewest:
            told = plural(found, "word says", "words say")
            yield f"student.{name}: {told} too little; write {fewest} or more"


def _openings(scenario: Scenario) -> Iterator[str]:
    if len(scenario.openings) < _FEWEST_OPENINGS:
        yield "openings: 1 given; write two or more, since a tutor may know one of them by heart"
    elif all(is_alike(scenario.openings[0], other) for other in scenario.openings):
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


def _drawn_out(scenario: Scenario) -> Iterator[str]:
    """What is to be drawn out is a thought of the student's, and no question of the tutor's."""
    for position, one in enumerate(scenario.draws_out, start=1):
        text = one.insight
        if text[-1] in QUESTION_MARKS:
            yield f"draws_out, item {position}: a question; write what its answer brings to light"
        if n_words(text) < _DRAWN_WORDS:
            yield f"draws_out, item {position}: says too little; write {_DRAWN_WORDS} words or more"
        if normal(text) == normal(scenario.belief):
            yield f"draws_out, item {position}: is the belief, so there is nothing to draw out"


def _clauses(scenario: Scenario) -> Iterator[str]:
    if is_alike(scenario.because, scenario.belief):
        yield "student.because: says the belief again; write what it rests on"
    clauses = [("belief", "that", scenario.belief), ("because", "because", scenario.because)]
    nouns = [("topic", "about", scenario.topic)]
    nouns += [(f"details, item {n}", "about", text) for n, text in enumerate(scenario.details, 1)]
    for name, word, text in [*clauses, *nouns]:
        if text[-1] in _MARKS:
            yield f"student.{name}: leave out the mark at the end; it stands inside sentences"
        if is_english(scenario) and text.casefold().startswith(f"{word} "):
            yield f'student.{name}: leave out "{word}" at the beginning; the program puts it there'


def _ids(scenarios: Sequence[Scenario], files: Sequence[str | None]) -> Iterator[Advice]:
    for name, count in Counter(one.id for one in scenarios).items():
        if count > 1:
            pairs = zip(scenarios, files, strict=False)
            places = [file or "the built-in one" for one, file in pairs if one.id == name]
            where = f": {', '.join(places)}" if places else ""
            yield name, f"id: used by {count} scenarios{where}"


def _shared(scenarios: Sequence[Scenario]) -> Iterator[Advice]:
    """What a scenario has from another one; of two with one id that is no news."""
    sentences = [
        {place: plain(text) for place, text in own_sentences(one).items()} for one in scenarios
    ]
    known = [{*said.values()} for said in sentences]
    for n, scenario in enumerate(scenarios):
        for at, owner in enumerate(scenarios[:n]):
            if owner.id != scenario.id:
                yield from ((scenario.id, found) for found in _taken(scenario, owner))
                for place in (place for place, text in sentences[n].items() if text in known[at]):
                    yield scenario.id, f"{place}: belongs to {owner.id} already"


def _taken(scenario: Scenario, owner: Scenario) -> Iterator[str]:
    for opening in scenario.openings:
        if any(is_alike(opening, other) for other in owner.openings):
            yield f'openings: "{opening}" belongs to {owner.id} already'
    if plain(scenario.belief) == plain(owner.belief):
        yield f"student.belief: belongs to {owner.id} already"
