"""A run as a trace: a span per turn, a child per call and per attempt; verdicts as log records."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)
from ulid import ULID

from socratic_bench.documents.cost import Billing, role_usd
from socratic_bench.models.events import (
    AttemptBegan,
    CallAnswered,
    CallEvent,
    CallFailed,
)
from socratic_bench.ports.benchmark import Sample
from socratic_bench.redaction import redact
from socratic_bench.runs.context import Listener, utc_now
from socratic_bench.runs.prepare import Plan
from socratic_bench.settings import BEDROCK, CoreConfig
from socratic_bench.settings.endpoints import split_id
from socratic_bench.turns import Turn, Unscored, Verdict
from socratic_bench.types import JUDGE, Attempt, CallKey, Completion, Message, Request, Text
from socratic_bench.version import VERSION

SCOPE = "socratic-runner"
EVALUATION = "gen_ai.evaluation.result"
# Names of endpoints in the registry of the conventions; another endpoint goes by its own name.
PROVIDERS = {
    BEDROCK: "aws.bedrock",
    "openai": "openai",
    "gemini": "gcp.gemini",
    "azure": "azure.ai.openai",
}
OVERALL = "overall_score"
Attributes = Mapping[str, Any]


class RunIds(RandomIdGenerator):
    """Random ids, but those of a run's first trace, which follow from the run's id, so that a later
    process can link to them.
    """

    def __init__(self, run_id: str, *, is_first: bool) -> None:
        trace_id, span_id = first_ids(run_id)
        self._trace_ids, self._span_ids = ([trace_id], [span_id]) if is_first else ([], [])

    def generate_trace_id(self) -> int:
        return self._trace_ids.pop() if self._trace_ids else super().generate_trace_id()

    def generate_span_id(self) -> int:
        return self._span_ids.pop() if self._span_ids else super().generate_span_id()


def first_ids(run_id: str) -> tuple[int, int]:
    """The ids of the first trace of a run and of its root span."""
    span_id = int.from_bytes(sha256(run_id.encode()).digest()[:8])
    return int(ULID.from_str(run_id.removeprefix("run-"))), span_id


def _first_context(run_id: str) -> SpanContext:
    return SpanContext(*first_ids(run_id), is_remote=True, trace_flags=TraceFlags.get_default())


class RunTrace(Listener):
    """Makes the spans of one run as `inner` hears of it. Content is only recorded if asked for."""

    def __init__(
        self,
        plan: Plan,
        inner: Listener,
        *,
        provider_of: Callable[[RunIds], TracerProvider],
        logger: Logger,
        has_content: bool,
    ) -> None:
        self._plan = plan
        self._inner = inner
        self._provider_of = provider_of
        self._logger = logger
        self._has_content = has_content
        self._lock = threading.RLock()
        self._is_resumed = False
        self._tracer: Tracer | None = None
        self._root: Span | None = None
        self._run_id = ""
        self._turns: dict[int, Span] = {}
        self._tested: dict[int, tuple[SpanContext, str | None]] = {}
        self._verdict_calls: dict[int, list[tuple[CallKey, Completion]]] = {}
        self._requests: dict[CallKey, Request] = {}
        self._billing = Billing.of(plan.config, plan.benchmark.parts, plan.models, plan.prices)

    def on_resume(self) -> None:
        self._is_resumed = True
        self._inner.on_resume()

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None:
        with self._lock:
            self._run_id = run_id
            is_first = not self._is_resumed
            self._tracer = self._provider_of(RunIds(run_id, is_first=is_first)).get_tracer(
                SCOPE, VERSION
            )
            self._root = self._tracer.start_span(
                f"invoke_workflow {config.benchmark}",
                Context(),
                attributes=_without_null(
                    {
                        "gen_ai.operation.name": "invoke_workflow",
                        "gen_ai.workflow.name": config.benchmark,
                        "gen_ai.conversation.id": run_id,
                        "gen_ai.provider.name": provider_name(config.model),
                        "gen_ai.request.model": config.model,
                        "gen_ai.request.seed": config.seed,
                        "socratic.sample": opening.id,
                        "socratic.is_resumed": self._is_resumed,
                    }
                ),
                links=[] if is_first else [Link(_first_context(run_id))],
            )
        self._inner.on_start(run_id, config, opening)

    def on_call(self, event: CallEvent) -> None:
        with self._lock:
            self._take(event)
        self._inner.on_call(event)

    def on_wait(self, what: str) -> None:
        self._inner.on_wait(what)

    def on_turn(self, turn: Turn) -> None:
        self._inner.on_turn(turn)

    def on_judged(self, turn: Turn) -> None:
        with self._lock:
            self._add_verdict(turn)
            if span := self._turns.pop(turn.index, None):
                span.end()
        self._inner.on_judged(turn)

    def on_notice(self, text: str) -> None:
        self._inner.on_notice(text)

    def on_end(self) -> None:
        with self._lock:
            for index in [*self._verdict_calls]:  # of turns whose verdict never came
                self._add_judge_calls(index, None)
            for span in self._turns.values():
                span.end()
            self._turns.clear()
            if self._root:
                self._root.end()
                self._root = None
        self._inner.on_end()

    def _take(self, event: CallEvent) -> None:
        key = event.key
        match event:
            case AttemptBegan() if self._has_content:
                self._requests[key] = event.request
            case CallAnswered() if key.role == JUDGE and not key.is_closing:
                self._verdict_calls.setdefault(key.index, []).append((key, event.completion))
            case CallAnswered():
                span = self._add_call(key, event.completion, {})
                if span and key.role == self._plan.benchmark.cast.tested:
                    request_id = event.completion.request_id
                    self._tested[key.index] = span.get_span_context(), request_id
            case CallFailed():
                attempts = getattr(event.error, "attempts", ())
                self._add_failure(key, event.model_id, attempts, event.error.code)
            case _:
                pass  # replayed calls are in an earlier trace

    def _turn_span(self, index: int, started_at: datetime) -> Span | None:
        if self._tracer is None or self._root is None:
            return None
        if index not in self._turns:
            self._turns[index] = self._tracer.start_span(
                f"turn {index}",
                set_span_in_context(self._root, Context()),
                attributes={"gen_ai.conversation.id": self._run_id, "socratic.turn": index},
                start_time=_nanoseconds(started_at),
            )
        return self._turns[index]

    def _add_call(self, key: CallKey, call: Completion, attributes: Attributes) -> Span | None:
        model = call.model_id or self._plan.models.get(key.role) or ""
        usd = role_usd(self._billing, key.role, [call])
        usage = call.usage
        finished = {
            **self._request_attributes(key, model),
            "gen_ai.request.temperature": call.temperature,
            "gen_ai.request.stream": call.streamed,
            "gen_ai.response.id": call.request_id,
            "gen_ai.response.model": call.served_model,
            "gen_ai.response.finish_reasons": [call.stop_reason],
            "gen_ai.response.time_to_first_chunk": call.ttft_ms and call.ttft_ms / 1000,
            "gen_ai.usage.input_tokens": usage and usage.input_tokens,
            "gen_ai.usage.output_tokens": usage and usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage and usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage and usage.cache_write_tokens,
            "socratic.cost_usd": usd,
            "socratic.retries": len(call.attempts) - 1,
            **attributes,
        }
        if self._has_content:
            finished["gen_ai.output.messages"] = _messages([call.message], call.stop_reason)
        return self._add_span(key, model, finished, call.attempts, call.finished_at)

    def _add_failure(
        self, key: CallKey, model: str, attempts: Sequence[Attempt], code: str
    ) -> None:
        attributes = {
            **self._request_attributes(key, model),
            "error.type": code,
            "socratic.retries": max(0, len(attempts) - 1),
        }
        self._add_span(key, model, attributes, attempts, None, error=code)

    def _request_attributes(self, key: CallKey, model: str) -> dict[str, Any]:
        config, request = self._plan.config, self._requests.pop(key, None)
        is_tested = key.role == self._plan.benchmark.cast.tested
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider_name(model),
            "gen_ai.request.model": model,
            "gen_ai.conversation.id": self._run_id,
            "gen_ai.request.max_tokens": config.max_tokens if is_tested else None,
            "socratic.role": key.role,
            "socratic.turn": key.index,
            **(_request_content(request) if request else {}),
        }

    def _add_span(
        self,
        key: CallKey,
        model: str,
        attributes: Attributes,
        attempts: Sequence[Attempt],
        finished_at: datetime | None,
        *,
        error: str = "",
    ) -> Span | None:
        """A finished call as a child of its turn, or of the run if it is about all of it."""
        ended_at = finished_at or (_end_of(attempts[-1]) if attempts else utc_now())
        started_at = attempts[0].started_at if attempts else ended_at
        parent = self._root if key.is_closing else self._turn_span(key.index, started_at)
        if self._tracer is None or parent is None:
            return None
        span = self._tracer.start_span(
            f"chat {model}",
            set_span_in_context(parent, Context()),
            kind=SpanKind.CLIENT,
            attributes=_without_null(attributes),
            start_time=_nanoseconds(started_at),
        )
        for number, attempt in enumerate(attempts, start=1):
            self._add_attempt(span, number, attempt)
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(_nanoseconds(ended_at))
        return span

    def _add_attempt(self, call: Span, number: int, attempt: Attempt) -> None:
        assert self._tracer  # noqa: S101 -- a call has a span
        span = self._tracer.start_span(
            f"attempt {number}",
            set_span_in_context(call, Context()),
            kind=SpanKind.CLIENT,
            attributes=_without_null(
                {
                    "error.type": attempt.error,
                    "socratic.wait_ms": attempt.wait_ms,
                    "socratic.may_have_been_billed": attempt.may_have_been_billed,
                }
            ),
            start_time=_nanoseconds(attempt.started_at),
        )
        if attempt.error:
            span.set_status(Status(StatusCode.ERROR, attempt.error))
        span.end(_nanoseconds(_end_of(attempt)))

    def _add_verdict(self, turn: Turn) -> None:
        """Each score as an event of the reply's span, the overall one as attributes, too."""
        outcome = turn.outcome
        self._add_judge_calls(turn.index, turn)
        span, response_id = self._tested.pop(turn.index, (None, None))
        if outcome is None or span is None:
            return
        for name, attributes in self._evaluations(turn, outcome):
            self._logger.emit(
                timestamp=_nanoseconds(utc_now()),
                context=set_span_in_context(NonRecordingSpan(span), Context()),
                severity_number=SeverityNumber.INFO,
                event_name=EVALUATION,
                attributes=_without_null(
                    {
                        "gen_ai.evaluation.name": name,
                        "gen_ai.response.id": response_id,
                        "gen_ai.conversation.id": self._run_id,
                        "socratic.turn": turn.index,
                        **attributes,
                    }
                ),
            )

    def _add_judge_calls(self, index: int, turn: Turn | None) -> None:
        attributes: dict[str, Any] = {}
        if turn and turn.outcome:
            *_, (name, last) = self._evaluations(turn, turn.outcome)
            attributes = {"gen_ai.evaluation.name": name, **last}
        for key, call in self._verdict_calls.pop(index, ()):
            self._add_call(key, call, attributes)

    def _evaluations(
        self, turn: Turn, outcome: Verdict | Unscored
    ) -> list[tuple[str, dict[str, Any]]]:
        """Name and attributes of each score; the overall one is last."""
        if isinstance(outcome, Unscored):
            return [(OVERALL, {"error.type": outcome.reason})]
        rationale = outcome.rationale if self._has_content else {}
        label = "lapse" if self._plan.benchmark.falls_short(self._plan.config, turn) else "pass"
        scores = [
            (
                name,
                {
                    "gen_ai.evaluation.score.value": float(score),
                    "gen_ai.evaluation.explanation": rationale.get(name),
                    "socratic.judge": outcome.judge_model,
                },
            )
            for name, score in outcome.scores.items()
        ]
        explanation = "; ".join(text for text in rationale.values() if text)
        overall = {
            "gen_ai.evaluation.score.value": float(outcome.overall_score),
            "gen_ai.evaluation.score.label": label,
            "gen_ai.evaluation.explanation": explanation or None,
            "socratic.judge": outcome.judge_model,
        }
        return [*scores, (OVERALL, overall)]


def provider_name(model_id: str) -> str:
    """The provider's name in the conventions."""
    name, _ = split_id(model_id)
    return PROVIDERS.get(name, name)


def _without_null(attributes: Attributes) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000


def _end_of(attempt: Attempt) -> datetime:
    return attempt.started_at + timedelta(milliseconds=attempt.duration_ms)


def _request_content(request: Request) -> dict[str, str]:
    text = request.system and redact(request.system)
    system = [{"type": "text", "content": text}] if text else []
    return {
        "gen_ai.input.messages": _messages(request.messages),
        **({"gen_ai.system_instructions": json.dumps(system)} if system else {}),
    }


def _messages(messages: Sequence[Message], finish_reason: str = "") -> str:
    """Texts alone: images and tools are left out."""
    reason = {"finish_reason": finish_reason} if finish_reason else {}
    return json.dumps(
        [
            {
                "role": message.role,
                "parts": [
                    {"type": "text", "content": redact(block.text)}
                    for block in message.content
                    if isinstance(block, Text)
                ],
                **reason,
            }
            for message in messages
        ]
    )
