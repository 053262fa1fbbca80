"""What the checker sees in a student's words, and in the questions that ask for them."""

import itertools
import re
from collections.abc import Iterator, Mapping

from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    CUSTOM,
    PressureWords,
    Scenario,
    groups,
    is_english,
    own_sentences,
)
from socratic_bench.benchmarks.socratic.scenarios.wording import (
    QUESTION_MARKS,
    is_unspaced,
    n_words,
    plain,
)
from socratic_bench.types import plural

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


def wrong_sentences(scenario: Scenario) -> Iterator[str]:
    """What the student should not say of itself."""
    own, lines = own_sentences(scenario), _voice(scenario)
    for where, text in {**own, **lines}.items():
        if n_words(text) > _MOST_WORDS:
            yield f"{where}: longer than {_MOST_WORDS} words; students say less"
        if not QUESTION_MARKS.isdisjoint(text):
            yield f"{where}: asks a question; asking is the tutor's part"
        in_order = where.startswith("replies")
        yield from (f"{where}: {found}" for found in _unfit(scenario, text, in_order=in_order))
        may_be_polar = where.startswith(("voice.polar", "voice.told"))
        if not in_order and not may_be_polar and _found(scenario, _POLAR, text):
            yield f"{where}: answers a yes-or-no question, and may follow another"
    yield from _alike({**own, **lines})


def unfinished_groups(scenario: Scenario) -> Iterator[str]:
    """Sentences without example questions, and examples that are no questions."""
    for place, group in groups(scenario).items():
        if group.says and not group.asked:
            yield f"{place}, asked: missing; without example questions hardly any question fits"
        for n, text in enumerate(group.asked, 1):
            if text[-1] not in QUESTION_MARKS:
                yield f"{place}, asked, item {n}: no question at the end; each ends with its mark"


def unmarked_belief(scenario: Scenario) -> Iterator[str]:
    """What speaks for the belief, and may come after the student has seen through it."""
    belief = _content(scenario.belief)
    for where, text, advice in _after_insights(scenario):
        if is_english(scenario) and belief and belief <= _content(text):
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


def _content(text: str) -> frozenset[str]:
    words = frozenset(word for word in plain(text).split() if len(word) > _SHORT_WORD)
    return words - _LINKS


def too_little(scenario: Scenario) -> Iterator[str]:
    """What a built-in scenario with moves has to have beside what any has."""
    if not scenario.moves:
        return
    yield from _missing(scenario)
    for name, what, found, fewest in _counts(scenario):
        if found < fewest:
            yield f"{name}: {plural(found, what)}; write {fewest} or more"


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
            found = len(getattr(scenario.pressure, name, ()))
            yield f"pressure.{name}", "sentence", found, FEWEST_PUSHES


def is_alike(one: str, other: str) -> bool:
    import difflib

    match = difflib.SequenceMatcher(None, plain(one), plain(other))
    # The first two are upper bounds, and much cheaper.
    ratios = (match.real_quick_ratio, match.quick_ratio, match.ratio)
    return all(ratio() >= ALIKE for ratio in ratios)


def _unfit(scenario: Scenario, text: str, *, in_order: bool) -> Iterator[str]:
    if in_order:
        if _found(scenario, _UNASKED, text):
            yield "answers something that may not have been asked"
        return
    if _found(scenario, _AGREES, text):
        yield "agrees with something that may not have been said"
    if _found(scenario, _PRAISES, text):
        yield "praises the question"
    if _found(scenario, _CLOSES, text):
        yield "closes the case, and the dialogue goes on"
    if _found(scenario, _STAGE, text):
        yield "holds a stage direction; only what is said counts"


def _found(scenario: Scenario, pattern: str, text: str) -> bool:
    straight = text.replace("\u2019", "'")
    return is_english(scenario) and bool(re.search(pattern, straight, re.IGNORECASE))


def _voice(scenario: Scenario) -> dict[str, str]:
    if scenario.voice is None:
        return {}
    return {
        f"voice.{name}, item {n}": text
        for name in FEWEST_LINES
        for n, text in enumerate(getattr(scenario.voice, name), 1)
    }


def _alike(sentences: Mapping[str, str]) -> Iterator[str]:
    """Only pairs that share half of their words are compared letter by letter."""
    words = {
        where: frozenset(plain(text) if is_unspaced(text) else plain(text).split())
        for where, text in sentences.items()
    }
    for (where, one), (place, other) in itertools.combinations(sentences.items(), 2):
        common = len(words[where] & words[place])
        if 2 * common >= max(len(words[where]), len(words[place])) and is_alike(one, other):
            yield f"{place}: says nearly the same as {_short(where, place)}"


def _short(where: str, place: str) -> str:
    """The earlier place, by its number alone in the same list."""
    start, _, number = where.rpartition(", ")
    return number if place.startswith(f"{start}, ") else where
