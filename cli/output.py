"""One JSON document on stdout; words for people on stderr."""

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

from msgspec import Struct

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.errors import BenchError, UsageError, shorten
from socratic_bench.redaction import redact
from socratic_bench.types import Json, clean

from . import signals, stdout, terminal

if TYPE_CHECKING:
    from socratic_bench.documents.document import ErrorEntry
    from socratic_bench.ports.parts import Parts

# A wait that is longer is told of.
TOLD_AFTER_S = 5.0
# Control characters, which a terminal would obey, marks that turn the direction of writing, and
# characters that show nothing. Tab and line feed are no part of them: they shape the document.
_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f"
)
_BREAKS = "\x85\u2028\u2029"
DEFAULT_BENCHMARK = RunConfig(model="").benchmark
RUN_AGAIN = "Run the command again with a stdout that takes it, such as > file.json."
_CONTROL = re.compile(f"[{_CONTROLS}]")
_BREAK = re.compile(f"[{_BREAKS}]")
_UNSHOWABLE = re.compile(f"[{_CONTROLS}{_BREAKS}]")
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")


def print_document(
    document: Struct | Mapping[str, Json],
    *,
    words: Callable[[], object] = lambda: None,
    quiet: bool = False,
    error: "BenchError | ErrorEntry | None" = None,
    pretty: bool = False,
    hint: str = RUN_AGAIN,
) -> int:
    """Write the one document; the exit code: 0, or 4 if it could not be written, with `hint` for
    people.

    `words` says what people should read unless they want `quiet`, and the `error` is told in any
    case: before it, or after it on a terminal, where they would be scrolled away. A signal while it
    is written ends the process.
    """

    def tell() -> None:
        if not quiet:
            words()
        if error:
            say_error(error)

    is_before = not stdout.is_terminal()
    if is_before:
        tell()
    elif terminal.is_live():
        say_live("")  # another run may have a line there
    signals.end_at_next_signal()
    keys = plain_keys(document) if isinstance(document, Struct) else dict(document)
    why = stdout.write(escaped(encode(keys, pretty=pretty)) + b"\n")
    if why:
        say_unwritten(why, hint)
    if not is_before:
        tell()
    return stdout.EXIT_UNWRITTEN if why else 0


def say_unwritten(why: str, hint: str = RUN_AGAIN) -> None:
    say(f"socratic-runner: stdout {why} before the document was written.\n  {plain(hint)}")


def escaped(document: bytes) -> bytes:
    """The same document, with escapes for what a terminal would obey or not show."""
    if document.isascii() and b"\x7f" not in document:
        return document
    return _UNSHOWABLE.sub(_as_escape, document.decode()).encode()


def _as_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


def say(text: str) -> None:
    """A line for people, in place of the live line that this run, or another one on the same
    terminal, has there. What models and users wrote must have gone through `plain`.
    """
    clear = terminal.CLEAR_LINE if terminal.is_live() else ""
    _write(f"{clear}{terminal.folded(redact(text))}\n")


def say_question(text: str) -> None:
    """A question, whose answer is typed on the same line."""
    _write(text)


def say_live(text: str) -> None:
    """A line that the next one replaces; only for a terminal that is live. Both are written whole:
    what other runs write comes before or after it.
    """
    _write(terminal.CLEAR_LINE + redact(text))


def _write(text: str) -> None:
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
    """What stands on standard input; people are told that it is waited for."""
    if sys.stdin is None:
        return b""
    if sys.stdin.isatty():
        say(f"{what}, from this terminal: type, and end with Ctrl-D on a line of its own.")
        return sys.stdin.buffer.read(bound)
    with waiting_for(f"{what[:1].lower()}{what[1:]} on standard input", quiet=quiet):
        return sys.stdin.buffer.read(bound)


@contextmanager
def waiting_for(what: str, *, quiet: bool) -> Iterator[None]:
    """Around something that may take long before there is a run: then people are told of it."""
    timer = Timer(TOLD_AFTER_S, say, (f"waiting for {what}, {TOLD_AFTER_S:g} s so far",))
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
    return " ".join(_shown(redact(text).replace("\n", " ").replace("\t", " ")).split())


def say_error(error: "BenchError | ErrorEntry", tag: str = "") -> None:
    """What happened, why, and what to do next; `tag` says of which run."""
    if isinstance(error, UsageError) and len(error.problems) > 1:
        say(f"{tag}socratic-runner: {len(error.problems)} mistakes, nothing was called:")
        for problem in shorten(error.problems):
            say(f"  - {plain(problem)}")
    else:
        say(f"{tag}socratic-runner: {plain(error.message)}")
    if error.hint:
        say(f"{tag}  {plain(error.hint)}")


def print_traceback(error: BaseException) -> None:
    """For `--debug` only."""
    for line in redact("".join(traceback.format_exception(error))).split("\n")[:-1]:
        say(_shown(line))


def _shown(text: str) -> str:
    return _CONTROL.sub("", _ESCAPES.sub("", _BREAK.sub(" ", clean(text))))


def print_failure(error: BenchError) -> None:
    """The document and the words of a command other than `run` that came to nothing."""
    from socratic_bench.documents.document import ErrorDocument, ErrorEntry

    document = ErrorDocument(end_reason=error.end_reason, error=ErrorEntry.of(error))
    print_document(document, error=error)


def print_failed_run(
    error: BenchError, config: RunConfig | None = None, *, pretty: bool = False, brief: bool = False
) -> None:
    """The document and the words of a run that never came to be."""
    from socratic_bench.documents.run import RunDocument

    name = config.benchmark if config else DEFAULT_BENCHMARK
    document = RunDocument.unstarted(error, name, _parts(name), config)
    printed = document.brief if brief else document.printed
    print_document(printed, error=error, pretty=pretty)


def _parts(benchmark: str) -> "Parts":
    """The benchmark's keys; those of the default one if it is unknown."""
    from socratic_bench.benchmarks import BENCHMARKS, load_benchmark

    return load_benchmark(benchmark if benchmark in BENCHMARKS else DEFAULT_BENCHMARK).parts
