"""What an earlier process of a run has left: its document, or its journal in a store."""

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct

from socratic_bench.errors import UsageError, Words
from socratic_bench.settings import NOTHING_TO_RESUME

from .arguments import Flags
from .output import read_stdin, waiting_for

if TYPE_CHECKING:
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.ports.store import Entry
    from socratic_bench.runs import CancelToken


class Earlier(Struct, frozen=True, kw_only=True):
    """How the run was asked for when it began, and where what it did is kept."""

    config: "RunConfig"
    run_id: str | None = None
    entries: "Sequence[Entry]" = ()


def find_earlier(
    flags: Flags,
    config: "RunConfig",
    problems: Sequence[Words],
    run_id: str | None,
    cancel_token: "CancelToken",
) -> Earlier | None:
    """The earlier run that the flags name, from a document or a store, if any.

    Raises `UsageError` if it is not there, and what ends the run while a store is asked.
    """
    from socratic_bench.runs import document_entries, earlier_config, run_cancellable, stored_config

    from .run_in_thread import run_in_thread

    path, quiet = flags.get("resume-from"), bool(flags.get("quiet"))
    if isinstance(path, str):
        if config.resume:
            raise UsageError(["--resume and --resume-from are both given: keep one."])
        document = run_in_thread(
            lambda: run_cancellable(lambda: _document(path, quiet=quiet), cancel_token)
        )
        entries = document_entries(document)
        return Earlier(config=earlier_config(entries), entries=entries)
    if run_id is None:
        return None
    if not (config.output_dir or config.s3_bucket):
        problems = [*problems, NOTHING_TO_RESUME]
    if problems:
        raise UsageError(problems)
    asked = run_id
    with waiting_for("the store of the run", quiet=quiet):
        stored = run_in_thread(lambda: stored_config(config, asked, cancel_token))
    return Earlier(config=stored, run_id=run_id)


def _document(path: str, *, quiet: bool) -> object:
    name = "standard input" if path == "-" else path
    try:
        found: object = orjson.loads(_content(path, quiet=quiet).decode("utf-8-sig"))
    except OSError as error:
        raise UsageError([f"{name} cannot be read: {error.strerror}."]) from error
    except UnicodeDecodeError as error:
        raise UsageError([f"{name} is no UTF-8 text (byte {error.start + 1})."]) from error
    except orjson.JSONDecodeError as error:  # NaN and half of a character, too
        raise UsageError(
            [f"{name} is no whole JSON document: {error}."],
            hint="Give what a run printed on stdout.",
        ) from error
    return found


def _content(path: str, *, quiet: bool) -> bytes:
    from socratic_bench.settings import MAX_STORED_BYTES, read_bounded

    if path != "-":
        return read_bounded(path, bound=MAX_STORED_BYTES)
    content = read_stdin(MAX_STORED_BYTES + 1, "The document of a run", quiet=quiet)
    if len(content) > MAX_STORED_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MAX_STORED_BYTES} bytes")
    return content
