"""Threads that are left behind, limits of what is done at once, and decoding in several threads."""

import subprocess
import sys
import threading
from concurrent.futures import Future

import pytest

from socratic_bench.concurrency import ConnectionLimit, Workers, start_thread
from socratic_bench.errors import Stopped
from socratic_bench.models.cancel import CancelToken
from tests.command import ROOT
from tests.fakes import PATIENCE_S, wait_until


def test_work_in_a_thread_gives_its_result_or_its_error():
    assert start_thread(lambda: 7).result(PATIENCE_S) == 7
    with pytest.raises(ZeroDivisionError):
        start_thread(lambda: 1 / 0).result(PATIENCE_S)


def test_a_thread_that_hangs_does_not_hold_up_the_end_of_the_process():
    hanging = "start_thread(threading.Event().wait)"
    code = f"import threading\nfrom socratic_bench.concurrency import start_thread\n{hanging}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)

    assert done.returncode == 0


class TestWorkers:
    def test_work_begins_in_its_order_and_no_more_at_once_than_allowed(self):
        workers, begun, go_on = Workers(2), [], threading.Event()

        def work(number: int) -> int:
            begun.append(number)
            assert go_on.wait(PATIENCE_S)
            return number

        done = [workers.submit(lambda number=number: work(number)) for number in range(6)]
        wait_until(lambda: len(begun) == 2)
        go_on.set()

        assert [future.result(PATIENCE_S) for future in done] == [*range(6)]
        assert sorted(begun[:2]) == [0, 1]

    def test_work_that_fails_leaves_its_worker_to_the_next(self):
        workers = Workers(1)
        failing, working = workers.submit(lambda: 1 / 0), workers.submit(lambda: 7)

        assert isinstance(failing.exception(PATIENCE_S), ZeroDivisionError)
        assert working.result(PATIENCE_S) == 7

    def test_nothing_more_begins_once_they_are_closed(self):
        workers, go_on = Workers(1), threading.Event()
        begun, waiting = workers.submit(go_on.wait), workers.submit(lambda: 7)
        wait_until(begun.running)
        workers.close()
        late = workers.submit(lambda: 7)
        go_on.set()

        assert begun.result(PATIENCE_S)
        assert (waiting.cancelled(), late.cancelled()) == (True, True)


class TestConnectionLimit:
    def test_the_first_that_waits_gets_the_next_connection(self):
        limit, order = ConnectionLimit(1), []
        waiting: list[Future[None]] = []

        def hold(name: str) -> None:
            with limit.hold(lambda place: (waiting.append(place), place.result(PATIENCE_S))):
                order.append(name)

        with limit.hold(never):
            threads = [start_thread(lambda: hold("first"))]
            wait_until(lambda: len(waiting) == 1)
            threads.append(start_thread(lambda: hold("second")))
            wait_until(lambda: len(waiting) == 2)
            assert order == []
        for thread in threads:
            thread.result(PATIENCE_S)

        assert order == ["first", "second"]

    def test_the_end_of_the_run_leaves_the_line_without_a_connection(self):
        limit, cancel_token = ConnectionLimit(1), CancelToken()

        def hold() -> None:
            with limit.hold(cancel_token.result):
                raise AssertionError("nobody gave a connection back")

        with limit.hold(never):
            waiting = start_thread(hold)
            cancel_token.interrupt(15)
            with pytest.raises(Stopped):
                waiting.result(PATIENCE_S)

        with limit.hold(never):
            pass

    def test_what_fails_gives_its_connection_back(self):
        limit = ConnectionLimit(1)
        with pytest.raises(ZeroDivisionError), limit.hold(never):
            _ = 1 / 0

        with limit.hold(never):
            pass

    def test_many_threads_lose_no_connection(self):
        limit, under_way, most = ConnectionLimit(3), [], []

        def hold_often() -> None:
            for _ in range(50):
                with limit.hold(CancelToken().result):
                    under_way.append(None)
                    most.append(len(under_way))
                    under_way.pop()

        for thread in [start_thread(hold_often) for _ in range(8)]:
            thread.result(PATIENCE_S)

        assert max(most) <= 3
        with limit.hold(never), limit.hold(never), limit.hold(never):
            pass


def never(_place: "Future[None]") -> None:
    raise AssertionError("nobody has to wait")


# A thread that meets a type which another one is looking into would end the process.
READING = """
import sys
import threading
from typing import Annotated

from msgspec import Meta, ValidationError, defstruct

from socratic_bench.concurrency import convert, decode
from socratic_bench.documents.encoding import typed

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
from socratic_bench.studies.rows import read_document, run_row, validate_run

sys.setswitchinterval(1e-6)
(path,) = Path("tests/data/stored_runs/socratic/curated/runs").iterdir()
body = path.read_bytes()
together = threading.Barrier(8)
benchmark = load_benchmark("socratic")


def work():
    together.wait()
    document = read_document(body, "run.json")
    validate_run(document, benchmark, "run.json")
    run_row(document, benchmark, source="", files={})


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
