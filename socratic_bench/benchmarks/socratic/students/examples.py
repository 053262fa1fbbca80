"""Which sentence a question asks for, by the example questions that its scenario has for each.

Questions are compared as texts are in retrieval: by the cosine of the stems of their words, rare
ones weighing more (TF-IDF: Manning, Raghavan, Schuetze, Introduction to Information Retrieval,
2008, chapter 6). Nothing here knows that two words mean the same, so the examples are many.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario, groups, own_sentences
from socratic_bench.benchmarks.socratic.scenarios.wording import QUESTION_MARKS
from socratic_bench.benchmarks.socratic.students.kinds import unquoted
from socratic_bench.benchmarks.socratic.students.shared_words import (
    all_words_of,
    rare_words,
    words_of,
)
from socratic_bench.benchmarks.socratic.students.tutor_question import TutorQuestion

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
    """What each word weighs, the rarer the more, and by sentence its own words and those of each
    example question, as vectors of length 1.
    """

    weights: Vector
    rarest: float
    sentences: Mapping[str, Vector]
    examples: tuple[tuple[str, Vector], ...]


def similarity(scenario: Scenario, heard: TutorQuestion) -> Mapping[str, float]:
    """How surely a question asks for each sentence: from 0, no word in common, to 3.

    Without example questions the telling words count that the question has not from the last reply.
    """
    index = _index(scenario)
    if not index.examples:
        return _similarity_by_words(scenario, heard)
    asked, telling = _asked(heard, index), words_of(heard.asked.questions)
    found = dict.fromkeys(index.sentences, 0.0)
    for own, example in index.examples:
        found[own] = max(found[own], _similarity(asked, telling, example))
    return {
        own: found_similar + _OF_THE_SENTENCE * _similarity(asked, telling, index.sentences[own])
        for own, found_similar in found.items()
    }


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
    sentences = {own: _words(own) for own in own_sentences(scenario).values()}
    examples = [
        (own, _words(one))
        for group in groups(scenario).values()
        for own, asked in zip(group.says, group.asked, strict=False)
        for one in _QUESTION.findall(asked)
    ]
    listed = [*sentences.values(), *(words for _, words in examples)]
    often = Counter(chain.from_iterable(listed))
    weights = {word: math.log((1 + len(listed)) / times) for word, times in often.items()}

    def vector(words: frozenset[str]) -> Vector:
        return _unit({word: weights[word] for word in words})

    return _Index(
        weights,
        max(weights.values(), default=0.0),
        {own: vector(words) for own, words in sentences.items()},
        tuple((own, vector(words)) for own, words in examples),
    )


def _unit(weighed: Vector) -> Vector:
    length = math.sqrt(sum(one * one for one in weighed.values())) or 1.0
    return {word: one / length for word, one in weighed.items()}


def _similarity(asked: Vector, telling: frozenset[str], other: Vector) -> float:
    """The cosine; less if the question has telling words and shares none of them."""
    cosine = sum(weight * other[word] for word, weight in asked.items() if word in other)
    return cosine if not telling or not telling.isdisjoint(other) else _OF_ANY_TALK * cosine
