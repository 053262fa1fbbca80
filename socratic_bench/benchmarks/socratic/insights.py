"""What the student came to see: what closes a dialogue asks of it, and how the answer is read."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from msgspec import Meta, Struct
from msgspec.structs import asdict

from socratic_bench.benchmarks.socratic.scenarios.scenario import CUSTOM, Scenario
from socratic_bench.benchmarks.socratic.turn import STUDENT, TUTOR
from socratic_bench.ports.benchmark import ClosingQuestion, Metrics
from socratic_bench.turns import Findings, Measure, Rubric, Turn
from socratic_bench.types import Json, Tool, clean, doc

Outcome = Literal["reached", "told", "missed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
# Who says what shows an outcome.
SPEAKERS: Mapping[str, str] = {"reached": STUDENT, "told": TUTOR}
# The name of the fingerprint, which only runs have that ask for insights.
HASH = "insights_prompt_sha256"
MAX_QUOTE_CHARS = 2_000


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


def insights_of(scenario: Scenario) -> tuple[str, ...]:
    """What good questions could draw out of the student; nothing where any prompt may be played."""
    return () if scenario.id == CUSTOM else tuple(one.insight for one in scenario.draws_out)


def is_asked(rubric: Rubric | None, scenario: Scenario) -> bool:
    """Whether the judge is asked for insights: from the edition on whose verdicts have events."""
    return bool(rubric and rubric.events and insights_of(scenario))


def unasked(rubric: Rubric, scenario: Scenario) -> dict[str, int]:
    """The metrics that will be null since nobody asks for what they count, each with 0."""
    return {} if is_asked(rubric, scenario) else dict.fromkeys(metrics_of(()), 0)


@cache
def prompt_sha256() -> str:
    """The fingerprint of the judge's instructions for this."""
    return sha256(_prompt().encode()).hexdigest()


def hashes(rubric: Rubric, scenario: Scenario) -> dict[str, str]:
    """Only of what asks for insights: others are the runs that they were."""
    return {HASH: prompt_sha256()} if is_asked(rubric, scenario) else {}


def question(scenario: Scenario, turns: Sequence[Turn], closing: str | None) -> ClosingQuestion:
    """What the judge is asked of a dialogue; `closing` are the student's last words."""
    insights = insights_of(scenario)
    said = _said(turns, closing)
    asked = "\n".join(f"{_name(at)}: {' '.join(text.split())}" for at, text in enumerate(insights))
    first_played = next(turn.index for turn in turns if not turn.replayed)
    return ClosingQuestion(
        instructions=_prompt(),
        asked=f"The insights:\n{asked}",
        lines=tuple((f"turn {at}, {speaker}", text) for (at, speaker), text in said.items()),
        index=max(at for at, _ in said),
        tool=_tool(len(insights)),
        read=partial(_findings, insights, said, first_played),
        merge=_merged,
    )


def metrics_of(findings: Sequence[Mapping[str, Any]]) -> Metrics:
    """Shares of the insights that were open when the model under test took over; null without."""
    found = [finding["outcome"] for finding in findings if not finding["replayed"]]
    return {
        f"insights_{outcome}": round(found.count(outcome) / len(found), 4) if found else None
        for outcome in SPEAKERS
    }


@cache
def _prompt() -> str:
    file = Path(__file__).with_name("insights_prompt.md")
    return file.read_text(encoding="utf-8").strip()


def _name(at: int) -> str:
    return f"insight_{at + 1}"


def _said(turns: Sequence[Turn], closing: str | None) -> dict[tuple[int, str], str]:
    """All words by turn and speaker, in their order."""
    said: dict[tuple[int, str], str] = {}
    for turn in turns:
        said[turn.index, STUDENT] = turn.prompt
        said[turn.index, TUTOR] = turn.reply.message.text
    if closing:
        said[turns[-1].index + 1, STUDENT] = closing
    return said


def _tool(n_insights: int) -> Tool:
    one: Json = {
        "type": "object",
        "properties": {
            "quote": {"type": "string", "description": "the words that show it, copied"},
            "turn": {"type": "integer", "minimum": 0, "description": "where they stand"},
            "outcome": {"type": "string", "enum": [*OUTCOMES]},
        },
        "required": ["outcome"],
    }
    names: list[Json] = [_name(at) for at in range(n_insights)]
    return Tool(
        name="record_insights",
        description="Records what became of each insight in the dialogue.",
        input_schema={
            "type": "object",
            "properties": {str(name): one for name in names},
            "required": names,
        },
    )


def _findings(
    insights: Sequence[str],
    said: Mapping[tuple[int, str], str],
    first_played: int,
    found: Mapping[str, Json],
) -> tuple[Mapping[str, Measure], ...]:
    """Raises `ValueError` with all that is wrong, as the judge is told it."""
    findings: list[InsightEntry] = []
    problems: list[str] = []
    for at, insight in enumerate(insights):
        try:
            findings.append(_finding(insight, found.get(_name(at)), said, first_played))
        except ValueError as problem:
            problems.append(f"{_name(at)} {problem}.")
    if problems:
        raise ValueError(" ".join(problems))
    return tuple(map(asdict, findings))


def _merged(votes: Sequence[Findings]) -> Findings:
    """The outcome that more than half of the jurors saw, in the words of the first of them; else
    the insight is missed, since it is not known to have been said.
    """
    return tuple(map(_by_majority, zip(*votes, strict=True)))


def _by_majority(findings: Sequence[Mapping[str, Measure]]) -> Mapping[str, Measure]:
    from socratic_bench.judging.aggregation import majority

    outcome = majority([str(one["outcome"]) for one in findings])
    missed = _missed(str(findings[0]["insight"]))
    return next((one for one in findings if one["outcome"] == outcome), asdict(missed))


def _missed(insight: str) -> InsightEntry:
    return InsightEntry(
        insight=insight, outcome="missed", turn=None, quote=None, quote_found=None, replayed=False
    )


def _finding(
    insight: str, given: Json, said: Mapping[tuple[int, str], str], first_played: int
) -> InsightEntry:
    # Imported here, since it is not needed before the dialogue has ended.
    from socratic_bench.judging.quotes import is_quoted

    found = given if isinstance(given, dict) else {}
    outcome, turn, quote = (found.get(name) for name in ("outcome", "turn", "quote"))
    if outcome == "missed":
        return _missed(insight)
    if outcome not in ("reached", "told"):
        raise ValueError(f"has no outcome that is one of {', '.join(OUTCOMES)}")
    speaker = SPEAKERS[outcome]
    if not isinstance(turn, int) or isinstance(turn, bool) or (turn, speaker) not in said:
        raise ValueError(f"is {outcome}, but names no turn of the {speaker}")
    if not isinstance(quote, str) or not quote.strip():
        raise ValueError(f"is {outcome}, but quotes nothing")
    return InsightEntry(
        insight=insight,
        outcome=cast("Outcome", outcome),
        turn=turn,
        quote=clean(quote.strip())[:MAX_QUOTE_CHARS],
        quote_found=is_quoted(quote, said[turn, speaker]),
        replayed=turn < first_played,
    )
