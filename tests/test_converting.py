"""Types that several threads read values of for the first time, at once."""

import subprocess
import sys

import pytest

from tests.command import ROOT

# A thread that meets a type which another one is looking into would end the process.
READING = """
import sys
import threading
from typing import Annotated

from msgspec import Meta, ValidationError, defstruct

from socratic_bench.converting import convert, decode
from socratic_bench.documents.plain import typed

Some = Annotated[int, Meta(ge=0, extra_json_schema={"x": []})] | None
sys.setswitchinterval(1e-6)
for number in range(60):
    inner = defstruct(f"Inner{number}", [(f"f{place}", Some, None) for place in range(20)])
    outer = defstruct(f"Outer{number}", [(f"g{place}", list[inner], []) for place in range(10)])
    another = defstruct(f"Another{number}", [(f"h{place}", list[inner], []) for place in range(10)])
    together, read = threading.Barrier(4), []

    def work():
        together.wait()
        read.append(convert({"g1": [{"f2": 3}]}, outer))
        read.append(decode(b'[{"f2": 3}]', list[inner]))
        read.append(typed({"g1": [{"f2": 3}]}, another))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read) == 12, read
try:
    convert({"g1": [{"f2": -3}]}, outer)
except ValidationError as error:
    print(error)
"""


def test_threads_read_values_of_new_types_at_once():
    done = subprocess.run(
        [sys.executable, "-c", READING], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Expected `int` >= 0 - at `$.g1[0].f2`\n"


# The same of a run, which is read whole by types of the core and of its benchmark.
RUNS = """
import sys
import threading
from pathlib import Path

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.studies.compare.stored_run import read_run

sys.setswitchinterval(1e-6)
body = Path("tests/data/stored_runs/finished-folder/stdout.json").read_bytes()
together = threading.Barrier(8)
benchmark = load_benchmark("socratic")


def work():
    together.wait()
    read_run(body, "run.json", "", benchmark, None)


threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("_attempt", range(3))
def test_threads_read_stored_runs_at_once(_attempt):
    done = subprocess.run(
        [sys.executable, "-c", RUNS], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
