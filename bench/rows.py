"""The rows of the table: what is measured, what it must reach, and what is aimed at."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from bench.arrival import first_byte_s
from bench.contenders import (
    BARE,
    COMMAND,
    NOTHING,
    ROOT,
    Cost,
    cost_of,
    dialogue,
    emulator,
    environment,
    play,
)
from bench.load import LOADED, measure_load, sequence_s
from bench.many_rows import many
from bench.predicted import CASES, off_by, signalled_s
from bench.report_rows import reports
from bench.row import Plan, Row, Say, absolute
from bench.sweep_rows import sweeps


def measure_all(plan: Plan, say: Say) -> Iterator[Row]:
    """Every row of the table, in its order."""
    yield from long_dialogue(plan, say)
    yield short_dialogue(plan, say)
    yield first_byte(plan, say)
    yield from quick_answers(plan, say)
    yield cpu_per_call(plan, say)
    yield throughput(plan, say)
    yield from predicted(plan, say)
    yield signalled(plan, say)
    yield from many(plan, say)
    yield from sweeps(plan, say)
    if plan.report_runs:
        yield from reports(plan, say)


def long_dialogue(plan: Plan, say: Say) -> Iterator[Row]:
    """Against the critical path: both speakers in turn, then one verdict.

    All verdicts but the last run during the dialogue, so the path has `turns` calls of the tutor,
    one less of the student, and one of the judge.
    """
    path_s = 2 * plan.turns * plan.latency_ms / 1000
    say(f"{plan.turns} turns, {plan.runs} times, at least {path_s:.1f} s each ...")
    with emulator(plan.latency_ms) as url, ThreadPoolExecutor(1) as beside:
        costs, plain_s = [], []
        for _ in range(plan.runs):
            plain = beside.submit(sequence_s, url, 2 * plan.turns)
            costs.append(play(plan.turns, url))
            plain_s.append(plain.result())
    machine = median(plain_s) / path_s
    name = f"{plan.turns} turns at {plan.latency_ms:g} ms"
    yield Row(
        name=name,
        measure=f"wall / critical path ({path_s:.1f} s; plain calls {machine:.3f})",
        unit="x",
        must=1.03,
        aim=1.02,
        values=tuple(cost.wall_s / path_s for cost in costs),
    )
    yield absolute(name, "CPU seconds", "s", (1.2, 0.8), [cost.cpu_s for cost in costs])
    yield absolute(name, "peak memory", "MB", (80.0, 60.0), [cost.peak_mb for cost in costs])


def short_dialogue(plan: Plan, say: Say) -> Row:
    """All three roles by models, against the bare script."""
    with emulator() as url:
        return _against(
            plan,
            say,
            "5 turns at 0 ms",
            "wall / bare script",
            (1.8, 1.4),
            (lambda: play(5, url).wall_s, lambda: _wall_s(BARE, url)),
        )


def first_byte(plan: Plan, say: Say) -> Row:
    return _against(
        plan,
        say,
        "first byte at the server",
        "since start / bare script",
        (1.0, 0.75),
        (lambda: first_byte_s(dialogue(5)), lambda: first_byte_s(BARE)),
    )


def quick_answers(plan: Plan, say: Say) -> Iterator[Row]:
    for flag, bounds in (("--version", (3.0, 2.5)), ("--help", (4.0, 3.0))):
        words = (*COMMAND, flag)
        yield _against(
            plan,
            say,
            flag,
            "wall / python -c pass",
            bounds,
            (lambda words=words: _wall_s(words, ""), lambda: _wall_s(NOTHING, "")),
        )


def cpu_per_call(plan: Plan, say: Say) -> Row:
    say("CPU per call with a short and a long history ...")
    with emulator() as url:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "bench.calls", url),
                *("--calls", str(plan.calls), "--rounds", str(plan.rounds)),
            ],
            env=environment(url),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            check=True,
        )
    found = json.loads(done.stdout)
    pairs = zip(found["long_ms"], found["short_ms"], strict=True)
    return Row(
        name=f"CPU per call ({median(found['short_ms']):.2f} ms)",
        measure="81 messages / 1 message",
        unit="x",
        must=1.5,
        aim=1.5,
        values=tuple(long / short for long, short in pairs),
    )


def throughput(plan: Plan, say: Say) -> Row:
    say(f"the emulator under load, {LOADED} connections ...")
    with emulator() as url:
        rates = [measure_load(url, seconds=plan.load_s) for _ in range(3)]
    return Row(
        name="the emulator at 0 ms",
        measure=f"calls a second, {LOADED} connections",
        unit="/s",
        must=1000.0,
        aim=1000.0,
        values=tuple(rates),
        more_is_better=True,
    )


def predicted(plan: Plan, say: Say) -> Iterator[Row]:
    """Dry runs against the runs that follow, in real time."""
    with emulator(plan.latency_ms / 2) as url:
        for case in CASES:
            say(f"predicted: {case}, {plan.runs} times ...")
            yield Row(
                name=f"predicted: {case}",
                measure=f"dry run / run, or run / dry run, at {plan.latency_ms / 2:g} ms",
                unit="x",
                must=1.15,
                aim=1.05,
                values=tuple(off_by(case, url, number) for number in range(plan.runs)),
            )


def signalled(plan: Plan, say: Say) -> Row:
    say("the end by a signal ...")
    with emulator(600_000.0) as url:
        values = [signalled_s(url) for _ in range(plan.runs)]
    return absolute("a signal while a call hangs", "seconds to the end", "s", (2.0, 1.0), values)


def _against(
    plan: Plan,
    say: Say,
    name: str,
    measure: str,
    bounds: tuple[float, float],
    contenders: tuple[Callable[[], float], Callable[[], float]],
) -> Row:
    """Rounds of both, so that a busy moment falls on both; a first round warms the files up."""
    say(f"{name}, {plan.rounds} rounds ...")
    ours, reference = contenders
    ours(), reference()
    values = tuple(ours() / reference() for _ in range(plan.rounds))
    return Row(name=name, measure=measure, unit="x", must=bounds[0], aim=bounds[1], values=values)


def _wall_s(words: Sequence[str], url: str) -> float:
    cost: Cost = cost_of(words, url)[0]
    return cost.wall_s
