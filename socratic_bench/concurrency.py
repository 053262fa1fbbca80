"""What threads of a process need: threads that can be left behind, limits, and safe decoding."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cache
from traceback import clear_frames
from typing import Any, Generic, TypeVar, cast, overload

import msgspec
import msgspec.json
from msgspec.inspect import type_info  # noqa: TID251 -- `described` makes it safe for threads

Key = TypeVar("Key")
Result = TypeVar("Result")
T = TypeVar("T")

_TOML_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a table",
}
_decoding = threading.Lock()
_decoded_types: set[object] = set()


def start_thread(work: Callable[[], Result]) -> "Future[Result]":
    """Do the work in a daemon thread of its own; the process ends without waiting for it."""
    future: Future[Result] = Future()
    threading.Thread(target=_fulfil, args=(future, work), name="worker", daemon=True).start()
    return future


class Workers:
    """Does at most `n_at_once` pieces of work at once, begun in the order of submission.

    Each worker is a daemon thread, which ends when nothing waits: work that hangs holds up neither
    the process's end nor the other workers. Safe to use from several threads.
    """

    def __init__(self, n_at_once: int) -> None:
        self._n_at_once = n_at_once
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._n_busy = 0
        self._is_closed = False

    def submit(self, work: Callable[[], Result]) -> "Future[Result]":
        """Do the work once a worker is free. After `close` the future is cancelled at once."""
        future: Future[Result] = Future()
        with self._lock:
            if self._is_closed:
                future.cancel()
                return future
            self._waiting.append((future, work))
            if self._n_busy == self._n_at_once:
                return future
            self._n_busy += 1
        start_thread(self._work_off)
        return future

    def close(self) -> None:
        """Begin nothing more, and cancel what waits; work that has begun goes on."""
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = self._waiting, deque()
        for future, _ in waiting:
            future.cancel()

    def _work_off(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._n_busy -= 1
                    return
                future, work = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                _fulfil(future, work)
            del future, work  # a worker that waits for the lock holds on to no result


class ConnectionLimit:
    """At most `n_connections` holders at once, served first in, first out. Safe to use from several
    threads.
    """

    def __init__(self, n_connections: int) -> None:
        self._lock = threading.Lock()
        self._n_free = n_connections
        self._waiting: deque[Future[None]] = deque()

    @contextmanager
    def hold(self, wait: "Callable[[Future[None]], object]") -> Iterator[None]:
        """Hold a connection until the block ends. `wait` waits until the future is done; what it
        raises, such as the end of the run, leaves the queue.
        """
        place: Future[None] = Future()
        with self._lock:
            if self._n_free:
                self._n_free -= 1
                place.set_result(None)
            else:
                self._waiting.append(place)
        try:
            if not place.done():
                wait(place)
            yield
        finally:
            self._leave(place)

    def _leave(self, place: "Future[None]") -> None:
        with self._lock:
            if not place.done():
                self._waiting.remove(place)
            elif self._waiting:
                self._waiting.popleft().set_result(None)
            else:
                self._n_free += 1


@overload
def convert(value: object, kind: type[T]) -> T: ...
@overload
def convert(value: object, kind: object) -> Any: ...  # noqa: ANN401 -- a union, or the like
def convert(value: object, kind: Any) -> Any:
    """See `msgspec.convert`; safe in several threads. Raises `msgspec.ValidationError`."""
    return _first_time_alone(msgspec.convert, value, kind)  # noqa: TID251 -- safe here


def decode(body: bytes, kind: type[T]) -> T:
    """See `msgspec.json.decode`; safe in several threads. Raises `ValueError`, of which
    `msgspec.DecodeError` is one.
    """
    return cast("T", _first_time_alone(msgspec.json.decode, body, kind))


def described(kind: object) -> Any:  # noqa: ANN401 -- one of msgspec's descriptions
    """See `msgspec.inspect.type_info`; safe in several threads."""
    with _decoding:
        return _type_info(kind)


_type_info = cache(type_info)


def kind_of(value: object) -> str:
    """What a value from a TOML file is, in words."""
    return _TOML_KINDS.get(type(value), "a date or time")


def _first_time_alone(read: Callable[..., Any], value: object, kind: object) -> Any:  # noqa: ANN401
    """Read a value of a type that no other thread reads for the first time meanwhile.

    msgspec analyses a type when it first reads one of its values, and stores the analysis with the
    type before it is complete: a thread that uses it too early crashes the process.
    """
    try:
        is_known = kind in _decoded_types
    except TypeError:  # annotations of a type may have no hash
        is_known = False
    if is_known:
        return read(value, type=kind)
    with _decoding:
        try:
            return read(value, type=kind)
        finally:
            with suppress(TypeError):
                _decoded_types.add(kind)


def _fulfil(future: "Future[Any]", work: Callable[[], Any]) -> None:
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 -- raised again where the future is waited for
        cause: BaseException | None = error
        while cause is not None:  # errors are kept; the large answers in their frames need not be
            clear_frames(cause.__traceback__)
            cause = cause.__cause__ or cause.__context__
        future.set_exception(error)
    else:
        future.set_result(result)


class SharedResults(Generic[Key, Result]):
    """Results that threads share: the first to ask for a key makes its result, others wait for it.
    They get its error, too, which is not kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: dict[Key, Future[Result]] = {}

    def get(self, key: Key, make: Callable[[], Result]) -> tuple[Result, bool]:
        """The result, and whether it was made now."""
        with self._lock:
            result = self._results.get(key)
            if is_first := result is None or (result.done() and result.exception() is not None):
                result = self._results[key] = Future()
        if is_first:
            try:
                result.set_result(make())
            except BaseException as error:  # others wait for it
                result.set_exception(error)
                raise
        return result.result(), is_first
