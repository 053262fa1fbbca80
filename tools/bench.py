"""Measure the program's own speed and memory, as ratios where the machine has a part in them.

    python tools/bench.py [--rounds 5] [--only NAME] [--page docs/dev/performance.md]

Every row is of whole processes against the emulator in a process of its own, on this machine. What
a figure is compared with runs in the same round. Prints a table, writes it into the page, and ends
with 1 if a median misses its bound. `--only` takes a part of a row's name.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

from pages import filled_in

from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids

ROOT = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-m", "cli")
TUTOR, STUDENT, JUDGE = "bench.tutor-v1:0", "bench.student-v1:0", "bench.judge-v1:0"
BARE_CALL = f"""
import boto3
client = boto3.client("bedrock-runtime", region_name="us-east-1")
client.converse(modelId="{TUTOR}", messages=[{{"role": "user", "content": [{{"text": "Hi."}}]}}])
"""
BARE = (sys.executable, "-c", BARE_CALL)
NOTHING = (sys.executable, "-c", "pass")
THROTTLED = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. `must` is the most that its median may be, or the least with `is_minimum`."""

    name: str
    measure: str
    must: float
    values: Sequence[float]
    is_minimum: bool = False

    @property
    def passes(self) -> bool:
        value = median(self.values)
        return value >= self.must if self.is_minimum else value <= self.must

    def cells(self) -> tuple[str, ...]:
        best = max(self.values) if self.is_minimum else min(self.values)
        bound = f"{'≥' if self.is_minimum else '≤'} {self.must:g}"
        verdict = "yes" if self.passes else "**no**"
        return (
            self.name,
            self.measure,
            f"{best:.3g}",
            f"{median(self.values):.3g}",
            bound,
            verdict,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What a process took, and the JSON document that it printed, if any."""

    wall_s: float
    peak_mb: float
    document: Any


def long_dialogue(rounds: int) -> Iterator[Row]:
    """40 turns at 300 ms: student and tutor in turn, then one verdict, are the critical path."""
    path_s = 2 * 40 * 0.3
    with emulator(latency_ms=300) as url:
        played = [measure(dialogue(turns=40), url) for _ in range(min(rounds, 3))]
    name = "one dialogue of 40 turns at 300 ms"
    yield Row(
        name=name,
        measure="wall / critical path",
        must=1.06,
        values=[process.wall_s / path_s for process in played],
    )
    yield Row(
        name=name,
        measure="peak memory, MB",
        must=100,
        values=[process.peak_mb for process in played],
    )


def short_dialogue(rounds: int) -> Iterator[Row]:
    """5 turns at 0 ms beside a script that imports boto3, makes a client and calls once."""
    with emulator() as url:
        values = [
            measure(dialogue(turns=5), url).wall_s / measure(BARE, url).wall_s
            for _ in range(4 * rounds)
        ]
    yield Row(name="5 turns at 0 ms", measure="wall / one bare boto3 call", must=2.0, values=values)


def help_text(rounds: int) -> Iterator[Row]:
    values = [
        measure((*COMMAND, "--help"), "").wall_s / measure(NOTHING, "").wall_s
        for _ in range(4 * rounds)
    ]
    yield Row(name="--help", measure="wall / python -c pass", must=4.0, values=values)


def many_dialogues(rounds: int) -> Iterator[Row]:
    """64 dialogues of 5 turns at 1.5 s a call, in one process and one folder."""
    latency_s = 1.5
    path_s = 2 * 5 * latency_s
    values = []
    for _ in range(min(rounds, 3)):
        with emulator(latency_ms=1000 * latency_s) as url:
            sweep(url, n_runs=64, turns=5)
            times = [request["time"] for request in requests(url)]
            values.append((max(times) + latency_s - min(times)) / path_s)
    yield Row(
        name="64 dialogues at once at 1.5 s a call",
        measure="first request to last answer / critical path",
        must=1.08,
        values=values,
    )


def many_items(rounds: int) -> Iterator[Row]:
    """1,000 items of the benchmark golden, each asked and judged, by 16 requests of each kind."""
    latency_s, n_items, n_at_once = 0.3, 1000, 16
    path_s = n_items * latency_s / n_at_once
    rows = [
        {"id": str(n), "prompt": f"What is {n} + {n}?", "golden_answer": str(2 * n)}
        for n in range(n_items)
    ]
    values = []
    for _ in range(min(rounds, 3)):
        with emulator(latency_ms=1000 * latency_s) as url, tempfile.TemporaryDirectory() as folder:
            data = Path(folder, "items.jsonl")
            data.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
            words = ("--benchmark", "golden", "--dataset", str(data), "--model", TUTOR)
            words += ("--judge-model", JUDGE, "--max-concurrency", str(n_at_once), "--seed", "7")
            measure((*COMMAND, *words, "--quiet", "--output-dir", folder), url)
            times = [request["time"] for request in requests(url)]
            values.append((max(times) + latency_s - min(times)) / path_s)
    yield Row(
        name="1,000 items at 300 ms a call",
        measure="first request to last answer / calls x 300 ms / connections",
        must=1.1,
        values=values,
    )


def equal_patches(rounds: int) -> Iterator[Row]:
    """20 evaluations of a patch that changes nothing, by the clock of this machine."""
    del rounds
    from socratic_bench.benchmarks.optimisation.evaluating import Venue, evaluate
    from socratic_bench.benchmarks.optimisation.isolation import make_isolation
    from socratic_bench.benchmarks.optimisation.plan import make_plan
    from socratic_bench.benchmarks.optimisation.repository import Source
    from socratic_bench.benchmarks.optimisation.task import BenchConfig, read_task
    from tests.optimisation_fixtures import git, make_fixture

    n_evaluations, n_false = 20, 0
    with tempfile.TemporaryDirectory() as folder:
        fixture = make_fixture(Path(folder), ["match"], metric="seconds", visible=False)
        source = Source(str(fixture.repo), Path(folder))
        (planned,) = make_plan(read_task(str(fixture.task)), source, str(fixture.commits)).items
        # The human's commit is the base's equal, too: a comment beside another one.
        git(fixture.repo, "checkout", "-q", planned.pre)
        module = fixture.repo / "textkit" / "match.py"
        module.write_text(module.read_text("utf-8") + "# The same.\n", encoding="utf-8")
        patch = (git(fixture.repo, "diff") + "\n").encode()
        item = read_task(str(fixture.task)).item(planned.item_id, planned.human, planned.pre)
        tests = [f"tests.test_textkit.TestTextkit::test_{name}" for name in
                 ("common", "mask", "number", "ways")]  # fmt: skip
        isolation = make_isolation(BenchConfig(), "auto", hidden=(folder,), environment={})
        for number in range(n_evaluations):
            venue = Venue(
                source=source, isolation=isolation, folder=Path(folder, "work"), key=str(number)
            )
            evaluation = evaluate(item, patch, venue, expected_tests=tests, reference=patch)
            verdict = evaluation.verdict
            n_false += verdict is None or bool(
                verdict.improved or verdict.performance in ("beats", "worse")
            )
    yield Row(
        name="20 evaluations of equal patches",
        measure="called faster or slower than the base or the human, %",
        must=5,
        values=[100 * n_false / n_evaluations],
    )


def memory(rounds: int) -> Iterator[Row]:
    """200 dialogues in flight in one process."""
    del rounds
    with emulator(latency_ms=1500) as url:
        peak_mb = sweep(url, n_runs=200, turns=5).peak_mb
    yield Row(name="200 dialogues at once", measure="peak memory, MB", must=400, values=[peak_mb])


def unknown_quota(rounds: int) -> Iterator[Row]:
    """Nobody tells the sweep that each model takes 1,200 requests a minute."""
    values = []
    for _ in range(min(rounds, 3)):
        with emulator("--requests-per-minute", "1200", latency_ms=300) as url:
            sweep(url, n_runs=64, turns=10)
            statuses = [request["status"] for request in requests(url)]
            values.append(100 * statuses.count(THROTTLED) / len(statuses))
    yield Row(
        name="64 dialogues at an unknown quota",
        measure="requests refused, %",
        must=3,
        values=values,
    )


def target(rounds: int) -> Iterator[Row]:
    """`--target-rpm` at each model's quota, over a sweep of about 80 s."""
    shares, refused = [], []
    for _ in range(min(rounds, 2)):
        with emulator("--requests-per-minute", "500", latency_ms=300) as url:
            sweep(url, "--target-rpm", "500", n_runs=64, turns=10)
            log = requests(url)
            tutor = [request["time"] for request in log if request["model_id"] == TUTOR]
            span_s = max(tutor) - min(tutor)
            shares.append(100 * len(tutor) / (span_s * 500 / 60))
            refused.append(sum(request["status"] == THROTTLED for request in log))
    name = "64 dialogues at a target of 500 requests a minute"
    yield Row(name=name, measure="requests refused", must=0, values=refused)
    yield Row(
        name=name,
        measure="share of the target used, %",
        must=88,
        values=shares,
        is_minimum=True,
    )


def dashboard(rounds: int) -> Iterator[Row]:
    """A page with 500 runs of 10 turns, of which one goes on; needs the browser of its tests."""
    with tempfile.TemporaryDirectory() as folder:
        with emulator() as url:
            words = ("--models", TUTOR, "--no-judge", "--scenarios", *builtin_ids()[:20])
            words += ("--turns", "10", "--repeats", "25", "--seed", "7", "--output-dir", folder)
            measure((*COMMAND, "sweep", "--quiet", *words), url)
        sweep_id, run_id, answers = reopened_run(Path(folder))
        journal = Path(folder, "journal", "runs", f"{run_id}.jsonl")
        words = (*COMMAND, "dashboard", "--store", folder)
        with started(words, environment("http://127.0.0.1:9")) as process:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["url"]
            yield from watched(process.pid, address, (sweep_id, run_id), journal, answers[:rounds])


def watched(
    pid: int, address: str, ids: tuple[str, str], journal: Path, answers: Sequence[bytes]
) -> Iterator[Row]:
    """A page of the dashboard in a browser, while answers are added to a journal."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    first_s, change_s = [], []
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        for answer in answers:
            start_s = time.monotonic()
            page.goto(f"{address.partition('/?')[0]}/sweeps/{ids[0]}")
            cell = page.locator(f"#{ids[1]}")
            cell.wait_for()
            first_s.append(time.monotonic() - start_s)
            before = cell.inner_text()
            start_s = time.monotonic()
            with journal.open("ab") as file:
                file.write(answer)
            while cell.inner_text() == before:
                time.sleep(0.01)
            change_s.append(time.monotonic() - start_s)
        time.sleep(3)
        before_s, idle_s = cpu_s(pid), 20
        time.sleep(idle_s)
        percent = 100 * (cpu_s(pid) - before_s) / idle_s
        browser.close()
    name = "dashboard with 500 runs of 10 turns"
    yield Row(name=name, measure="first page, s", must=2, values=first_s)
    yield Row(name=name, measure="change of a journal on the page, s", must=1, values=change_s)
    yield Row(name=name, measure="memory, MB", must=200, values=[resident_mb(pid)])
    yield Row(name=name, measure="idle page, % of a core", must=3, values=[percent])


ROWS: tuple[Callable[[int], Iterator[Row]], ...] = (
    long_dialogue,
    short_dialogue,
    help_text,
    many_dialogues,
    many_items,
    equal_patches,
    memory,
    unknown_quota,
    target,
    dashboard,
)


def reopened_run(store: Path) -> tuple[str, str, list[bytes]]:
    """Makes a run of a sweep one that has just begun. Returns the ids of both, and what its journal
    will have of further turns.
    """
    sweep = next((store / "sweeps").glob("sweep-*"))
    files = sorted((sweep / "cells").iterdir())
    run_id = json.loads(files[0].read_bytes().splitlines()[0])["run_id"]
    for file in files:
        rows = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(row for row in rows if run_id.encode() not in row))
    (store / "curated" / "runs" / f"{run_id}.json").unlink()
    journal = store / "journal" / "runs" / f"{run_id}.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    entries = [json.loads(line) for line in lines]
    answers = [
        line
        for line, entry in zip(lines, entries, strict=True)
        if entry["kind"] == "answered" and entry["key"]["role"] == "tutor"
    ]
    journal.write_bytes(b"".join([*lines[:2], answers[0]]))
    return sweep.name, run_id, answers[1:]


@contextmanager
def started(words: Sequence[str], environ: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is ended afterwards."""
    process = subprocess.Popen(
        words, env=environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def cpu_s(pid: int) -> float:
    """Seconds of a core that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def dialogue(turns: int) -> tuple[str, ...]:
    """A run with all three roles played by models."""
    models = ("--model", TUTOR, "--student-model", STUDENT, "--judge-model", JUDGE)
    words = ("--scenario", "career-change", "--quiet", "--turns", str(turns))
    return (*COMMAND, *models, *words)


def sweep(url: str, *more: str, n_runs: int, turns: int) -> Process:
    """Repeats of one dialogue, all at once. Exits if a run is not complete."""
    with tempfile.TemporaryDirectory() as folder:
        words = (
            *("--models", TUTOR, "--student-model", STUDENT, "--judge-model", JUDGE),
            *("--scenarios", "career-change", "--repeats", str(n_runs), "--turns", str(turns)),
            *("--max-connections", str(2 * n_runs), "--output-dir", folder, "--seed", "7"),
        )
        process = measure((*COMMAND, "sweep", "--quiet", *words, *more), url)
    if process.document["n_completed"] != n_runs:
        sys.exit(f"{process.document['n_completed']} of {n_runs} runs were completed.")
    return process


def measure(words: Sequence[str], url: str) -> Process:
    """Run a process to its end. Exits if it fails."""
    with tempfile.TemporaryFile() as output:
        started_s = time.monotonic()
        process = subprocess.Popen(
            words, env=environment(url), cwd=ROOT, stdout=output, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - started_s
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{' '.join(words)} ended with {process.returncode}.")
        output.seek(0)
        text = output.read()
    document = json.loads(text) if text.startswith(b"{") else None
    return Process(wall_s=wall_s, peak_mb=usage.ru_maxrss / 1024, document=document)


def environment(url: str) -> dict[str, str]:
    """Stand-in keys and Bedrock at `url`; no setting of the user's own."""
    own = ("AWS_", "RUNNER_", "BEDROCK_", "PYTHON")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(own)},
        "PYTHONPATH": str(ROOT),
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "BEDROCK_MODEL_IDS": json.dumps([TUTOR]),
    }


@contextmanager
def emulator(*more: str, latency_ms: float = 0.0) -> Iterator[str]:
    """The URL of an emulator in a process of its own, which answers after a fixed time."""
    words = (*COMMAND, "emulator", "--any-model", "--latency-ms", str(latency_ms), *more)
    with started(words, dict(os.environ)) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["endpoint_url"]


def requests(url: str) -> list[dict[str, Any]]:
    """The emulator's log of the requests it got."""
    with urlopen(f"{url}/_emulator/requests") as answer:
        log: list[dict[str, Any]] = json.loads(answer.read())
    return log


def table(rows: Sequence[Row]) -> str:
    python = f"Python {platform.python_version()}"
    packages = ", ".join([python, *(f"{name} {version(name)}" for name in ("boto3", "botocore"))])
    machine = f"{os.cpu_count()} cores, {platform.system()}, {packages}"
    lines = [
        f"Measured on {date.today().isoformat()}: {machine}.",
        "",
        "| what | measure | best | median | bound | kept |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(row.cells())} |" for row in rows),
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    rows: list[Row] = []
    for measured in ROWS:
        if options.only in measured.__name__:
            print(f"{measured.__name__} ...", file=sys.stderr)
            rows += measured(options.rounds)
    text = table(rows)
    print(text)
    if options.page:
        page = filled_in(options.page.read_text(encoding="utf-8"), "bench", text)
        options.page.write_text(page, encoding="utf-8")
    return 0 if all(row.passes for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
