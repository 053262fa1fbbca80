"""Advice to the writer of a scenario, beyond what makes a file valid."""

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.fields import fields_in
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    AGES,
    CUSTOM,
    FAMILIES,
    QUESTION_MARKS,
    PressureWords,
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

# The id of the scenario that it is about, or `ALL`, and "field: reason".
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
ALIKE = 0.8
# Sentences of one's own for half of a dialogue of forty turns, and lines of each kind so that a
# person does not sound like a machine.
FEWEST_SENTENCES = 20
FEWEST_LINES = {"unsure": 6, "polar": 5, "told": 6, "filler": 8, "moved": 4}
FEWEST_PUSHES = 3
_MOST_WORDS = 70
_SHORT_WORD = 3
_LINKS = frozenset(
    ("because", "there", "them", "they", "that", "this", "than", "with", "from", "have")
)
# Words that a speaker begins with.
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
_AGREES = (
    rf"^\W*{_MARKER}(?:yes(?! and no)|yep|yeah|exactly|right|correct|sure|certainly|absolutely"
    r"|definitely|of course|true|agreed|i agree)(?=\W*(?:[.,;!]|$| (?:i|it|that|you|we|they)\b))"
    r"|\byou(?:'re| are| were) (?:\w+ )?right\b|\bas you (?:say|said)\b|\bthat's (?:so )?true\b"
    r"|\bi (?:completely |totally |fully )?agree with you\b"
)
_POLAR = (
    rf"^\W*{_MARKER}(?:yes|no|nope|yep|yeah|sort of|kind of|not really|yes and no|in a way|partly"
    r"|mostly|sometimes|probably|maybe|perhaps|i (?:think|guess|suppose) (?:so|not))(?=\W*[.,;!])"
)
_PRAISES = (
    r"\b(?:good|great|interesting|fair|excellent|clever|tricky|hard|nice|deep|tough) "
    r"(?:question|point)\b|\bthat's a question\b|\bthank you for (?:asking|the question)\b"
)
_CLOSES = (
    r"\b(?:case closed|end of (?:story|discussion|the matter)|that(?:'s| is) (?:that|settled)"
    r"|that settles (?:it|the)|nothing (?:more|else) to (?:say|discuss|talk about)|i'm convinced"
    r"|now (?:i understand|it's clear|everything is clear)|problem solved|i've made up my mind"
    r"|let's leave it(?: at that| there)?|i get it now|we(?:'re| are) done|i'm done)\b"
)
_STAGE = r"[*(\[][a-z]+s\b[^*)\]]{0,40}[*)\]]"


def check(scenarios: Sequence[Scenario], *, files: Sequence[str | None] = ()) -> Iterator[Advice]:
    """All advice on these scenarios, one line each.

    Pass the built-in scenarios, too, to find texts copied from them. `files`
    says where each comes from, `None` for the package, to distinguish two of one id.
    """
    for scenario in scenarios:
        yield from ((scenario.id, advice) for advice in _advice_on(scenario))
    yield from _repeated_ids(scenarios, files)
    yield from _borrowed(scenarios)


def unbalanced(scenarios: Sequence[Scenario]) -> Iterator[Advice]:
    """What the built-in scenarios lack: material, balance of families, ages and subjects."""
    for scenario in scenarios:
        yield from ((scenario.id, advice) for advice in too_little(scenario))
    played = [scenario for scenario in scenarios if scenario.id != CUSTOM]
    yield from _uneven_families(played)
    ages = {scenario.age for scenario in played}
    if len(played) >= _ENOUGH_FOR_AGES and (missing := [a for a in AGES if a not in ages]):
        yield ALL, f"age: no scenario for {', '.join(missing)}"
    for subject, count in Counter(scenario.subject for scenario in played).items():
        if len(played) >= _ENOUGH_FOR_SUBJECTS and count * 3 > len(played):
            yield ALL, f"subject: {subject} has more than a third of all scenarios"


def _uneven_families(played: Sequence[Scenario]) -> Iterator[Advice]:
    counts = Counter(scenario.family for scenario in played)
    sizes = {family: counts[family] for family in FAMILIES}
    if max(sizes.values()) - min(sizes.values()) > 1:
        listed = ", ".join(f"{family} {size}" for family, size in sizes.items())
        yield ALL, f"family: sizes differ by more than one ({listed})"


def _advice_on(scenario: Scenario) -> Iterator[str]:
    field_rules = (_control_characters, _lengths, _openings, _insights, _clauses, _closing)
    for rule in (*field_rules, wrong_sentences, unfinished_groups, unmarked_belief):
        yield from rule(scenario)


def _control_characters(scenario: Scenario) -> Iterator[str]:
    for path, text in _texts_in(scenario):
        if match := _CONTROL.search(text):
            yield f"{path}: holds the control character U+{ord(match[0]):04X}"


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
            if owner.id != scenario.id:
                yield from ((scenario.id, advice) for advice in _borrowed_from(scenario, owner))
                for place in (place for place, text in sentences[n].items() if text in texts[at]):
                    yield scenario.id, f"{place}: belongs to {owner.id} already"


def _borrowed_from(scenario: Scenario, owner: Scenario) -> Iterator[str]:
    for opening in scenario.openings:
        if any(is_alike(opening, other) for other in owner.openings):
            yield f'openings: "{opening}" belongs to {owner.id} already'
    if plain(scenario.belief) == plain(owner.belief):
        yield f"student.belief: belongs to {owner.id} already"


def wrong_sentences(scenario: Scenario) -> Iterator[str]:
    """Sentences and lines that the student should not say."""
    sentences, lines = own_sentences(scenario), _voice_lines(scenario)
    for where, text in {**sentences, **lines}.items():
        if n_words(text) > _MOST_WORDS:
            yield f"{where}: longer than {_MOST_WORDS} words; students say less"
        if not QUESTION_MARKS.isdisjoint(text):
            yield f"{where}: asks a question; asking is the tutor's part"
        in_order = where.startswith("replies")
        yield from (f"{where}: {fault}" for fault in _faults(scenario, text, in_order=in_order))
        may_be_polar = where.startswith(("voice.polar", "voice.told"))
        if not in_order and not may_be_polar and _matches(scenario, _POLAR, text):
            yield f"{where}: answers a yes-or-no question, and may follow another"
    yield from _repetitions({**sentences, **lines})


def unfinished_groups(scenario: Scenario) -> Iterator[str]:
    """Sentences without example questions, and examples that are no questions."""
    for place, group in groups(scenario).items():
        if group.says and not group.asked:
            yield f"{place}, asked: missing; without example questions hardly any question fits"
        for n, text in enumerate(group.asked, 1):
            if text[-1] not in QUESTION_MARKS:
                yield f"{place}, asked, item {n}: no question at the end; each ends with its mark"


def unmarked_belief(scenario: Scenario) -> Iterator[str]:
    """Sentences that state the belief and may come after an insight."""
    belief = _content_words(scenario.belief)
    for where, text, advice in _after_insights(scenario):
        if is_english(scenario) and belief and belief <= _content_words(text):
            yield f"{where}: states the belief; {advice}"


def _after_insights(scenario: Scenario) -> Iterator[tuple[str, str, str]]:
    """Sentences that may come after an insight: where each stands, and what to do about it."""
    for n, move in enumerate(scenario.moves, 1):
        if not move.holds_belief:
            for m, text in enumerate(move.says, 1):
                place = f"moves, item {n}, says, item {m}"
                yield place, text, "mark its group with holds_belief = true"
    moved = scenario.voice.moved if scenario.voice else ()
    for n, text in enumerate(moved, 1):
        yield f"voice.moved, item {n}", text, "it follows an insight"


def _content_words(text: str) -> frozenset[str]:
    words = frozenset(word for word in plain(text).split() if len(word) > _SHORT_WORD)
    return words - _LINKS


def too_little(scenario: Scenario) -> Iterator[str]:
    """What a built-in scenario with moves lacks."""
    if not scenario.moves:
        return
    yield from _missing(scenario)
    for name, what, n_given, fewest in _counts(scenario):
        if n_given < fewest:
            yield f"{name}: {plural(n_given, what)}; write {fewest} or more"


def _missing(scenario: Scenario) -> Iterator[str]:
    if scenario.id == CUSTOM:  # nobody knows what its matter will be
        return
    for name in ("knows", "does_not_know"):
        if getattr(scenario, name) is None:
            yield f"{name}: missing"
    if not scenario.draws_out:
        yield "draws_out: nothing in it"
    for place, group in groups(scenario).items():
        if not group.says:
            yield f"{place}, says: missing"


def _counts(scenario: Scenario) -> Iterator[tuple[str, str, int, int]]:
    """A list of the file, what it is a list of, how many there are and should be."""
    yield "says", "sentence", len(own_sentences(scenario)), FEWEST_SENTENCES
    for name, fewest in FEWEST_LINES.items():
        if name != "moved" or scenario.draws_out:
            yield f"voice.{name}", "line", len(getattr(scenario.voice, name, ())), fewest
    if not is_english(scenario):
        for name in PressureWords.__struct_fields__:
            count = len(getattr(scenario.pressure, name, ()))
            yield f"pressure.{name}", "sentence", count, FEWEST_PUSHES


def is_alike(text: str, other: str) -> bool:
    match = difflib.SequenceMatcher(None, plain(text), plain(other))
    # The first two are upper bounds, and much cheaper.
    ratios = (match.real_quick_ratio, match.quick_ratio, match.ratio)
    return all(ratio() >= ALIKE for ratio in ratios)


def _faults(scenario: Scenario, text: str, *, in_order: bool) -> Iterator[str]:
    if in_order:
        if _matches(scenario, _UNASKED, text):
            yield "answers something that may not have been asked"
        return
    if _matches(scenario, _AGREES, text):
        yield "agrees with something that may not have been said"
    if _matches(scenario, _PRAISES, text):
        yield "praises the question"
    if _matches(scenario, _CLOSES, text):
        yield "closes the case, and the dialogue goes on"
    if _matches(scenario, _STAGE, text):
        yield "holds a stage direction; only what is said counts"


def _matches(scenario: Scenario, pattern: str, text: str) -> bool:
    straight = text.replace("\u2019", "'")
    return is_english(scenario) and bool(re.search(pattern, straight, re.IGNORECASE))


def _voice_lines(scenario: Scenario) -> dict[str, str]:
    if scenario.voice is None:
        return {}
    return {
        f"voice.{name}, item {n}": text
        for name in FEWEST_LINES
        for n, text in enumerate(getattr(scenario.voice, name), 1)
    }


def _repetitions(sentences: Mapping[str, str]) -> Iterator[str]:
    """Only pairs that share half of their words are compared letter by letter."""
    words = {
        where: frozenset(plain(text) if is_unspaced(text) else plain(text).split())
        for where, text in sentences.items()
    }
    for (where, text), (place, other) in itertools.combinations(sentences.items(), 2):
        common = len(words[where] & words[place])
        if 2 * common >= max(len(words[where]), len(words[place])) and is_alike(text, other):
            yield f"{place}: says nearly the same as {_short_place(where, place)}"


def _short_place(where: str, place: str) -> str:
    """The earlier place, by its number alone in the same list."""
    start, _, number = where.rpartition(", ")
    return number if place.startswith(f"{start}, ") else where
