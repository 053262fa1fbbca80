"""One JSON document on stdout; words for people on stderr."""

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from types import MappingProxyType

from msgspec import Struct

from socratic_bench.benchmarks import BENCHMARKS, RunConfig, load_benchmark
from socratic_bench.documents import encode
from socratic_bench.documents.document import ErrorDocument, ErrorEntry
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.run import RunDocument
from socratic_bench.errors import (
    ENDINGS,
    BenchError,
    InternalError,
    Stopped,
    UsageError,
    shorten,
)
from socratic_bench.ports.parts import Parts
from socratic_bench.redaction import redact
from socratic_bench.types import Json, clean

from . import process, terminal

# A wait that takes longer is reported.
REPORT_AFTER_S = 5.0
# Control characters, which a terminal would obey, marks that turn the direction of writing, and
# characters that show nothing. Tab and line feed are no part of them: they shape the document.
_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f"
)
_BREAKS = "\x85\u2028\u2029"
DEFAULT_BENCHMARK = RunConfig(model="").benchmark
_CONTROL = re.compile(f"[{_CONTROLS}]")
_BREAK = re.compile(f"[{_BREAKS}]")
_UNSHOWABLE = re.compile(f"[{_CONTROLS}{_BREAKS}]")
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")


def print_document(
    document: Struct | Mapping[str, Json],
    *,
    words: Callable[[], object] = lambda: None,
    flags: Mapping[str, object] = MappingProxyType({}),
    error: BenchError | ErrorEntry | None = None,
    hint: str = process.RUN_AGAIN,
    is_always_printed: bool = False,
) -> int:
    """Write the one document; returns 0, or 4 if it could not be written (people see `hint` then).

    `words` prints what people should read, unless the flag `quiet` is given; the `error` is printed
    in any case. Both come before the document, or after it if stdout is a terminal, where they
    would be scrolled away. A terminal shows the words in place of the document, unless that
    `is_always_printed`. A signal that comes while the document is written ends the process.
    """

    def print_words() -> None:
        if not flags.get("quiet"):
            words()
        if error:
            say_error(error)

    words_come_first = not process.is_stdout_terminal()
    if words_come_first:
        print_words()
    elif terminal.is_live():
        say_live("")  # another run may have a line there
    process.end_at_next_signal()
    are_words_enough = not is_always_printed and _are_words_enough(flags)
    failure = None if are_words_enough else _write(document, flags)
    if failure:
        say(process.unwritten_message(failure, plain(hint)))
    if not words_come_first:
        print_words()
    return process.EXIT_UNWRITTEN if failure else 0


def _are_words_enough(flags: Mapping[str, object]) -> bool:
    is_read_by_person = process.is_stdout_terminal() and terminal.is_terminal()
    return is_read_by_person and not any(map(flags.get, ("json", "pretty", "brief", "quiet")))


def _write(document: Struct | Mapping[str, Json], flags: Mapping[str, object]) -> str | None:
    keys = plain_keys(document) if isinstance(document, Struct) else dict(document)
    body = encode(keys, pretty=bool(flags.get("pretty")))
    return process.write_stdout(escaped(body) + b"\n")


def print_failure(
    error: BenchError,
    flags: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Print the document and error message of a command other than `run` that failed."""
    document = ErrorDocument(end_reason=error.end_reason, error=ErrorEntry.of(error))
    print_document(document, error=error, flags=flags)


def print_failed_run(
    error: BenchError,
    config: RunConfig | None = None,
    flags: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Print the document and error message of a run that could not start."""
    name = config.benchmark if config else DEFAULT_BENCHMARK
    document = RunDocument.unstarted(error, name, _parts(name), config)
    printed = document.brief if flags.get("brief") else document.printed
    print_document(printed, error=error, flags=flags)


def print_unhandled(
    raised: process.SignalledError | Exception, command: str, words: Sequence[str]
) -> int:
    """Print the document of an error or signal that no command has handled; the exit code."""
    flags = {word.removeprefix("--"): True for word in words} | {"quiet": "-q" in words}
    debug = "debug" in flags
    if isinstance(raised, process.SignalledError):
        error: BenchError = Stopped.by_signal(
            raised.signal_number,
            "Interrupted by {signal} before anything was started.",
            hint="No model was called and nothing was written.",
        )
        debug = False
    else:
        error = raised if isinstance(raised, BenchError) else InternalError.of(raised)
    if isinstance(error, InternalError):
        # Without the table of settings, which may be what cannot be imported.
        error.call_settings("--{}".format)
    if debug:
        print_traceback(raised)
    if command == "run":
        print_failed_run(error, flags=flags)
    else:
        print_failure(error, flags)
    return error.exit_code


def refuse_to_start() -> int:
    """Report that stdout is closed, so that no document could be printed; the exit code."""
    say("error: stdout is closed, so the document cannot be written; no model was called.")
    say("  Redirect stdout to a file or a pipe, such as > run.json.")
    return ENDINGS["usage"].exit_code


def escaped(document: bytes) -> bytes:
    """The same document, with escapes for what a terminal would obey or not show."""
    if document.isascii() and b"\x7f" not in document:
        return document
    return _UNSHOWABLE.sub(_as_escape, document.decode()).encode()


def _as_escape(character: re.Match[str]) -> str:
    units = character[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


def say(text: str) -> None:
    """Print a line for people; it replaces the live line of any run on the same terminal.

    What models and users wrote must have gone through `plain`.
    """
    clear = terminal.CLEAR_LINE if terminal.is_live() else ""
    _write_words(f"{clear}{terminal.folded(redact(text))}\n")


def say_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    left_out: Sequence[str] = terminal.LEFT_OUT,
    least_name: int = terminal.LEAST_NAME,
) -> None:
    """Print a table; see `terminal.table`. Cells may have what models and users wrote."""
    plain_rows = [[plain(cell) for cell in row] for row in rows]
    plain_heads = [plain(head) for head in heads]
    for line in terminal.table(plain_heads, plain_rows, None, left_out, least_name):
        say(line.rstrip())


def say_question(text: str) -> None:
    """Print a question, whose answer is typed on the same line."""
    _write_words(text)


def say_live(text: str) -> None:
    """Print a line that the next one replaces; only for a live terminal.

    It is written as a whole: what other runs write comes before or after it.
    """
    _write_words(terminal.CLEAR_LINE + redact(text))


def _write_words(text: str) -> None:
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        # stderr is closed; only the document counts. The interpreter would flush once more at exit,
        # and change the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    except ValueError:
        # The stream is closed on this side.
        return


def read_stdin(bound: int, what: str, *, quiet: bool) -> bytes:
    """Read up to `bound` bytes of standard input; people see that `what` is waited for."""
    if sys.stdin is None:
        return b""
    if sys.stdin.isatty():
        say(f"{what}, from this terminal: type, and end with Ctrl-D on a line of its own.")
        return sys.stdin.buffer.read(bound)
    with waiting_for(f"{what[:1].lower()}{what[1:]} on standard input", quiet=quiet):
        return sys.stdin.buffer.read(bound)


@contextmanager
def waiting_for(what: str, *, quiet: bool) -> Iterator[None]:
    """Report that `what` is waited for if the block takes longer than `REPORT_AFTER_S`."""
    timer = Timer(REPORT_AFTER_S, say, (f"waiting for {what} ({REPORT_AFTER_S:g} s so far)",))
    timer.daemon = True
    if not quiet:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def plain(text: str) -> str:
    """One line of text that is safe in a terminal: no escapes, control characters or line breaks.

    Secrets are masked here, since one that a caller has cut in half would not be found.
    """
    return " ".join(_without_controls(redact(text).replace("\n", " ").replace("\t", " ")).split())


def say_error(error: BenchError | ErrorEntry) -> None:
    """Print what happened, why, and what to do next."""
    if isinstance(error, UsageError) and len(error.problems) > 1:
        say(f"error: {len(error.problems)} problems; no model was called:")
        for problem in shorten(error.problems):
            say(f"  - {plain(problem)}")
    else:
        say(f"error: {plain(error.message)}")
    if error.hint:
        say(f"  {plain(error.hint)}")


def print_traceback(error: BaseException) -> None:
    """Print the traceback of an error, for `--debug`."""
    for line in redact("".join(traceback.format_exception(error))).split("\n")[:-1]:
        say(_without_controls(line))


def _without_controls(text: str) -> str:
    return _CONTROL.sub("", _ESCAPES.sub("", _BREAK.sub(" ", clean(text))))


def _parts(benchmark: str) -> Parts:
    """The benchmark's keys; those of the default one if it is unknown."""
    return load_benchmark(benchmark if benchmark in BENCHMARKS else DEFAULT_BENCHMARK).parts
