"""The flags of traces: what they ask for, and what is said of it once everything is done."""

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .output import plain, say

if TYPE_CHECKING:  # needs the extra otel
    from socratic_bench.tracing.exporting import Traces

NO_EXTRA = 'Traces need OpenTelemetry: pip install "socratic-runner[otel]".'
GALILEO = ("enable-galileo", "galileo-project", "galileo-log-stream")
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def trace_problems(flags: Mapping[str, object]) -> Iterator[str]:
    """Mistakes in the flags of traces."""
    file, is_sent = flags.get("trace"), bool(flags.get("otel") or flags.get("enable-galileo"))
    if (file or is_sent) and not _is_installed():
        yield NO_EXTRA
    if isinstance(file, str) and (Path(file).is_dir() or not Path(file).absolute().parent.is_dir()):
        yield f"--trace {file} names no file in an existing folder."
    if flags.get("otel") and flags.get("enable-galileo"):
        yield "--otel and --enable-galileo are two places for traces: keep one."
    if flags.get("enable-galileo") and not os.environ.get("GALILEO_API_KEY"):
        yield "--enable-galileo needs a key: set GALILEO_API_KEY."
    if any(map(flags.get, GALILEO[1:])) and not flags.get("enable-galileo"):
        yield "--galileo-project and --galileo-log-stream need --enable-galileo."
    if flags.get("otel-content") and not (file or is_sent):
        yield "--otel-content needs --otel, --enable-galileo or --trace FILE."


def open_traces(flags: Mapping[str, object]) -> "Traces | None":
    """What traces the runs of the command; `None` if no flag asks for it."""
    file, galileo = flags.get("trace"), None
    if flags.get("enable-galileo"):
        galileo = _galileo(flags)
    if not (file or flags.get("otel") or galileo):
        return None
    from socratic_bench.tracing.exporting import TraceRequest, Traces

    return Traces(
        TraceRequest(
            is_sent=bool(flags.get("otel")),
            file=file if isinstance(file, str) else None,
            has_content=bool(flags.get("otel-content")),
            galileo=galileo,
        )
    )


def close_traces(traces: "Traces | None", flags: Mapping[str, object]) -> None:
    """Send the rest, and say what was lost and where the traces are."""
    if traces is None:
        return
    for sentence in traces.close():
        say(f"note: {plain(sentence)}")
    if flags.get("enable-galileo"):
        from socratic_bench.tracing.exporting import galileo_links

        for line in galileo_links(_galileo(flags)):
            say(plain(line))


def _galileo(flags: Mapping[str, object]) -> dict[str, str]:
    """The variables, of which flags take the place."""
    variables = {n: value for n, value in os.environ.items() if n.startswith("GALILEO_")}
    for flag in GALILEO[1:]:
        if isinstance(value := flags.get(flag), str):
            variables[flag.upper().replace("-", "_")] = value
    return variables


def _is_installed() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.json.file") is not None
    except ModuleNotFoundError:
        return False
