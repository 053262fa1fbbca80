"""A student without a model: it says the sentence that the tutor's question is closest to.

Texts are compared by TF-IDF and the cosine (Manning, Raghavan, Schuetze, Introduction to
Information Retrieval, 2008, chapter 6). A sentence and the example questions that its scenario has
for it are one text. Synonyms are not known to be similar, so the examples are many.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.heuristics import analyse
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    QUESTION_MARKS,
    Insight,
    Scenario,
    groups,
    plain,
)
from socratic_bench.benchmarks.socratic.student.pressure import Schedule, pushed, stands_alone
from socratic_bench.benchmarks.socratic.student.voices import (
    VoiceKind,
    count,
    joined,
    voice_line,
    with_lead,
)
from socratic_bench.benchmarks.socratic.turn import Exchange, Policy, StudentReply

# Measured: docs/dev/validity.md, "The scripted student".
THRESHOLD = 0.25  # a sentence that is less similar to the question is no answer
_FOLLOW_UP = 0.35  # a question so similar to what was said already is about that
_LEADS_ON = 3.0  # what a step to an insight counts then
_LECTURE_WORDS = 40


Vector = Mapping[str, float]

_MARKS = "".join(QUESTION_MARKS)
# A sentence, and its end if it asks. Japanese asks without a mark, too.
_SENTENCE = re.compile(f"([^.!\u3002\uff01\n{_MARKS}]+)([{_MARKS}]+|(?<=\u304b)\u3002)?")
_WORD = re.compile(r"[^\W_]{2,}|\d")
# Scripts without blanks between words: every two characters count as a word.
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")
_STEM_LENGTH = 5
_CONTEXT_WEIGHT = 0.3  # of words that stand beside the question, which weigh 1


class ScriptedStudent(Struct, frozen=True):
    """Gives the same replies to the same tutor for one seed.

    The tutor's question gets the sentence of the scenario that is closest to it, each sentence
    once. A question for any step to an insight gets the next step; one that follows up what the
    student has said is matched to such a step more readily. A question that is close to none,
    a statement, and advice get a line of the scenario's voice. A line that comes again, or any
    line once no sentence is left, is filler. Under pressure a push follows the reply, or stands
    in its place.
    """

    scenario: Scenario
    seed: int
    schedule: Schedule = field(default_factory=Schedule)

    def reply(self, exchanges: Sequence[Exchange]) -> StudentReply:
        turn = len(exchanges)
        if self.scenario.closes_at(turn):
            return StudentReply(text=self.scenario.closing or "", closed=True, policy="scripted")
        history = joined([exchange.student for exchange in exchanges])
        push = self.schedule.at(turn)
        if push and stands_alone(push, self.seed, turn, used_up=not self._has_more(history)):
            text = pushed(self.scenario, self.seed, push)
            return StudentReply(text=text, policy="pushed", pressure=push.kind)
        reply = self._answer(exchanges[-1].tutor, history)
        text = with_lead(self.scenario, self.seed, turn, reply.text, exchanges[-1].student)
        if push is None:
            return replace(reply, text=text)
        return replace(reply, text=pushed(self.scenario, self.seed, push, text), pressure=push.kind)

    def _answer(self, tutor: str, history: str) -> StudentReply:
        """The reply without a push and without words to begin with."""
        sentence = self._closest(tutor, history) if questions_in(tutor) else None
        if sentence is not None:
            return StudentReply(text=sentence, policy="scripted")
        has_more = self._has_more(history)
        policy = _policy(tutor)
        kinds: list[VoiceKind]
        if policy == "answered_open":
            kinds = ["unsure"] if has_more else ["filler", "unsure"]
            if self._has_insight(history):
                kinds = ["moved"]
        else:
            kinds = ["polar"] if policy == "answered_closed" else ["told"]
        text, is_repeated = voice_line(self.scenario, self.seed, kinds, history)
        return StudentReply(text=text, policy=policy, is_filler=is_repeated or not has_more)

    def _closest(self, tutor: str, history: str) -> str | None:
        """The sentence that the question is closest to, of those that may come now."""
        if not self.scenario.moves:
            return next((text for text in self.scenario.replies if not count(history, text)), None)
        similar = similarities(self.scenario, tutor)
        closest = max(similar, key=similar.__getitem__)
        # It is about something that the student has said already.
        is_follow_up = similar[closest] >= _FOLLOW_UP and count(history, closest) > 0
        weight = _LEADS_ON if is_follow_up else 1.0
        scores = {
            step: weight * max(similar[text] for text in insight.says)
            for insight in self.scenario.draws_out
            if (step := _next_step(insight, history)) is not None
        }
        scores |= {text: similar[text] for text in self._remaining_sentences(history)}
        best = max(scores, key=scores.__getitem__, default=None)
        return best if best is not None and scores[best] >= THRESHOLD else None

    def _remaining_sentences(self, history: str) -> list[str]:
        """Sentences beside insights still to say; after an insight none for the belief."""
        has_insight = self._has_insight(history)
        moves = [move for move in self.scenario.moves if not (move.holds_belief and has_insight)]
        return [text for move in moves for text in move.says if not count(history, text)]

    def _has_insight(self, history: str) -> bool:
        insights = self.scenario.draws_out
        return any(insight.says and count(history, insight.says[-1]) for insight in insights)

    def _has_more(self, history: str) -> bool:
        """Whether there is a sentence that was not said yet."""
        if not self.scenario.moves:
            return any(not count(history, text) for text in self.scenario.replies)
        steps = [_next_step(insight, history) for insight in self.scenario.draws_out]
        return any(steps) or bool(self._remaining_sentences(history))


def _next_step(insight: Insight, history: str) -> str | None:
    return next((text for text in insight.says if not count(history, text)), None)


def _policy(tutor: str) -> Policy:
    """What the student takes the tutor's words for; advice stays advice before a yes-or-no."""
    reading = analyse(tutor)
    asks = bool(questions_in(tutor)) if reading.has_question is None else reading.has_question
    if asks and reading.open_ended is not False:
        return "answered_open"
    if reading.has_advice:
        return "took_advice"
    if asks:
        return "answered_closed"
    return "heard_lecture" if len(tutor.split()) >= _LECTURE_WORDS else "prompted"


class _Index(Struct, frozen=True):
    """The texts of a scenario by the sentence that they belong to, as vectors of length 1, whose
    `components` stand by stem.

    `weights` has the inverse document frequency of each stem, `rarest` the highest of them. An
    example question leads to its sentence by its plain words.
    """

    sentences: Sequence[str]
    components: Mapping[str, Sequence[tuple[str, float]]]
    weights: Vector
    rarest: float
    sentence_by_example: Mapping[str, str]


def questions_in(text: str) -> tuple[str, ...]:
    """The sentences of a text that ask something, by their question marks."""
    return tuple(f"{words}{end}".strip() for words, end in _SENTENCE.findall(text) if end)


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
    cosines = dict.fromkeys(index.sentences, 0.0)
    for stem, weight in question_vector.items():
        for sentence, component in index.components.get(stem, ()):
            cosines[sentence] += weight * component
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
    components: dict[str, list[tuple[str, float]]] = {}
    for sentence, stems in counts.items():
        vector = {stem: (1 + math.log(n)) * weights[stem] for stem, n in stems.items()}
        for stem, component in _unit_vector(vector).items():
            components.setdefault(stem, []).append((sentence, component))
    return _Index(
        tuple(counts),
        components,
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
