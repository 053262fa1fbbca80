"""The rows of sweeps: the command as users start it, with all its processes."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

from bench.contenders import COMMAND, JUDGE, ROOT, STUDENT, TUTOR, emulator, environment
from bench.row import Plan, Row, Say, absolute
from bench.sweep_index import finished_cells
from socratic_bench.studies.sweep.settings import MAX_CONNECTIONS
from socratic_bench.types import counted

# For so many dialogues as the table has, of which other numbers are parts.
DIALOGUES = 64
LOOK_S = 0.1


def sweeps(plan: Plan, say: Say) -> Iterator[Row]:
    """Every row of sweeps."""
    yield few(plan, say)
    yield several_processes(plan, say)
    yield in_flight(plan, say)
    yield from finished(plan, say)


def few(plan: Plan, say: Say) -> Row:
    """The whole process, from its start to its end."""
    n_cells, path_s = -(-plan.dialogues // 4), 2 * plan.many_turns * plan.latency_ms / 1000
    name = f"sweep of {counted(n_cells, 'dialogue')}"
    say(f"{name}, {plan.many_rounds} rounds ...")
    values = []
    for _ in range(plan.many_rounds):
        with emulator(plan.latency_ms) as url, tempfile.TemporaryDirectory() as folder:
            began_s = time.monotonic()
            _start(url, folder, n_cells, plan.many_turns).check()
            values.append((time.monotonic() - began_s) / path_s)
    return absolute(name, f"wall / critical path ({path_s:.1f} s)", "x", (1.12, 1.07), values)


def several_processes(plan: Plan, say: Say) -> Row:
    """Calls a second from the first request to the last one; the emulator has its share of the
    machine.
    """
    n_cells, latency_ms = 4 * plan.dialogues, plan.latency_ms * 2 / 3
    name = f"sweep of {n_cells} dialogues at {latency_ms:g} ms, two processes"
    say(f"{name}, {plan.many_rounds} rounds ...")
    values = []
    for _ in range(plan.many_rounds):
        with emulator(latency_ms) as url, tempfile.TemporaryDirectory() as folder:
            _start(url, folder, n_cells, plan.many_turns, "--processes", "2").check()
            times = [request["time"] for request in _requests(url)]
            values.append(len(times) / (max(times) - min(times) + latency_ms / 1000))
    return Row(
        name=name,
        measure="calls a second",
        unit="/s",
        must=400.0,
        aim=550.0,
        values=tuple(values),
        more_is_better=True,
    )


def in_flight(plan: Plan, say: Say) -> Row:
    """Memory of all processes of the sweep, pages that they share counted once."""
    n_cells = round(1000 * plan.dialogues / DIALOGUES)
    name = f"sweep of {n_cells} dialogues in flight, two processes"
    say(f"{name} ...")
    with emulator(10 * plan.latency_ms) as url, tempfile.TemporaryDirectory() as folder:
        peak_mb = _start(url, folder, n_cells, 3, "--processes", "2").peak_mb()
    return absolute(name, "peak memory of all", "MB", (450.0, 320.0), [peak_mb])


def finished(plan: Plan, say: Say) -> Iterator[Row]:
    """Nothing is to be played: the sweep's document is made of its index."""
    n_repeats = max(1, round(1000 * plan.dialogues / DIALOGUES))
    say(f"sweep --resume of {10 * n_repeats} finished cells, {plan.many_rounds} rounds ...")
    with emulator() as url, tempfile.TemporaryDirectory() as folder:
        words = finished_cells(Path(folder), n_repeats)
        values = []
        for _ in range(plan.many_rounds):
            began_s = time.monotonic()
            _Sweep(url, words, 10 * n_repeats).check()
            values.append(time.monotonic() - began_s)
    name = f"sweep --resume of {10 * n_repeats} finished cells, folder"
    yield absolute(name, "wall", "s", (5.0, 2.0), values)


class _Sweep:
    """A sweep under way."""

    def __init__(self, url: str, words: tuple[str, ...], n_cells: int) -> None:
        self._n_cells = n_cells
        # A pipe would have to be read meanwhile.
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by `check`
        self._process = subprocess.Popen(
            [*COMMAND, "sweep", "--quiet", *words],
            env=environment(url) | {"BEDROCK_MODEL_IDS": json.dumps([TUTOR, f"{TUTOR}:b"])},
            cwd=ROOT,
            stdout=self._printed,
        )

    def check(self) -> None:
        """It ends well, with every cell complete."""
        code = self._process.wait()
        with self._printed as printed:
            printed.seek(0)
            if code or json.load(printed)["n_completed"] != self._n_cells:
                sys.exit(f"The sweep ended with {code}.")

    def peak_mb(self) -> float:
        """The most memory that all its processes took together."""
        peak = 0.0
        while self._process.poll() is None:
            peak = max(peak, sum(map(_memory_mb, _family(self._process.pid))))
            time.sleep(LOOK_S)
        self.check()
        return peak


def _start(url: str, folder: str, n_cells: int, turns: int, *more: str) -> _Sweep:
    words = (
        *("--models", TUTOR, "--student-model", STUDENT, "--judge-model", JUDGE, "--seed", "7"),
        *("--scenarios", "career-change", "--repeats", str(n_cells), "--turns", str(turns)),
        # A dialogue's and a verdict's, beside each other.
        *("--output-dir", folder, "--max-connections", str(min(2 * n_cells, MAX_CONNECTIONS))),
    )
    return _Sweep(url, (*words, *more), n_cells)


def _requests(url: str) -> list[dict[str, float]]:
    with urlopen(f"{url}/_emulator/requests") as answer:  # noqa: S310 -- http
        found: list[dict[str, float]] = json.loads(answer.read())
    return found


def _family(pid: int) -> list[int]:
    """A process and all that it has started."""
    try:
        tasks = [*Path(f"/proc/{pid}/task").glob("*/children")]
        children = [int(word) for path in tasks for word in path.read_text().split()]
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(child))]


def _memory_mb(pid: int) -> float:
    """Its pages, those that it shares divided by how many share them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0) / 1024
