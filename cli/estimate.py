"""What people see of a dry run on stderr."""

from collections.abc import Mapping
from typing import Any

from socratic_bench.types import counted

from .output import say


def say_estimate(document: Mapping[str, Any]) -> None:
    """A line for each role, and one for money and time with their range."""
    for role, usage in document["usage"].items():
        if usage["calls"]:
            calls = counted(usage["calls"], "call")
            say(
                f"{role:8s} {calls:>10s}  {usage['input_tokens']:9,d} in  "
                f"{usage['cache_read_tokens']:9,d} of it cached  {usage['output_tokens']:7,d} out"
            )
    for juror in document["jurors"] if len(document["jurors"]) > 1 else ():
        cost = _range(juror["cost_usd"], juror["low_usd"], juror["high_usd"], "USD", 4)
        say(f"  {juror['model']}: {counted(juror['usage']['calls'], 'call')}, {cost}")
    low, high = document["low"], document["high"]
    total = document["cost"] and document["cost"]["total"]
    usd = _range(total and total["total_usd"], low["cost_usd"], high["cost_usd"], "USD", 4)
    span = (document["duration_seconds"], low["duration_seconds"], high["duration_seconds"])
    if document["end_reason"] == "budget":
        say(f"the budget ends it after {counted(document['n_turns'], 'turn')}")
    deadline = document["deadline"]
    if deadline and not deadline["covers_expected"]:
        say(f"the deadline of {deadline['deadline_s']:g} s comes before its end")
    say(f"expected {usd}, {_range(*span, 's', 1)}; {_called(document['sent'])}")


def _called(sent: Mapping[str, int]) -> str:
    requests = counted(sent["count_tokens"], "request")
    told = {
        "count_tokens": f"tokens were asked for ({requests} of CountTokens)",
        "emulator_pace": "the endpoint was asked whether it is the emulator",
        "bucket": "the bucket was looked for",
    }
    asked = [text for name, text in told.items() if sent[name]]
    return f"no model was called; {', '.join(asked)}" if asked else "nothing was called"


def _range(
    expected: float | None, low: float | None, high: float | None, unit: str, places: int
) -> str:
    if expected is None or low is None or high is None:
        return f"{unit} unknown"
    return f"{expected:.{places}f} {unit} ({low:.{places}f} to {high:.{places}f})"
