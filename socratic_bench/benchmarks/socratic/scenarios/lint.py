"""What a scenario file may say and still should not: advice to its writer, one line each."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from socratic_bench.benchmarks.socratic.scenarios.fields import FIELDS
from socratic_bench.benchmarks.socratic.scenarios.scenario import AGES, FAMILIES, Scenario, normal
from socratic_bench.benchmarks.socratic.scenarios.wording import plain
from socratic_bench.types import counted

_ALIKE = 0.8
_FEWEST_WORDS = {"persona": 15, "belief": 4, "because": 4}
_MOST_WORDS = 70
_FEWEST_OPENINGS = 2
_DRAWN_WORDS = 4
_EARLIEST_CLOSE = 8  # from here on there is room for every kind of pressure
_ENOUGH_FOR_AGES = 12
_ENOUGH_FOR_SUBJECTS = 6
# What a speaker says first, without having said anything.
_MARKER = (
    r"(?:(?:well|oh|ah|hmm?|um|uh|okay|ok|so|but|and|i'd say|i would say|i mean|i guess|i think"
    r"|i suppose)\W+)*"
)
_UNASKED = (
    rf"^\W*{_MARKER}(?:yes|no|nope|yep|yeah|exactly|right|correct|because|sure|certainly|absolutely"
    r"|of course|(?:it )?depends|perhaps not|maybe not|(?:neither|both|never)(?=\W*(?:[.,;!]|$))"
    r"|not (?:really|at all|exactly|always|necessarily|yet|that i|as far as)"
    r"|i (?:do not|don't|wouldn't|couldn't) (?:know|say|tell)(?=\W*(?:[.,;!]|$))"
    r"|that(?:'s| is) because|it(?:'s| is) because|i (?:dis)?agree|to your)\b(?! (?:one|man"
    r"|matter)\b)"
    r"|\b(good|great|interesting) (question|point)\b|\byou(?:'re| are| were) (?:\w+ )?right\b"
    r"|\bi(?:'ve| have)? never (?:asked|thought about) (?:myself )?(?:that|it)\b"
    r"|\byou(r| just|'ve)? (ask|asked|asking|question|said|say|mentioned|suggested|suggestion"
    r"|point)\b"
    r"|\b(?:since|when|what|as|because) you (?:wanted|want|asked|ask|said) (?:to|about|me)\b"
    r"|\byou (?:wanted|want) to know\b|\bi (?:just )?(?:told|answered) you\b"
    r"|\bi can (?:give|tell|show) you\b|\bto answer (you|that)\b"
)
# All but tab and line breaks.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
CUSTOM = "custom"


def check(
    scenarios: Sequence[Scenario], *, balanced: bool = False, files: Sequence[str | None] = ()
) -> list[str]:
    """Everything worth a second look, as "id: field: reason"; empty is good.

    Pass the built-in scenarios along with one's own to find what is taken from them. `files` says
    where each comes from, `None` from the package, to distinguish two of one id. `balanced` asks
    for families of nearly one size too, as the built-in set has them.
    """
    own = [f"{one.id}: {found}" for one in scenarios for found in _each(one)]
    shared = [*_ids(scenarios, files), *_shared(scenarios)]
    return [*own, *shared, *(_unbalanced(scenarios) if balanced else ())]


def _each(scenario: Scenario) -> Iterator[str]:
    yield from _control(scenario)
    yield from _lengths(scenario)
    yield from _openings(scenario)
    yield from _drawn_out(scenario)
    yield from _clauses(scenario)
    yield from _closing(scenario)
    yield from _alike(scenario.replies)
    for position, reply in enumerate(scenario.replies, start=1):
        if "?" in reply:
            yield f"replies, item {position}: asks a question; asking is the tutor's part"
        if re.search(_UNASKED, reply, re.IGNORECASE):
            yield f"replies, item {position}: answers something that may not have been asked"


def _control(scenario: Scenario) -> Iterator[str]:
    for field in FIELDS:
        value = getattr(scenario, field.path.removeprefix("student."))
        texts = value if isinstance(value, tuple) else (value,)
        for text in texts:
            if isinstance(text, str) and (found := _CONTROL.search(text)):
                yield f"{field.path}: holds the control character U+{ord(found[0]):04X}"


def _lengths(scenario: Scenario) -> Iterator[str]:
    for name, fewest in _FEWEST_WORDS.items():
        found = len(getattr(scenario, name).split())
        if found < fewest:
            told = counted(found, "word says", "words say")
            yield f"student.{name}: {told} too little; write {fewest} or more"
    for position, reply in enumerate(scenario.replies, start=1):
        if len(reply.split()) > _MOST_WORDS:
            yield f"replies, item {position}: longer than {_MOST_WORDS} words; students say less"


def _openings(scenario: Scenario) -> Iterator[str]:
    if len(scenario.openings) < _FEWEST_OPENINGS:
        yield "openings: 1 given; write two or more, since a tutor may know one of them by heart"
    elif all(_is_alike(scenario.openings[0], other) for other in scenario.openings):
        yield "openings: all of them say nearly the same; write one that begins elsewhere"
    for reply in scenario.replies:
        if plain(reply) in map(plain, scenario.openings):
            yield "replies: one of them is an opening, which the student has said already"


def _closing(scenario: Scenario) -> Iterator[str]:
    if "?" in (scenario.closing or ""):
        yield "closing: asks a question, and nobody is there to answer it"
    if scenario.closes_after is not None and scenario.closes_after < _EARLIEST_CLOSE:
        yield f"closes_after: {scenario.closes_after} is too early; write {_EARLIEST_CLOSE} or more"


def _drawn_out(scenario: Scenario) -> Iterator[str]:
    """What is to be drawn out is a thought of the student's, and no question of the tutor's."""
    for position, text in enumerate(scenario.draws_out, start=1):
        if text.rstrip().endswith("?"):
            yield f"draws_out, item {position}: a question; write what its answer brings to light"
        if len(text.split()) < _DRAWN_WORDS:
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
        if text[-1] in ".!?":
            yield f"student.{name}: leave out the mark at the end; it stands inside sentences"
        if text.casefold().startswith(f"{word} "):
            yield f'student.{name}: leave out "{word}" at the beginning; the program puts it there'


def _alike(replies: Sequence[str]) -> Iterator[str]:
    for (i, one), (j, other) in itertools.combinations(enumerate(replies, start=1), 2):
        if _is_alike(one, other):
            yield f"replies, item {j}: says nearly the same as item {i}"


def _is_alike(one: str, other: str) -> bool:
    import difflib

    match = difflib.SequenceMatcher(None, plain(one), plain(other))
    # The first two are upper bounds, and much cheaper.
    ratios = (match.real_quick_ratio, match.quick_ratio, match.ratio)
    return all(ratio() >= _ALIKE for ratio in ratios)


def _ids(scenarios: Sequence[Scenario], files: Sequence[str | None]) -> Iterator[str]:
    for name, count in Counter(one.id for one in scenarios).items():
        if count > 1:
            pairs = zip(scenarios, files, strict=False)
            places = [file or "the built-in one" for one, file in pairs if one.id == name]
            where = f": {', '.join(places)}" if places else ""
            yield f"{name}: id: used by {count} scenarios{where}"


def _shared(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """What a scenario has from another one; of two with one id that is no news."""
    for n, scenario in enumerate(scenarios):
        for owner in scenarios[:n]:
            if owner.id != scenario.id:
                yield from (f"{scenario.id}: {found}" for found in _taken(scenario, owner))


def _taken(scenario: Scenario, owner: Scenario) -> Iterator[str]:
    for opening in scenario.openings:
        if any(_is_alike(opening, other) for other in owner.openings):
            yield f'openings: "{opening}" belongs to {owner.id} already'
    if plain(scenario.belief) == plain(owner.belief):
        yield f"student.belief: belongs to {owner.id} already"
    known = set(map(plain, owner.replies))
    for position, reply in enumerate(scenario.replies, start=1):
        if plain(reply) in known:
            yield f"replies, item {position}: belongs to {owner.id} already"


def _unbalanced(scenarios: Sequence[Scenario]) -> Iterator[str]:
    counts = Counter(one.family for one in scenarios if one.id != CUSTOM)
    sizes = {family: counts[family] for family in FAMILIES}
    if max(sizes.values()) - min(sizes.values()) > 1:
        listed = ", ".join(f"{family} {size}" for family, size in sizes.items())
        yield f"all: family: sizes differ by more than one ({listed})"
    ages = {one.age for one in scenarios if one.id != CUSTOM}
    if sum(sizes.values()) >= _ENOUGH_FOR_AGES and (missing := [a for a in AGES if a not in ages]):
        yield f"all: age: no scenario for {', '.join(missing)}"
    subjects = Counter(one.subject for one in scenarios if one.id != CUSTOM)
    for subject, count in subjects.items():
        if sum(sizes.values()) >= _ENOUGH_FOR_SUBJECTS and count * 3 > sum(sizes.values()):
            yield f"all: subject: {subject} has more than a third of all scenarios"
