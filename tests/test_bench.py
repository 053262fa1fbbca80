"""The benchmark harness, run small through its real command. Its figures are not looked at."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.command import ROOT, daily

SMALL = ("--turns", "2", "--latency-ms", "5", "--runs", "1", "--rounds", "1", "--calls", "2")
MANY = ("--dialogues", "2", "--many-turns", "2", "--many-rounds", "1", "--load-s", "0.2")
AGAINST = ("--against", str(ROOT))
NAMES = [
    "2 turns at 5 ms",
    "2 turns at 5 ms",
    "2 turns at 5 ms",
    "5 turns at 0 ms",
    "first byte at the server",
    "--version",
    "--help",
    "CPU per call",
    "the emulator at 0 ms",
    "predicted: 12 turns",
    "predicted: a judge that refuses fields",
    "predicted: a budget",
    "predicted: a budget's turns",
    "predicted: a deadline's turns",
    "a signal while a call hangs",
    "2 dialogues at once, one folder",
    "2 dialogues at once, one folder",
    "8 dialogues at once",
    "8 dialogues at once",
    "8 dialogues at once",
    "60 items at 3.33333 ms, 16 at once",
    "2 dialogues, 37.5 requests a minute for each model",
    "2 dialogues, 37.5 requests a minute for each model",
    "2 dialogues, a target of 38 requests a minute",
    "2 dialogues, a target of 38 requests a minute",
    "sweep of 1 dialogue",
    "sweep of 8 dialogues at 3.33333 ms, two processes",
    "sweep of 31 dialogues in flight, two processes",
    "sweep --resume of 310 finished cells, folder",
]


@pytest.fixture(scope="module", params=daily([False, True], False), ids=["alone", "against"])
def bench(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    page = folder / "performance.md"
    shutil.copy(ROOT / "docs/performance.md", page)
    against = AGAINST if request.param else ()
    places = ("--json", str(folder / "kept" / "bench.json"), "--page", str(page))
    done = subprocess.run(
        [sys.executable, "-m", "bench", *SMALL, *MANY, *against, *places],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert (folder / "kept").is_dir(), done.stderr
    return done, json.loads((folder / "kept" / "bench.json").read_text()), page.read_text()


def test_bench_rows(bench):
    done, kept, page = bench
    rows = kept["rows"]

    assert [row["name"].partition(" (")[0] for row in rows] == NAMES
    assert any("; before: " in row["measure"] for row in rows) is ("--against" in done.args)
    for row in rows:
        assert row["median"] > 0 or row["measure"].startswith("requests refused")
        assert row["name"] in done.stdout
        assert f"| {row['name']} | {row['measure']} |" in page


def test_bench_exit_code_is_that_of_its_rows(bench):
    done, kept, _ = bench

    assert done.returncode == (0 if all(row["passes"] for row in kept["rows"]) else 1), done.stderr


def test_bench_names_no_host_and_no_path(bench):
    _, kept, page = bench

    assert set(kept["machine"]) == {"cores", "cpu", "system"}
    assert str(ROOT) not in json.dumps(kept) + page
