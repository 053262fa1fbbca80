"""Where traces go: an OTLP endpoint, named by the ordinary variables, Galileo's, or a file."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from msgspec import Struct
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from socratic_bench.redaction import learn
from socratic_bench.runs.context import Listener
from socratic_bench.runs.prepare import Plan
from socratic_bench.tracing.spans import SCOPE, RunIds, RunTrace
from socratic_bench.version import VERSION

LAST_EXPORT_S = 5.0  # how long the end of the command waits for what was not sent yet
GALILEO_CONSOLE = "https://app.galileo.ai"
LOGS_SUFFIX = ".logs"


class TraceRequest(Struct, frozen=True, kw_only=True):
    """What is asked for; `galileo` are its variables, if traces go there."""

    is_sent: bool = False
    file: str | None = None
    has_content: bool = False
    galileo: Mapping[str, str] | None = None


class Traces:
    """The traces of all runs of a command. Nothing of it blocks or ends a run: what cannot be sent
    is counted, and told at the end.
    """

    def __init__(self, request: TraceRequest) -> None:
        self._has_content = request.has_content or request.galileo is not None
        self._failures = Failures()
        named = OTELResourceDetector().detect().attributes  # by the ordinary variables
        self._resource = Resource.create(
            {"service.name": SCOPE, "service.version": VERSION, **named}
        )
        spans: list[Any] = []
        logs: list[Any] = []
        if request.galileo is not None:
            spans.append(_galileo_exporter(request.galileo))
        elif request.is_sent:
            spans.append(OTLPSpanExporter())
            logs.append(OTLPLogExporter())
        if request.file:
            path = Path(request.file)
            spans.append(FileSpanExporter(path))
            logs.append(FileLogExporter(path.with_name(f"{path.stem}{LOGS_SUFFIX}{path.suffix}")))
        watched = self._failures.watch
        self._span_processors = [BatchSpanProcessor(watched(exporter)) for exporter in spans]
        self._log_processors = [BatchLogRecordProcessor(watched(exporter)) for exporter in logs]
        provider = LoggerProvider(self._resource, shutdown_on_exit=False)
        for processor in self._log_processors:
            provider.add_log_record_processor(processor)
        self._logger = provider.get_logger(SCOPE, VERSION)

    def traced(self, plan: Plan, listener: Listener) -> Listener:
        """The listener of a run, which traces it, too."""
        return RunTrace(
            plan,
            listener,
            provider_of=self._provider,
            logger=self._logger,
            has_content=self._has_content,
        )

    def close(self) -> list[str]:
        """Send the rest, for a bounded time; returns what people should know."""
        processors: list[Any] = [*self._span_processors, *self._log_processors]
        threads = [Thread(target=processor.shutdown, daemon=True) for processor in processors]
        for thread in threads:
            thread.start()
        ends_at_s = time.monotonic() + LAST_EXPORT_S
        for thread in threads:
            thread.join(max(0.0, ends_at_s - time.monotonic()))
        is_late = any(thread.is_alive() for thread in threads)
        late = f"Traces were not all sent within {LAST_EXPORT_S:g} s after the last run."
        return [*([late] if is_late else []), *self._failures.sentences()]

    def _provider(self, ids: RunIds) -> TracerProvider:
        provider = TracerProvider(resource=self._resource, id_generator=ids, shutdown_on_exit=False)
        for processor in self._span_processors:
            provider.add_span_processor(processor)
        return provider


class Failures(logging.Handler):
    """Counts what exporters could not deliver, and keeps the last reason that was logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lock = Lock()
        self._counts: dict[str, int] = {}
        self._reason = ""
        logger = logging.getLogger("opentelemetry")
        logger.addHandler(self)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            self._reason = record.getMessage()

    def watch(self, exporter: Any) -> Any:  # noqa: ANN401 -- of spans or of log records
        """The exporter, of which each failure is counted."""
        export: Callable[[Sequence[Any]], Any] = exporter.export

        def export_and_count(batch: Sequence[Any]) -> Any:  # noqa: ANN401 -- as it returns it
            result = None
            with suppress(Exception):  # else the exporting thread would log a traceback
                result = export(batch)
            if result is None or result.name != "SUCCESS":
                with self._lock:
                    name = type(exporter).__name__
                    self._counts[name] = self._counts.get(name, 0) + len(batch)
            return result

        exporter.export = export_and_count
        return exporter

    def sentences(self) -> Iterator[str]:
        reason = f": {self._reason}" if self._reason else ""
        with self._lock:
            n_lost = sum(self._counts.values())
        if n_lost:
            yield (
                f"{n_lost} spans and verdicts could not be sent as traces{reason.rstrip('.')}. "
                "The runs are complete without them."
            )
        elif reason:
            yield f"Traces may be incomplete{reason}"


def _galileo_exporter(variables: Mapping[str, str]) -> OTLPSpanExporter:
    """See https://docs.galileo.ai/sdk-api/logging/distributed-tracing-otel: no log records."""
    key = variables["GALILEO_API_KEY"]
    learn([key])
    headers = {
        "Galileo-API-Key": key,
        "project": variables.get("GALILEO_PROJECT", ""),
        "logstream": variables.get("GALILEO_LOG_STREAM", "default"),
    }
    return OTLPSpanExporter(endpoint=galileo_endpoint(variables), headers=headers)


def galileo_endpoint(variables: Mapping[str, str]) -> str:
    """The endpoint of a console: `api` in place of `console` or `app`."""
    console = galileo_console(variables)
    base = variables.get("GALILEO_API_ENDPOINT") or (
        console.replace("://console", "://api", 1).replace("://app.", "://api.", 1)
    )
    return base if base.endswith("/otel/traces") else f"{base.rstrip('/')}/otel/traces"


def galileo_links(variables: Mapping[str, str]) -> Iterator[str]:
    """Where the traces are seen; the ids of project and log stream are known by variables only."""
    console = galileo_console(variables)
    project, stream = (variables.get(f"GALILEO_{name}_ID") for name in ("PROJECT", "LOG_STREAM"))
    names = (variables.get("GALILEO_PROJECT"), variables.get("GALILEO_LOG_STREAM", "default"))
    if project:
        yield f"Galileo project: {console}/project/{project}"
    if project and stream:
        yield f"Galileo log stream: {console}/project/{project}/log-streams/{stream}"
    if not (project and stream):
        yield f"Galileo: {console}, project {names[0] or 'of your key'}, log stream {names[1]}"


def galileo_console(variables: Mapping[str, str]) -> str:
    return (variables.get("GALILEO_CONSOLE_URL") or GALILEO_CONSOLE).rstrip("/")
