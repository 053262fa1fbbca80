"""How closely a tutor's words match each sentence of a scenario, by the words that they share.

Texts are compared by TF-IDF and the cosine (Manning, Raghavan, Schuetze, Introduction to
Information Retrieval, 2008, chapter 6). A sentence and the example questions that its scenario has
for it are one text. Nothing here knows that two words mean the same, so the examples are many.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario, groups
from socratic_bench.benchmarks.socratic.scenarios.wording import QUESTION_MARKS, plain

Vector = Mapping[str, float]

_MARKS = "".join(QUESTION_MARKS)
# Japanese asks without a mark, too.
_QUESTION = re.compile(f"[^.!\u3002\uff01\n{_MARKS}]+(?:[{_MARKS}]+|(?<=\u304b)\u3002)")
_WORD = re.compile(r"[^\W_]{2,}|\d")
# Scripts without blanks between words: every two characters count as a word.
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")
_STEM_LENGTH = 5
_CONTEXT_WEIGHT = 0.3  # of words that stand beside the question, which weigh 1


class _Index(Struct, frozen=True):
    """The texts of a scenario by the sentence that they belong to, as vectors of length 1.

    `weights` has the inverse document frequency of each stem, `rarest` the highest of them. An
    example question leads to its sentence by its plain words.
    """

    vectors: Mapping[str, Vector]
    weights: Vector
    rarest: float
    sentence_by_example: Mapping[str, str]


def questions_in(text: str) -> tuple[str, ...]:
    """The sentences of a text that ask something, by their question marks."""
    return tuple(question.strip() for question in _QUESTION.findall(text))


def similarities(scenario: Scenario, tutor: str) -> Mapping[str, float]:
    """For each of the student's sentences, how closely the tutor's words match it.

    From 0, no word in common, to 1, an example question in its own words. What the tutor says
    beside its questions counts less than these.
    """
    index = _index(scenario)
    questions = questions_in(tutor)
    counts = dict.fromkeys(_stems(tutor), _CONTEXT_WEIGHT)
    counts |= dict.fromkeys(chain.from_iterable(map(_stems, questions)), 1.0)
    question_vector = _unit_vector(
        {stem: n * index.weights.get(stem, index.rarest) for stem, n in counts.items()}
    )
    cosines = {
        sentence: _cosine(question_vector, vector) for sentence, vector in index.vectors.items()
    }
    examples = (index.sentence_by_example.get(plain(question)) for question in questions)
    return cosines | {sentence: 1.0 for sentence in examples if sentence is not None}


@lru_cache(maxsize=64)
def _index(scenario: Scenario) -> _Index:
    texts: dict[str, list[str]] = {}
    sentence_by_example: dict[str, str] = {}
    for group in groups(scenario).values():
        for position, sentence in enumerate(group.says):
            examples = questions_in(group.asked[position]) if group.asked else ()
            texts.setdefault(sentence, [sentence]).extend(examples)
            sentence_by_example |= {plain(example): sentence for example in examples}
    counts = {
        sentence: Counter(chain.from_iterable(map(_stems, parts)))
        for sentence, parts in texts.items()
    }
    frequencies = Counter(chain.from_iterable(counts.values()))
    weights = {stem: math.log((1 + len(texts)) / n) for stem, n in frequencies.items()}
    return _Index(
        {
            sentence: _unit_vector(
                {stem: (1 + math.log(n)) * weights[stem] for stem, n in count.items()}
            )
            for sentence, count in counts.items()
        },
        weights,
        max(weights.values(), default=0.0),
        sentence_by_example,
    )


def _stems(text: str) -> frozenset[str]:
    """The words of a text without their endings."""
    folded = text.casefold()
    runs = _UNSPACED.findall(folded)
    pairs = {run[start : start + 2] for run in runs for start in range(len(run) - 1)}
    words: Iterable[str] = _WORD.findall(_UNSPACED.sub(" ", folded))
    return frozenset(pairs | {word[:_STEM_LENGTH] for word in words})


def _unit_vector(weights: Vector) -> Vector:
    length = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
    return {stem: weight / length for stem, weight in weights.items()}


def _cosine(vector: Vector, other: Vector) -> float:
    return sum(weight * other.get(stem, 0.0) for stem, weight in vector.items())
