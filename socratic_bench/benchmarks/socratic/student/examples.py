"""Which sentence a question asks for, by the example questions that its scenario has for each.

Questions are compared as texts are in retrieval: by the cosine of the stems of their words, rare
ones weighing more (TF-IDF: Manning, Raghavan, Schuetze, Introduction to Information Retrieval,
2008, chapter 6). Nothing here knows that two words mean the same, so the examples are many.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario, groups, own_sentences
from socratic_bench.benchmarks.socratic.scenarios.wording import QUESTION_MARKS
from socratic_bench.benchmarks.socratic.student.kinds import unquoted
from socratic_bench.benchmarks.socratic.student.shared_words import (
    all_words_of,
    rare_words,
    words_of,
)
from socratic_bench.benchmarks.socratic.student.tutor_question import TutorQuestion

Vector = Mapping[str, float]
_MARKS = "".join(QUESTION_MARKS)
_QUESTION = re.compile(f"[^{_MARKS}]+[{_MARKS}]")
_NUMBER = re.compile(r"\d+")
_OF_THE_SENTENCE = 2.0  # what its own words count beside those of its example questions
_A_WORD, _MOST_WORDS = 0.7, 2  # what a telling word counts where there are no examples
_OF_ANY_TALK = 0.75  # what words count that stand in any talk, if no others are shared
_BESIDE = 0.3  # what is quoted, or said before the question
_LONG = 4  # words: what is shorter between marks is a word that is asked about


class _Index(Struct, frozen=True):
    """What each word weighs, the rarer the more, and in which texts it stands.

    Texts are the sentences and then their example questions, each known by its place, and a vector
    of length 1; `owners` are the sentences that they belong to.
    """

    weights: Vector
    rarest: float
    n_sentences: int
    owners: tuple[str, ...]
    standing: Mapping[str, tuple[tuple[int, float], ...]]


def similarity(scenario: Scenario, heard: TutorQuestion) -> Mapping[str, float]:
    """How surely a question asks for each sentence: from 0, no word in common, to 3.

    Without example questions the telling words count that the question has not from the last reply.
    """
    index = _index(scenario)
    if len(index.owners) == index.n_sentences:
        return _similarity_by_words(scenario, heard)
    by_own, by_example = (dict.fromkeys(index.owners, 0.0) for _ in range(2))
    for place, found in _cosines(heard, index):
        of_this = by_own if place < index.n_sentences else by_example
        own = index.owners[place]
        of_this[own] = max(of_this[own], found)
    return {own: found + _OF_THE_SENTENCE * by_own[own] for own, found in by_example.items()}


def _cosines(heard: TutorQuestion, index: _Index) -> Iterator[tuple[int, float]]:
    """Of each text that shares a word with the question, by its place.

    It is less if the question has telling words and shares none of them.
    """
    cosines = [0.0] * len(index.owners)
    for word, weight in _asked(heard, index).items():
        for place, in_text in index.standing.get(word, ()):
            cosines[place] += weight * in_text
    telling = words_of(heard.asked.questions)
    told = {place for word in telling for place, _ in index.standing.get(word, ())}
    for place, cosine in enumerate(cosines):
        if cosine:
            yield place, cosine if not telling or place in told else _OF_ANY_TALK * cosine


def _similarity_by_words(scenario: Scenario, heard: TutorQuestion) -> Mapping[str, float]:
    words = words_of(heard.asked.questions) - words_of(heard.known)
    return {
        own: _A_WORD * min(_MOST_WORDS, len(words & rare))
        for own, rare in rare_words(scenario).items()
    }


def _asked(heard: TutorQuestion, index: _Index) -> Vector:
    """The words of the questions, and with less weight those that they quote or are put beside.

    A telling word that no text of the scenario has weighs most.
    """
    questions = unquoted(heard.asked.questions, _LONG)
    beside = _words(f"{heard.asked.questions} {heard.asked.rest}")
    times = {**dict.fromkeys(beside, _BESIDE), **dict.fromkeys(_words(questions), 1.0)}
    unknown = dict.fromkeys(words_of(f"{heard.asked.questions} {heard.asked.rest}"), index.rarest)
    weights = {**unknown, **index.weights}
    return _unit({word: one * weights.get(word, 0.0) for word, one in times.items()})


def _words(text: str) -> frozenset[str]:
    return all_words_of(text) | frozenset(_NUMBER.findall(text))


@lru_cache(maxsize=64)
def _index(scenario: Scenario) -> _Index:
    sentences = [(own, _words(own)) for own in dict.fromkeys(own_sentences(scenario).values())]
    examples = [
        (own, _words(one))
        for group in groups(scenario).values()
        for own, asked in zip(group.says, group.asked, strict=False)
        for one in _QUESTION.findall(asked)
    ]
    texts = [*sentences, *examples]
    often = Counter(chain.from_iterable(words for _, words in texts))
    weights = {word: math.log((1 + len(texts)) / times) for word, times in often.items()}
    standing: dict[str, list[tuple[int, float]]] = {word: [] for word in often}
    for place, (_, words) in enumerate(texts):
        for word, weight in _unit({word: weights[word] for word in words}).items():
            standing[word].append((place, weight))
    return _Index(
        weights,
        max(weights.values(), default=0.0),
        len(sentences),
        tuple(own for own, _ in texts),
        {word: tuple(places) for word, places in standing.items()},
    )


def _unit(weighed: Vector) -> Vector:
    length = math.sqrt(sum(one * one for one in weighed.values())) or 1.0
    return {word: one / length for word, one in weighed.items()}
