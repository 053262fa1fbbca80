"""The rows of many dialogues, and of many items, in one process."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

from bench.contenders import ROOT, emulator, environment
from bench.row import Plan, Row, Say

MANY = str(ROOT / "bench" / "many.py")
BARE_MANY = str(ROOT / "bench" / "bare_many.py")
ITEMS, AT_ONCE = 60, 16
# Of each model, for so many dialogues as the table has.
PER_MINUTE, DIALOGUES = 1200.0, 64
Measured = dict[str, float]
Bounds = tuple[float, float]


def many(plan: Plan, say: Say) -> Iterator[Row]:
    yield from in_a_folder(plan, say)
    yield from without_a_folder(plan, say)
    yield items(plan, say)
    yield from under_a_quota(plan, say)
    yield from at_a_target(plan, say)


def in_a_folder(plan: Plan, say: Say) -> Iterator[Row]:
    """Model student and judge, every call kept before its answer is used."""
    # Removed together at the end: where files were lately removed, ext4 without a journal looks
    # through their numbers for each new one.
    with tempfile.TemporaryDirectory() as folders:
        measure = partial(_in_folder, folders=folders)
        row = _rows(plan, say, f"{plan.dialogues} dialogues at once, one folder", measure)
    alone = [_by_the_sdk_alone(plan) for _ in range(plan.many_rounds)]
    cpu_ms, path = median(map(_cpu_ms, alone)), median(_share_of_path(plan, one) for one in alone)
    yield row(f"client CPU per call (the SDK alone {cpu_ms:.2f})", "ms", (3.0, 2.2), _cpu_ms)
    yield row(
        _of_path(plan, f"; the SDK alone {path:.2f}"),
        "x",
        (1.25, 1.12),
        partial(_share_of_path, plan),
    )


def without_a_folder(plan: Plan, say: Say) -> Iterator[Row]:
    n_runs = 4 * plan.dialogues
    row = _rows(plan, say, f"{n_runs} dialogues at once", partial(_plain, n_runs=n_runs))
    yield row(_of_path(plan), "x", (4.0, 2.7), partial(_share_of_path, plan))
    yield row("threads", "", (600.0, 300.0), lambda m: m["threads"])
    yield row("memory a dialogue", "MB", (0.35, 0.25), lambda m: m["mb_per_run"])


def items(plan: Plan, say: Say) -> Row:
    """Questions that do not wait for each other, with nobody to judge them."""
    latency_ms = plan.latency_ms * 2 / 3
    least_s = -(-ITEMS // AT_ONCE) * latency_ms / 1000
    measure = f"first request to last answer / ideal ({least_s:.1f} s)"
    row = _rows(plan, say, f"{ITEMS} items at {latency_ms:g} ms, {AT_ONCE} at once", _items)
    return row(measure, "x", (1.15, 1.07), lambda m: m["wall_s"] / least_s)


def under_a_quota(plan: Plan, say: Say) -> Iterator[Row]:
    """Nobody tells the runs how much each model takes a minute."""
    per_minute = PER_MINUTE * plan.dialogues / DIALOGUES
    name = f"{plan.dialogues} dialogues, {per_minute:g} requests a minute for each model"
    row = _rows(plan, say, name, partial(_limited, per_minute=per_minute))
    yield row(
        "wall / ((calls - burst) / rate) of the busiest model",
        "x",
        (1.05, 1.02),
        lambda m: m["wall_s"] / ((m["busiest"] - per_minute / 10) / (per_minute / 60)),
    )
    yield row("requests refused", "%", (1.0, 0.3), lambda m: m["refused"] / m["requests"] * 100)


def at_a_target(plan: Plan, say: Say) -> Iterator[Row]:
    """The runs are told how much each model takes a minute, and it takes no more."""
    per_minute = _per_minute(plan)
    name = f"{plan.dialogues} dialogues, a target of {per_minute:g} requests a minute"
    row = _rows(plan, say, name, partial(_targeted, per_minute=per_minute))
    yield row(
        "wall / (calls / rate) of the busiest model",
        "x",
        (1.05, 1.02),
        lambda m: m["wall_s"] / (m["busiest"] / (per_minute / 60)),
    )
    yield row("requests refused", "", (0.0, 0.0), lambda m: m["refused"])


def _per_minute(plan: Plan) -> int:
    """The quota of each model, for so many dialogues."""
    return round(PER_MINUTE * plan.dialogues / DIALOGUES)


def _of_path(plan: Plan, more: str = "") -> str:
    return f"wall / critical path ({_path_s(plan):.1f} s{more})"


def _cpu_ms(measured: Measured) -> float:
    return measured["cpu_s"] / measured["requests"] * 1000


def _share_of_path(plan: Plan, measured: Measured) -> float:
    return measured["wall_s"] / _path_s(plan)


def _path_s(plan: Plan) -> float:
    """Both speakers in turn, then the last verdict."""
    return 2 * plan.many_turns * plan.latency_ms / 1000


def _rows(
    plan: Plan, say: Say, name: str, measure: Callable[[Plan, Path], Measured]
) -> Callable[[str, str, Bounds, Callable[[Measured], float]], Row]:
    """Measure in rounds, this tree and the older one in turns; what makes rows of it."""
    say(f"{name}, {plan.many_rounds} rounds ...")
    ours: list[Measured] = []
    theirs: list[Measured] = []
    for _ in range(plan.many_rounds):
        ours.append(measure(plan, ROOT))
        if plan.against:
            theirs.append(measure(plan, plan.against.resolve()))

    def row(what: str, unit: str, bounds: Bounds, read: Callable[[Measured], float]) -> Row:
        before = f"; before: {median(map(read, theirs)):.3g}" if theirs else ""
        return Row(
            name=name,
            measure=what + before,
            unit=unit,
            must=bounds[0],
            aim=bounds[1],
            values=tuple(map(read, ours)),
        )

    return row


def _in_folder(plan: Plan, tree: Path, *, folders: str) -> Measured:
    folder = tempfile.mkdtemp(dir=folders)
    with emulator(plan.latency_ms) as url:
        return _measured(tree, url, *_dialogues(plan, plan.dialogues), "--folder", folder)


def _by_the_sdk_alone(plan: Plan) -> Measured:
    with emulator(plan.latency_ms) as url:
        return _measured(ROOT, url, *_dialogues(plan, plan.dialogues), program=BARE_MANY)


def _plain(plan: Plan, tree: Path, *, n_runs: int) -> Measured:
    with emulator(plan.latency_ms) as url:
        return _measured(tree, url, *_dialogues(plan, n_runs))


def _limited(plan: Plan, tree: Path, *, per_minute: float) -> Measured:
    with emulator(plan.latency_ms, "--requests-per-minute", str(per_minute)) as url:
        return _measured(tree, url, *_dialogues(plan, plan.dialogues))


def _targeted(plan: Plan, tree: Path, *, per_minute: int) -> Measured:
    target = ("--target-rpm", str(per_minute))
    with emulator(plan.latency_ms, "--requests-per-minute", str(per_minute)) as url:
        return _measured(tree, url, *_dialogues(plan, plan.dialogues), *target)


def _items(plan: Plan, tree: Path) -> Measured:
    with emulator(plan.latency_ms * 2 / 3) as url:
        return _measured(tree, url, "--items", str(ITEMS), "--at-once", str(AT_ONCE))


def _dialogues(plan: Plan, number: int) -> tuple[str, ...]:
    return ("--runs", str(number), "--turns", str(plan.many_turns))


def _measured(tree: Path, url: str, *words: str, program: str = MANY) -> Measured:
    done = subprocess.run(
        [sys.executable, program, *words],
        env=environment(url) | {"PYTHONPATH": str(tree)},
        cwd=tree,
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} ended with {done.returncode} in {tree}.")
    measured: Measured = json.loads(done.stdout)
    return measured
