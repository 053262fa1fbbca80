"""A few requests at a time are put together, and nobody stands in the way of others for long."""

import gc
import sys
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from socratic_bench import Services
from socratic_bench.errors import Stopped
from socratic_bench.fair_semaphore import (
    AT_ONCE,
    GARBAGE_OBJECTS,
    SWITCH_INTERVAL_S,
    FairSemaphore,
    sent,
)
from socratic_bench.models.cancel_token import CancelToken
from tests.fakes import PATIENCE_S


def never(_place: "Future[None]", _timeout_s: float) -> None:
    raise AssertionError("nobody has to wait")


def too_long(_place: "Future[None]", _timeout_s: float) -> None:
    raise TimeoutError


def full(semaphore: FairSemaphore) -> list[Any]:
    return [semaphore.enter(never) for _ in range(AT_ONCE)]


def test_who_comes_next_goes_on_once_a_pass_is_given_back():
    semaphore, entered = FairSemaphore(), threading.Event()
    first, *_ = full(semaphore)
    cancel_token = CancelToken()
    waiting = threading.Thread(
        target=lambda: (semaphore.enter(cancel_token.result), entered.set()), daemon=True
    )
    waiting.start()
    assert not entered.is_set()

    first.give_back()
    assert entered.wait(PATIENCE_S)


def test_a_pass_counts_once_however_often_it_is_given_back():
    semaphore = FairSemaphore()
    first, *_ = full(semaphore)
    first.run(sent)
    first.give_back()
    semaphore.enter(never)

    with pytest.raises(AssertionError):
        semaphore.enter(never)


def test_work_that_fails_gives_its_pass_back():
    semaphore = FairSemaphore()
    first, *_ = full(semaphore)
    with pytest.raises(ZeroDivisionError):
        first.run(lambda: 1 / 0)

    semaphore.enter(never)


@pytest.mark.parametrize("n_gone", [1, 3 * AT_ONCE])
def test_who_leaves_the_line_takes_no_pass_along(n_gone):
    semaphore, ended = FairSemaphore(), CancelToken()
    held = full(semaphore)
    ended.interrupt(2)
    for _ in range(n_gone):
        with pytest.raises(Stopped):
            semaphore.enter(ended.result)
    for one in held:
        one.give_back()

    full(semaphore)


def test_who_has_waited_for_long_goes_on_without_one():
    semaphore = FairSemaphore()
    held = full(semaphore)
    semaphore.enter(too_long).give_back()
    for one in held:
        one.give_back()

    full(semaphore)
    with pytest.raises(AssertionError):
        semaphore.enter(never)


def test_nothing_is_given_back_where_no_request_is_sent():
    sent()


def test_many_threads_never_lose_a_pass():
    semaphore, cancel_token = FairSemaphore(), CancelToken()

    def send_often() -> None:
        for _ in range(50):
            semaphore.enter(cancel_token.result).run(sent)

    threads = [threading.Thread(target=send_often) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    full(semaphore)


def test_threads_are_switched_less_often_while_there_are_services():
    before_s = sys.getswitchinterval()
    with Services():
        with Services():
            assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)

    assert sys.getswitchinterval() == before_s


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [(700, GARBAGE_OBJECTS), (2 * GARBAGE_OBJECTS, 2 * GARBAGE_OBJECTS), (0, 0)],
)
def test_garbage_is_looked_for_less_often_while_there_are_services(before, meanwhile):
    kept = gc.get_threshold()
    gc.set_threshold(before, 10, 10)
    try:
        with Services():
            assert gc.get_threshold() == (meanwhile, 10, 10)
        assert gc.get_threshold() == (before, 10, 10)
    finally:
        gc.set_threshold(*kept)
