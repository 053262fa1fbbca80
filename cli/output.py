"""One JSON document on stdout; words for people on stderr."""

import os
import re
import sys
import traceback
from collections.abc import Mapping

from socratic_bench.config import RunConfig
from socratic_bench.documents import encode
from socratic_bench.documents.run import (
    SCHEMA_VERSION,
    brief_document,
    describe,
    unstarted_document,
)
from socratic_bench.errors import BenchError, UsageError
from socratic_bench.types import Json, clean

# Control characters, which a terminal would obey, and marks that turn the direction of writing.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")


def print_document(document: Mapping[str, Json], *, pretty: bool = False) -> bool:
    """Write the one document; `False` if nobody was there to read it."""
    try:
        sys.stdout.buffer.write(encode(dict(document), pretty=pretty) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter would try to flush once more on its way out, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        say("socratic-runner: stdout was closed before the document was written.")
        return False
    return True


def say(text: str, *, end: str = "\n") -> None:
    """A line for people. What models and users wrote must have gone through `plain`."""
    try:
        sys.stderr.write(text + end)
        sys.stderr.flush()
    except (BrokenPipeError, ValueError):
        # Nobody listens; the document is what counts.
        return


def plain(text: str) -> str:
    """One line of text that a terminal only shows: no escapes, no controls, no line breaks."""
    without = _CONTROLS.sub("", _ESCAPES.sub("", clean(text).replace("\n", " ").replace("\t", " ")))
    return " ".join(without.split())


def say_error(error: BenchError) -> None:
    """What happened, why, and what to do next."""
    if isinstance(error, UsageError) and len(error.problems) > 1:
        say(f"socratic-runner: {len(error.problems)} mistakes, nothing was called:")
        for problem in error.problems:
            say(f"  - {plain(problem)}")
    else:
        say(f"socratic-runner: {plain(error.message)}")
    if error.hint:
        say(f"  {plain(error.hint)}")


def print_traceback(error: BaseException) -> None:
    """For `--debug` only."""
    say("".join(traceback.format_exception(error)), end="")


def print_failure(error: BenchError) -> None:
    """The document and the words of a command other than `run` that came to nothing."""
    say_error(error)
    print_document(
        {
            "kind": "error",
            "schema_version": SCHEMA_VERSION,
            "end_reason": error.end_reason,
            "error": describe(error),
        }
    )


def print_failed_run(
    error: BenchError, config: RunConfig | None = None, *, pretty: bool = False, brief: bool = False
) -> None:
    """The document and the words of a run that never came to be."""
    say_error(error)
    document = unstarted_document(
        error,
        model=(config and config.model) or None,
        prompt=(config and config.prompt) or None,
        scenario=(config and config.scenario) or None,
    )
    print_document(brief_document(document) if brief else document, pretty=pretty)
