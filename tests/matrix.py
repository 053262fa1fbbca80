"""Every fault that can be ordered, for each role.

`make reliability` plays them through the real command and writes what comes out into
docs/dev/reliability.md; tests/test_reliability.py plays the same cases and compares.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from socratic_bench.benchmarks.socratic.document import PARTS
from socratic_bench.emulator import Emulator, Fault, Settings, parse_fault
from socratic_bench.emulator.faults import JOB_KINDS, KINDS, VERDICT_KINDS
from tests.command import CLAUDE, OPENING, PLAIN_RUBRIC, ROOT, Outcome, account, run

DOCUMENT = ROOT / "docs" / "dev" / "reliability.md"
JUDGE = "other.judge-v1:0"
ROLES = PARTS.roles
STUDENT = "other.student-v1:0"
# Faults of calls; tests/test_batches.py has those of jobs.
CALL_KINDS = tuple(kind for kind in KINDS if kind not in JOB_KINDS)
BEGIN = "<!-- faults -->"
END = "<!-- end of faults -->"
NEVER = "–"  # noqa: RUF001 -- what stands in an empty cell
STOPPED = 3
TURNS = 4
# Requests of a run without a fault: each turn's reply and verdict, each student's word but the
# opening, and the judge's closing call.
REQUESTS = {"tutor": TURNS, "student": TURNS - 1, "judge": TURNS + 1}
# The first call of the role is spared, so that there is something to lose.
WHEN = {"once": "after=1:count=1", "stays": "after=1"}
MORE = {"hang": ":ms=60000", "refused": ":ms=50"}
WORDS = (
    *("--model", CLAUDE, "--student-model", STUDENT, "--judge-model", JUDGE),
    *("--prompt", OPENING, "--turns", str(TURNS), "--seed", "7", "--quiet"),
    *("--rubric", PLAIN_RUBRIC),
)


@dataclass(frozen=True)
class Case:
    """A fault of one kind that strikes some roles, once each or from then on for good."""

    kind: str
    roles: tuple[str, ...]
    how: str

    @property
    def faults(self) -> tuple[Fault, ...]:
        more = f"{WHEN[self.how]}{MORE.get(self.kind, '')}"
        # Of the judge's calls its verdicts are struck: when the closing call comes is chance.
        faults = [
            f"{self.kind}:role={'verdict' if role == 'judge' else role}:{more}"
            for role in self.roles
        ]
        if (self.kind, self.how) == ("expired_token", "once"):
            # New credentials that expire before they served one call are not renewed: so the judge,
            # who is asked beside the others, is struck when these are done.
            faults = [
                one.replace("verdict:after=1", f"verdict:after={TURNS - 1}") for one in faults
            ]
        return tuple(map(parse_fault, faults))

    @property
    def words(self) -> Sequence[str]:
        """A closed door needs more tries than others; only a hanging call needs a short bound,
        within which a busy machine still has the others answered.
        """
        attempts = "8" if (self.kind, self.how) == ("refused", "once") else "2"
        bound = ("--call-timeout", "2") if self.kind == "hang" else ()
        return (*WORDS, "--max-attempts", attempts, *bound)


@dataclass(frozen=True)
class Seen:
    """What a case left: the command's outcome, the requests at the server by role, the files."""

    outcome: Outcome
    requests: Counter[str]
    struck: int
    files: dict[str, Any]

    @property
    def document(self) -> dict[str, Any]:
        return self.outcome.document

    @property
    def judged(self) -> int:
        return sum(turn["score"] is not None for turn in self.document["turns"])

    @property
    def is_whole(self) -> bool:
        return self.outcome.exit_code == 0 and self.judged == TURNS


Play = Callable[..., Outcome]
Check = Callable[[Case, Seen], None]


def settings(case: Case) -> Settings:
    """The models are nobody's, and a reply of ten megabytes has to fit into what they read."""
    return Settings(faults=case.faults, any_model=True, context_window_tokens=100_000_000)


def observe(case: Case, check: Check, play: Play) -> Seen:
    """Play the case, and have looked at what it left."""
    with TemporaryDirectory() as folder, Emulator(settings(case)) as served:
        env = account(served.url, CLAUDE)
        outcome = play(*case.words, "--output-dir", folder, env=env)
        seen = Seen(
            outcome=outcome,
            requests=Counter(str(request.role) for request in served.requests),
            struck=sum(request.fault is not None for request in served.requests),
            files={
                str(path.relative_to(folder)): json.loads(path.read_bytes())
                for path in sorted(Path(folder).rglob("*.json"))
            },
        )
    check(case, seen)
    return seen


def roles_of(kind: str) -> tuple[str, ...]:
    """Whom a kind of fault can strike. Ten megabytes from a tutor have a test of their own."""
    if kind in VERDICT_KINDS:
        return ("judge",)
    return ("student", "judge") if kind == "huge_reply" else ROLES


def row(kind: str, check: Check = lambda _case, _seen: None, play: Play = run) -> list[str]:
    """The cells of a kind: for each role, struck once and from then on.

    What the run gets over is played for all roles in one run; the server counts by role.
    """

    def seen(roles: tuple[str, ...], how: str) -> Seen:
        return observe(Case(kind, roles, how), check, play)

    together = seen(roles_of(kind), "once")
    cells = []
    for role in ROLES:
        if role not in roles_of(kind):
            cells += [NEVER] * 2
        elif not together.struck:
            cells += ["does not strike"] * 2
        else:
            once = together if together.is_whole else seen((role,), "once")
            cells.append(told(once, role, kind))
            if has_ended(once, role):
                cells.append(cells[-1])
            else:
                cells.append(told(seen((role,), "stays"), role, kind))
    return cells


def has_ended(seen: Seen, role: str) -> bool:
    """Whether a single fault has ended the dialogue, so that none can follow."""
    goes_on = role == "judge" and seen.outcome.exit_code != STOPPED
    return seen.document["end_reason"] != "max_turns" and not goes_on


def told(seen: Seen, role: str, kind: str) -> str:
    """What became of a run, as the table says it."""
    document, code = seen.document, seen.outcome.exit_code
    if seen.is_whole:
        more = seen.requests[role] - REQUESTS[role]
        if (role, kind) == ("judge", "denied_streaming") and more > 0 and seen.struck == more:
            return "whole, +1 request for each in flight"  # two verdicts or one is chance
        return f"whole, {more:+d} request" if more else "whole"
    if kind == "refused" or (role == "judge" and code == STOPPED):
        # How far the dialogue is by then, or whom else a closed door keeps out, is chance.
        return f"`{document['end_reason']}`, exit {code}"
    return f"`{document['end_reason']}`, exit {code}, {document['n_turns']}/{seen.judged}"


def rows() -> dict[str, list[str]]:
    """The table as it is committed, by kind of fault."""
    lines = passage().splitlines()[2:]
    found = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return {cells[0].strip("`"): cells[1:] for cells in found}


def passage() -> str:
    """The text between the marks."""
    return DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0].strip()


def table() -> str:
    """Play everything, a few at a time."""
    heads = [f"{role} once | {role}, for good" for role in ROLES]
    lines = [f"| fault | {' | '.join(heads)} |", "|---" * 7 + "|"]
    with ThreadPoolExecutor(4) as pool:
        for kind, cells in zip(CALL_KINDS, pool.map(row, CALL_KINDS), strict=True):
            lines.append(f"| `{kind}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def write() -> None:
    """Put the table into the document."""
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")


if __name__ == "__main__":
    write()
