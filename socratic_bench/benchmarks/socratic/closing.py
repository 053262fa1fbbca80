"""The judge's closing call: what became of the insights, and where a model student lapsed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from socratic_bench.benchmarks.socratic.scenarios.scenario import CUSTOM, Scenario
from socratic_bench.benchmarks.socratic.turn import STUDENT, TUTOR, SocraticTurn
from socratic_bench.documents.document import Count
from socratic_bench.judging.jury import majority
from socratic_bench.judging.verdict import is_quoted
from socratic_bench.ports.benchmark import ClosingQuestion, Metrics
from socratic_bench.turns import ClosingAnswer, ClosingResult, ClosingVerdict, Measure, Rubric, Turn
from socratic_bench.types import Json, Tool, clean, doc

Outcome = Literal["reached", "told", "missed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
# Whose words show an outcome.
SPEAKERS: Mapping[str, str] = {"reached": STUDENT, "told": TUTOR}

Lapse = Literal[
    "role_swap",
    "tutoring",
    "question_for_answer",
    "repetition",
    "unreasoned_concession",
    "praise",
    "out_of_character",
    "language",
    "malformed_output",
]
LAPSES: tuple[Lapse, ...] = get_args(Lapse)
LapseError = Literal["unreadable", "unknown_turn", "false_quote"]

# The fingerprints of the judge's instructions; only runs that ask for it have one.
INSIGHTS_HASH, FIDELITY_HASH = "insights_prompt_sha256", "fidelity_prompt_sha256"
MODEL_POLICY = "model"  # of the turns whose student a model played
MAX_QUOTE_CHARS = 2_000
Place = tuple[int, str]  # a turn and who speaks in it


class InsightEntry(Struct, frozen=True, kw_only=True):
    """One of the scenario's insights, and what became of it."""

    insight: Annotated[str, doc("what good questions let the student see")]
    outcome: Annotated[
        Outcome,
        doc("reached: the student said it first; told: the tutor did; missed: nobody said it"),
    ]
    turn: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        doc(
            "where it was said, n_turns and replayed turns together if in the "
            "student's last words; null if missed"
        ),
    ]
    quote: Annotated[str | None, doc("the words that show it, by the judge; null if missed")]
    quote_found: Annotated[
        bool | None,
        doc(
            "whether these are words of that turn, by the student if it was reached, "
            "by the tutor if it was told; null if missed"
        ),
    ]
    replayed: Annotated[
        bool, doc("true if that was in a replayed turn, so that no metric counts it")
    ]


class LapseEntry(Struct, frozen=True, kw_only=True):
    """A lapse of a model that plays the student, as documents have it."""

    turn: Annotated[Count, doc("whose student reply it is; n_turns and replayed for last words")]
    lapse: Annotated[Lapse, doc("kind of lapse")]
    quote: Annotated[str, doc("words of that reply that show it, by the judge")]


class ClosingErrors(Struct, frozen=True, kw_only=True):
    """What could not be used of the judge's closing answers, of all jurors together."""

    unreadable: Annotated[Count, doc("answers, or lapses in one, that could not be read")] = 0
    unknown_turn: Annotated[Count, doc("lapses in turns that are not there or not checked")] = 0
    false_quote: Annotated[
        Count, doc("quotes of lapses or insights that nobody said in that turn")
    ] = 0

    @classmethod
    def of(cls, concluded: ClosingResult) -> "ClosingErrors":
        """Count over every answer of every juror."""
        outcomes = [vote.outcome for vote in concluded.votes] or [concluded.outcome]
        verdicts = [outcome for outcome in outcomes if isinstance(outcome, ClosingVerdict)]
        findings = [finding for verdict in verdicts for finding in verdict.findings]
        errors = Counter(finding.get("error") for finding in findings)
        n_wrong = sum(finding.get("quote_found") is False for finding in findings)
        # Of each juror's answers only the last can be one that was used.
        return cls(
            unreadable=len(concluded.calls) - len(verdicts) + errors["unreadable"],
            unknown_turn=errors["unknown_turn"],
            false_quote=errors["false_quote"] + n_wrong,
        )


class Replies(Struct, frozen=True):
    """The replies of a model that plays the student, by turn, and how it was told to push there."""

    texts: Mapping[int, str]
    pressures: Mapping[int, str]

    @classmethod
    def of(cls, turns: Sequence[Turn], last_words: str | None) -> "Replies":
        """`last_words` are a model's that closed the dialogue, if one did."""
        spoken = [SocraticTurn.of(turn) for turn in turns if is_by_model(turn)]
        texts = {turn.index: turn.prompt for turn in spoken}
        if last_words:
            texts[turns[-1].index + 1] = last_words
        return cls(texts, {turn.index: turn.pressure for turn in spoken if turn.pressure})


def is_by_model(turn: Turn) -> bool:
    """Whether a model that plays the student said what the turn answers."""
    return not turn.replayed and turn.notes.get("student_policy") == MODEL_POLICY


def insights_of(scenario: Scenario) -> tuple[str, ...]:
    """What good questions could draw out of the student; nothing where any prompt may be played."""
    return () if scenario.id == CUSTOM else tuple(entry.insight for entry in scenario.draws_out)


def asks_insights(rubric: Rubric | None, scenario: Scenario) -> bool:
    """Whether the judge is asked for insights: if its rubric looks for events, too."""
    return bool(rubric and rubric.events and insights_of(scenario))


def unasked_metrics(rubric: Rubric, scenario: Scenario) -> dict[str, int]:
    """The metrics that will be null since nobody asks for what they count, each with 0."""
    return {} if asks_insights(rubric, scenario) else dict.fromkeys(metrics_of(()), 0)


def prompt_hashes(rubric: Rubric, scenario: Scenario, *, is_by_model: bool) -> dict[str, str]:
    """The fingerprints of the judge's instructions, of what it may be asked for."""
    hashes = {}
    if asks_insights(rubric, scenario):
        hashes[INSIGHTS_HASH] = sha256(_prompt("insights").encode()).hexdigest()
    if is_by_model:
        hashes[FIDELITY_HASH] = sha256(_prompt("fidelity").encode()).hexdigest()
    return hashes


def closing_question(
    scenario: Scenario,
    turns: Sequence[Turn],
    last_words: str | None,
    *,
    insights: Sequence[str],
    replies: Replies | None,
) -> ClosingQuestion | None:
    """The question about a dialogue, `last_words` included; `None` if nothing is to be asked."""
    reader = _Reader(
        insights=tuple(insights),
        spoken=_spoken(turns, last_words),
        first_played=next(turn.index for turn in turns if not turn.replayed),
        replies=replies.texts if replies else {},
    )
    is_checked = bool(replies and replies.texts)
    if not insights and not is_checked:
        return None
    parts = [_prompt("insights") if insights else "", _prompt("fidelity") if is_checked else ""]
    lines = [
        f"{_insight_name(number)}: {_one_line(text)}" for number, text in enumerate(insights, 1)
    ]
    questions = [
        "\n".join(["The insights:", *lines]) if insights else "",
        _part(scenario, replies) if replies and is_checked else "",
    ]
    return ClosingQuestion(
        instructions="\n\n".join(filter(None, parts)),
        prompt="\n\n".join(filter(None, questions)),
        lines=tuple((f"turn {at}, {who}", text) for (at, who), text in reader.spoken.items()),
        index=max(at for at, _ in reader.spoken),
        tool=_tool(len(insights), has_lapses=is_checked),
        read=reader.read,
        merge=_merge,
    )


def metrics_of(findings: ClosingAnswer | Sequence[Mapping[str, Any]]) -> Metrics:
    """Shares of the insights that were open when the model under test took over; null without."""
    outcomes = [
        finding["outcome"] for finding in insight_findings(findings) if not finding["replayed"]
    ]
    return {
        f"insights_{outcome}": round(outcomes.count(outcome) / len(outcomes), 4)
        if outcomes
        else None
        for outcome in SPEAKERS
    }


def insight_findings(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The findings on insights, in the order of the scenario."""
    return [finding for finding in findings if "insight" in finding]


def lapses_of(findings: Sequence[Mapping[str, Any]]) -> list[LapseEntry]:
    """The lapses whose turn was checked and whose quote was found there, by turn and kind."""
    lapses = [finding for finding in findings if "lapse" in finding and finding["error"] is None]
    entries = [
        LapseEntry(turn=lapse["turn"], lapse=lapse["lapse"], quote=lapse["quote"])
        for lapse in lapses
    ]
    return sorted(entries, key=lambda entry: (entry.turn, LAPSES.index(entry.lapse)))


def flags_of(findings: Sequence[Mapping[str, Any]], turn: int) -> tuple[str, ...]:
    return tuple(entry.lapse for entry in lapses_of(findings) if entry.turn == turn)


def with_flags(turns: Sequence[Turn], findings: ClosingAnswer) -> tuple[Turn, ...]:
    """The turns with the lapses of the student's words, where a model said them."""
    return tuple(
        replace(SocraticTurn.of(turn), student_flags=flags_of(findings, turn.index))
        if is_by_model(turn)
        else turn
        for turn in turns
    )


class _Reader(Struct, frozen=True, kw_only=True):
    """Reads findings out of the arguments of the judge's tool call."""

    insights: tuple[str, ...]
    spoken: Mapping[Place, str]
    first_played: int
    replies: Mapping[int, str]

    def read(self, arguments: Mapping[str, Json]) -> ClosingAnswer:
        """Raises `ValueError` with all that is wrong, as the judge is told it.

        Of the insights each must have an outcome. A lapse that cannot be used is kept with its
        error, and counted as such.
        """
        findings: list[Mapping[str, Measure]] = []
        problems: list[str] = []
        for number, insight in enumerate(self.insights, 1):
            try:
                entry = self._insight(insight, arguments.get(_insight_name(number)))
            except ValueError as problem:
                problems.append(f"{_insight_name(number)} {problem}.")
            else:
                findings.append(asdict(entry))
        if self.replies:
            lapses = arguments.get("lapses")
            if isinstance(lapses, list):
                findings += self._lapses(lapses)
            else:
                problems.append("lapses is no list.")
        if problems:
            raise ValueError(" ".join(problems))
        return tuple(findings)

    def _insight(self, insight: str, value: Json) -> InsightEntry:
        fields = value if isinstance(value, dict) else {}
        outcome, quote, turn = fields.get("outcome"), fields.get("quote"), _turn(fields)
        if outcome == "missed":
            return _unreached_insight(insight)
        if outcome not in ("reached", "told"):
            raise ValueError(f"has no outcome that is one of {', '.join(OUTCOMES)}")
        speaker = SPEAKERS[outcome]
        if turn is None or (turn, speaker) not in self.spoken:
            raise ValueError(f"is {outcome}, but names no turn of the {speaker}")
        if not isinstance(quote, str) or not quote.strip():
            raise ValueError(f"is {outcome}, but quotes nothing")
        return InsightEntry(
            insight=insight,
            outcome=cast("Outcome", outcome),
            turn=turn,
            quote=_cleaned(quote),
            quote_found=is_quoted(quote, self.spoken[turn, speaker]),
            replayed=turn < self.first_played,
        )

    def _lapses(self, values: Sequence[Json]) -> Iterator[Mapping[str, Measure]]:
        """Each kind once a turn: what is said again adds nothing."""
        places: set[tuple[Measure, Measure]] = set()
        for value in values:
            lapse = self._lapse(value)
            place = lapse["turn"], lapse["lapse"]
            if lapse["error"] is not None or place not in places:
                yield lapse
            if lapse["error"] is None:
                places.add(place)

    def _lapse(self, value: Json) -> Mapping[str, Measure]:
        fields = value if isinstance(value, dict) else {}
        lapse, quote, turn = fields.get("lapse"), fields.get("quote"), _turn(fields)
        error: LapseError | None = None
        if lapse not in LAPSES or turn is None or not isinstance(quote, str):
            error = "unreadable"
        elif turn not in self.replies:
            error = "unknown_turn"
        elif not is_quoted(quote, self.replies[turn]):
            error = "false_quote"
        return {
            "lapse": _cleaned(lapse) if isinstance(lapse, str) else None,
            "turn": turn,
            "quote": _cleaned(quote) if isinstance(quote, str) else None,
            "error": error,
        }


def _turn(fields: Mapping[str, Json]) -> int | None:
    turn = fields.get("turn")
    return turn if isinstance(turn, int) and not isinstance(turn, bool) else None


def _cleaned(text: str) -> str:
    return clean(text.strip())[:MAX_QUOTE_CHARS]


def _unreached_insight(insight: str) -> InsightEntry:
    return InsightEntry(
        insight=insight, outcome="missed", turn=None, quote=None, quote_found=None, replayed=False
    )


def _merge(votes: Sequence[ClosingAnswer]) -> ClosingAnswer:
    """One answer out of the jurors'.

    An insight has the outcome, and a reply the lapse, that more than half of the jurors saw, in the
    words of the first of them. Otherwise the insight is missed, since it is not known to have been
    said, and the lapse is none.
    """
    merged: list[Mapping[str, Measure]] = []
    for findings in zip(*map(insight_findings, votes), strict=True):
        outcome = majority([str(finding["outcome"]) for finding in findings])
        missed = asdict(_unreached_insight(str(findings[0]["insight"])))
        merged.append(
            next((finding for finding in findings if finding["outcome"] == outcome), missed)
        )
    entries = [entry for findings in votes for entry in lapses_of(findings)]
    counts = Counter((entry.turn, entry.lapse) for entry in entries)
    first = {(entry.turn, entry.lapse): entry for entry in reversed(entries)}
    merged += [
        {**asdict(entry), "error": None}
        for place, entry in sorted(first.items())
        if 2 * counts[place] > len(votes)
    ]
    return tuple(merged)


@cache
def _prompt(name: Literal["insights", "fidelity"]) -> str:
    file = Path(__file__).with_name(f"{name}_prompt.md")
    return file.read_text(encoding="utf-8").strip()


def _insight_name(number: int) -> str:
    return f"insight_{number}"


def _part(scenario: Scenario, replies: Replies) -> str:
    """Who the student was to be, which of its replies to check, and where it was told to push."""
    facts = {
        "Who the student was to be": scenario.persona,
        "What it thinks at the start": f"{scenario.belief}, because {scenario.because}",
        "What it knows": scenario.knows,
        "What it was not to know": scenario.does_not_know,
        "Its language": scenario.language,
        "Replies of the student to check": f"turns {', '.join(map(str, replies.texts))}",
        "Where it was told to push": ", ".join(
            f"turn {turn} ({kind})" for turn, kind in replies.pressures.items()
        ),
    }
    return "\n".join(f"{name}: {_one_line(text)}" for name, text in facts.items() if text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _spoken(turns: Sequence[Turn], last_words: str | None) -> dict[Place, str]:
    """All words by turn and speaker, in their order."""
    spoken: dict[Place, str] = {}
    for turn in turns:
        spoken[turn.index, STUDENT] = turn.prompt
        spoken[turn.index, TUTOR] = turn.reply.message.text
    if last_words:
        spoken[turns[-1].index + 1, STUDENT] = last_words
    return spoken


def _tool(n_insights: int, *, has_lapses: bool) -> Tool:
    words: Json = {"type": "string", "description": "the words that show it, copied"}
    turn: Json = {"type": "integer", "minimum": 0, "description": "where they stand"}

    def finding(name: str, kinds: Sequence[str], *required: Json) -> Json:
        """A quotation with its turn and its kind, which stands under `name`."""
        kind: Json = {"type": "string", "enum": [*kinds]}
        properties: Json = {"quote": words, "turn": turn, name: kind}
        return {"type": "object", "properties": properties, "required": [*required, name]}

    insight = finding("outcome", OUTCOMES)
    properties = {_insight_name(number): insight for number in range(1, n_insights + 1)}
    if has_lapses:
        properties["lapses"] = {
            "type": "array",
            "items": finding("lapse", LAPSES, "quote", "turn"),
            "description": "lapses of the student; empty if there is none",
        }
    return Tool(
        name="record_closing",
        description="Records what was asked about the dialogue as a whole.",
        input_schema={"type": "object", "properties": properties, "required": [*properties]},
    )
