"""The verdicts on a turn: of one judge, or of each juror."""

from collections.abc import Mapping
from typing import Any

from socratic_bench.reporting.rows import VerdictRow

UNNAMED = "judge"


def verdicts_of(
    entry: Mapping[str, Any], document: Mapping[str, Any], file: Mapping[str, Any] | None
) -> tuple[VerdictRow, ...]:
    """By the file of the verdict; without one by the turn, which tells no reasons, and no jurors.
    Nothing of a turn that nobody was asked about.
    """
    if file is None:
        model = (document.get("judge") or {}).get("model")
        return () if model is None or entry.get("replayed") else (_verdict(entry, str(model)),)
    jurors = [one for one in file.get("jurors") or () if isinstance(one, dict)]
    judge = str(file.get("judge_model") or UNNAMED)
    if not jurors:
        return (_verdict(file, judge),)
    return tuple(_verdict(one, _name(one, judge)) for one in jurors)


def _name(juror: Mapping[str, Any], judge: str) -> str:
    return str(juror.get("judge_model") or juror.get("model") or judge)


def _verdict(found: Mapping[str, Any], juror: str) -> VerdictRow:
    scores = found.get("scores") or {}
    known = [score for score in scores.values() if score is not None]
    return VerdictRow(
        juror=juror,
        score=sum(known) if known and len(known) == len(scores) else None,
        scores=scores,
        rationale=found.get("rationale") or {},
        events=found.get("events"),
        quotes=found.get("quotes"),
        unjudged_reason=found.get("unjudged_reason"),
    )
