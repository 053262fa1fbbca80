"""A run of forty turns while three in ten calls fail, in five ways alike."""

from collections.abc import Sequence

from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.emulator.service import RequestRecord
from tests.command import CLAUDE, OPENING, Outcome, account, run

TURNS = 40
SHARE = 0.3
KINDS = ("throttled:ms=5", "internal:ms=5", "unavailable:ms=5", "reset", "cut")


def storm() -> tuple[str, ...]:
    """The kinds' faults. Each is drawn only if those before it did not strike."""
    share = SHARE / len(KINDS)
    return tuple(f"{kind}:p={share / (1 - n * share):.6f}" for n, kind in enumerate(KINDS))


def weather(seed: int, *, student: bool = False) -> tuple[Outcome, Sequence[RequestRecord]]:
    """Play in the storm of a seed; what came out, and every request at the server."""
    faults = tuple(parse_fault(spec) for spec in storm())
    with Emulator(Settings(faults=faults, seed=seed, any_model=True)) as served:
        outcome = run(
            *("--model", CLAUDE, "--judge-model", "other.judge-v1:0", "--prompt", OPENING),
            *(("--student-model", "other.student-v1:0") if student else ()),
            *("--turns", str(TURNS), "--quiet"),
            env=account(served.url, CLAUDE),
        )
        return outcome, served.requests
