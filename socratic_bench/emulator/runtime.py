"""The runtime API: Converse, ConverseStream and CountTokens, from the body to the answer."""

import binascii
import json
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

from botocore.loaders import Loader
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape
from botocore.validate import ParamValidator
from msgspec import Struct

from socratic_bench.emulator.answers import Outcome, event, reply_events
from socratic_bench.emulator.catalogue import traits_of, unknown_model
from socratic_bench.emulator.checks import check_request
from socratic_bench.emulator.dialogue import (
    JsonObject,
    block_tokens,
    input_tokens,
    output_tokens,
    read_dialogue,
)
from socratic_bench.emulator.errors import ServiceError, invalid
from socratic_bench.emulator.faults import ERROR_KINDS, JOB_OPERATION, WIRE_KINDS, FaultInjector
from socratic_bench.emulator.models.fault_replies import altered, error_of, guarded
from socratic_bench.emulator.models.golden import optimised_prompt
from socratic_bench.emulator.models.reply import Reply, compose, limited, spoken_by
from socratic_bench.emulator.settings import Settings

# Token counting has no limits and no faults.
OPERATIONS = {
    "converse": "Converse",
    "converse-stream": "ConverseStream",
    "count-tokens": "CountTokens",
}
SERVICE = "bedrock-runtime"
SHOWN_CHARACTERS = 100
LOOK_BACK = 20
_TTL_S = {"5m": 300.0, "1h": 3600.0}
_LIMIT = 20_000
_ENCODE = json.JSONEncoder(sort_keys=True).encode


class Runtime:
    """The models behind one endpoint, and what it remembers: prefixes, faults, quotas."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._cache = PromptCache(clock)
        _service()  # before the first request, which is not to wait for it
        rate = settings.requests_per_minute
        # So many buckets are kept: nobody has more models in use.
        self._throttle_of = lru_cache(maxsize=1000)(
            lambda _model_id: Throttle(rate, clock) if rate else None
        )
        self.faults = FaultInjector(settings.faults, settings.seed)

    def reset(self) -> None:
        """Forget the prefixes and how often each fault struck."""
        self._cache.clear()
        self.faults = FaultInjector(self.faults.faults, self._settings.seed)

    def answer(self, outcome: Outcome, model_id: str, raw: bytes) -> None:
        """Fill in the outcome, or raise the service's error."""
        outcome.model_id = model_id
        try:
            body = _parsed(raw)
            check_body(outcome.operation, model_id, body)
            if outcome.operation == "CountTokens":
                outcome.send_json({"inputTokens": self._count(model_id, body)})
            else:
                self._converse(outcome, model_id, body)
        except RecursionError:
            raise _unreadable("The body is nested too deeply.") from None

    def answer_record(self, outcome: Outcome, model_id: str, body: JsonObject) -> JsonObject:
        """The answer to a record of a batch job, which no limit of requests concerns."""
        outcome.model_id = model_id
        check_body("Converse", model_id, body)
        self._converse(outcome, model_id, body, is_limited=False)
        if outcome.fault and outcome.fault.kind in WIRE_KINDS:
            raise error_of("internal", model_id, None)  # a record has no wire of its own
        ((_, response),) = outcome.pieces
        answer: JsonObject = json.loads(response.partition(b"\r\n\r\n")[2])
        return answer

    def job_fault(self, model_id: str) -> str | None:
        """How a job ends that is submitted now, if not well."""
        fault = self.faults.next_fault("", model_id, JOB_OPERATION)
        return fault.kind if fault else None

    def optimise(self, outcome: Outcome, raw: bytes) -> None:
        """Answer OptimizePrompt, or raise the service's error."""
        body = _parsed(raw)
        prompt = body.get("input", {}).get("textPrompt", {}).get("text", "")
        target = body.get("targetModelId", "")
        outcome.model_id, outcome.role = target, "optimizer"
        self._strike(outcome, target, is_closing=False)
        if outcome.send_without_body():
            return
        if not (traits_of(target).is_known or self._settings.any_model):
            raise unknown_model()
        optimised = optimised_prompt(target, prompt)
        if optimised is None:
            raise invalid("The target model is not supported for prompt optimization.")
        texts = {"textPrompt": {"text": optimised}}
        outcome.send_stream(
            [
                event("analyzePromptEvent", {"message": "The prompt names its task."}),
                event("optimizedPromptEvent", {"optimizedPrompt": texts}),
            ],
            0,
        )

    def _converse(
        self, outcome: Outcome, model_id: str, body: JsonObject, *, is_limited: bool = True
    ) -> None:
        dialogue = read_dialogue(model_id, body)
        outcome.role, outcome.turn = dialogue.role, dialogue.turn
        throttle = self._throttle_of(model_id) if is_limited else None
        if throttle and (wait_ms := throttle.wait_ms()) is not None:
            raise error_of("throttled", model_id, wait_ms)  # which takes no model time
        outcome.wait_s = self._settings.latency_of(dialogue.role) / 1000
        self._strike(outcome, model_id, is_closing=dialogue.record is not None)
        if outcome.send_without_body():
            return
        traits = traits_of(model_id)
        speaker = self._settings.speakers.get(model_id)
        any_model = self._settings.any_model or speaker is not None
        check_request(
            model_id,
            body,
            streamed=outcome.operation == "ConverseStream",
            any_model=any_model,
            context_window_tokens=self._settings.context_window_tokens,
        )
        n_in = input_tokens(body)
        composed = (
            spoken_by(speaker, dialogue, body) if speaker else compose(dialogue, body, traits)
        )
        reply = guarded(limited(composed, body, traits), body)
        reply = altered(reply, outcome.fault)
        self._send(outcome, body, reply, n_in)

    def _strike(self, outcome: Outcome, model_id: str, *, is_closing: bool) -> None:
        fault = self.faults.next_fault(
            outcome.role or "", model_id, outcome.operation, is_closing=is_closing
        )
        if fault is None:
            return
        outcome.fault = fault
        if fault.kind == "hang":
            outcome.wait_s = (fault.ms or 0) / 1000
        if fault.kind in ERROR_KINDS:
            raise error_of(fault.kind, model_id, fault.ms)

    def _send(self, outcome: Outcome, body: JsonObject, reply: Reply, n_in: int) -> None:
        n_out = output_tokens(reply.content)
        usage = self._usage(outcome, body, n_in, n_out)
        pace_ms = self._settings.ms_per_output_token
        stream = outcome.operation == "ConverseStream"
        latency_ms = outcome.wait_s * 1000 + (pace_ms * n_out if stream else 0)
        metadata: JsonObject = {"usage": usage, "metrics": {"latencyMs": round(latency_ms)}}
        metadata |= {
            name: body[name] for name in ("performanceConfig", "serviceTier") if body.get(name)
        }
        # Of the fields of the model's own answer only the stop sequence exists.
        paths = body.get("additionalModelResponseFieldPaths") or ()
        extra = {"stop_sequence": None} if "/stop_sequence" in paths else None
        if stream:
            frames = reply_events(reply, metadata, extra)
            outcome.send_stream(frames, pace_ms * n_out / 1000 / len(frames))
            return
        message = {"role": "assistant", "content": reply.content}
        answer = {"output": {"message": message}, "stopReason": reply.stop_reason, **metadata}
        outcome.send_json(answer | ({"additionalModelResponseFields": extra} if extra else {}))

    def _usage(self, outcome: Outcome, body: JsonObject, n_in: int, n_out: int) -> JsonObject:
        """The counters. Cached tokens are counted apart from the input, but within the total."""
        usage = {"inputTokens": n_in, "outputTokens": n_out, "totalTokens": n_in + n_out}
        model_id = outcome.model_id or ""
        minimum = self._settings.cache_minimum_tokens or traits_of(model_id).cache_minimum
        use = self._cache.use(model_id, body, minimum)
        if use is None:
            return usage
        outcome.began = use.commit
        usage["inputTokens"] = n_in - use.read - use.write
        usage |= {"cacheReadInputTokens": use.read, "cacheWriteInputTokens": use.write}
        details = [{"ttl": use.ttl, "inputTokens": use.write}]
        return usage | ({"cacheDetails": details} if use.write else {})

    def _count(self, model_id: str, body: JsonObject) -> int:
        traits = traits_of(model_id)
        if not (traits.is_known or self._settings.any_model):
            raise unknown_model()
        if not traits.count_tokens or model_id != traits.base_id:
            raise invalid("The provided model doesn't support counting tokens.")
        request = body.get("input") or {}
        if "converse" in request:
            return input_tokens(request["converse"])
        return len(request["invokeModel"]["body"]) // 5


def _parsed(raw: bytes) -> JsonObject:
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        raise _unreadable("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise _unreadable("The body is not a JSON object.")
    if b"null" in raw:
        body = {name: _without_nulls(value) for name, value in body.items() if value is not None}
    return body


def _unreadable(message: str) -> ServiceError:
    return ServiceError(400, "SerializationException", message)


def _without_nulls(value: object) -> object:
    """A null member counts as an absent one."""
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


class Throttle:
    """A model's bucket of requests, with a burst of a tenth of a minute's."""

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._rate = per_minute / 60
        self._room = max(1.0, per_minute / 10)
        self._left = self._room
        self._clock = clock
        self._at = clock()

    def wait_ms(self) -> float | None:
        """Take one; `None` if there was one to take, else the milliseconds until there will be."""
        now = self._clock()
        self._left = min(self._room, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return None
        return (1 - self._left) / self._rate * 1000


class CacheUse(Struct, frozen=True, kw_only=True):
    """What one request reads and writes, in tokens. `commit` makes what it wrote readable."""

    read: int
    write: int
    ttl: str
    commit: Callable[[], None]


class _Boundary(Struct, frozen=True):
    """A place between two blocks: digest and tokens of all before it, and a cache point's ttl."""

    digest: bytes
    tokens: int
    ttl: str | None


class PromptCache:
    """The prefixes of requests, by their exact content, each with the time when it expires."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: dict[bytes, float] = {}

    def use(self, model_id: str, body: JsonObject, minimum: int) -> CacheUse | None:
        """`None` for a request without a cache point. Prefixes under the minimum do not count."""
        if not any("cachePoint" in block for _, block in _blocks(body)):
            return None
        boundaries = _boundaries(model_id, body)
        points = [at for at, boundary in enumerate(boundaries) if boundary.ttl]
        long_enough = [at for at in points if boundaries[at].tokens >= minimum]
        now = self._clock()
        read = max(
            (self._readable_tokens(boundaries, at, now, minimum) for at in long_enough), default=0
        )
        last = boundaries[long_enough[-1]].tokens if long_enough else 0
        ttl = boundaries[points[-1]].ttl or "5m"
        entries = [(boundaries[at].digest, boundaries[at].ttl or "5m") for at in long_enough]
        return CacheUse(read=read, write=last - read, ttl=ttl, commit=lambda: self._keep(entries))

    def clear(self) -> None:
        self._until.clear()

    def _readable_tokens(
        self, boundaries: list[_Boundary], at: int, now: float, minimum: int
    ) -> int:
        """The longest known prefix at a cache point or at most `LOOK_BACK` blocks before it."""
        for boundary in reversed(boundaries[max(0, at - LOOK_BACK) : at + 1]):
            if boundary.tokens >= minimum and self._until.get(boundary.digest, 0) > now:
                # Reading keeps an entry alive.
                self._until[boundary.digest] = max(self._until[boundary.digest], now + _TTL_S["5m"])
                return boundary.tokens
        return 0

    def _keep(self, written: list[tuple[bytes, str]]) -> None:
        now = self._clock()
        if len(self._until) > _LIMIT:
            self._until = {digest: until for digest, until in self._until.items() if until > now}
        for digest, ttl in written:
            self._until[digest] = max(self._until.get(digest, 0), now + _TTL_S[ttl])


def _boundaries(model_id: str, body: JsonObject) -> list[_Boundary]:
    """The places after each block, a cache point's place being that of the block before it."""
    hasher = blake2b(model_id.encode(), digest_size=16)
    boundaries = [_Boundary(hasher.digest(), 0, None)]
    tokens = 0
    for place, block in _blocks(body):
        if "cachePoint" in block:
            ttl = block["cachePoint"].get("ttl") or "5m"
            boundaries[-1] = _Boundary(boundaries[-1].digest, tokens, ttl)
            continue
        content = block["text"] if len(block) == 1 and "text" in block else _ENCODE(block)
        hasher.update(f"{place}\x1f{content}\x1e".encode("utf-8", "replace"))
        tokens += block_tokens(block)
        boundaries.append(_Boundary(hasher.digest(), tokens, None))
    return boundaries


def _blocks(body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """All blocks in the order in which a model reads them, each with the place it stands in."""
    for tool in (body.get("toolConfig") or {}).get("tools", ()):
        yield "tool", tool
    for block in body.get("system") or ():
        yield "system", block
    for number, message in enumerate(body.get("messages") or ()):
        for block in message["content"]:
            yield f"{number}{message['role']}", block


@cache
def _service() -> ServiceModel:
    """The service's model that botocore ships; reading it takes a moment."""
    return ServiceModel(Loader().load_service_model(SERVICE, "service-2"), SERVICE)


def check_body(operation: str, model_id: str, body: JsonObject) -> None:
    """Raise the service's error for an id or a body that breaks the operation's model.

    botocore's validator checks types, unknown and missing members and lower bounds. Upper bounds,
    enums and patterns it leaves to the service, so they are checked here.
    """
    shape = _service().operation_model(operation).input_shape
    assert shape  # noqa: S101 -- each of these operations takes something
    request = {**body, "modelId": model_id}
    report = ParamValidator().validate(request, shape)
    if report.has_errors():
        raise _broken(report.generate_report())
    if problem := next(_broken_constraints(request, shape, ()), None):
        raise _broken(problem)


def _broken(problem: str) -> ServiceError:
    return invalid(f"1 validation error detected: {problem}")


def _broken_constraints(value: Any, shape: Shape, path: tuple[str, ...]) -> Iterator[str]:  # noqa: ANN401
    """What a value of the right type breaks, in the service's words."""
    rules = shape.metadata
    if rule := _broken_rule(value, shape.type_name, rules):
        place = ".".join(path) or "body"
        excerpt = str(value)[:SHOWN_CHARACTERS]
        yield f"Value '{excerpt}' at '{place}' failed to satisfy constraint: Member must {rule}"
    if isinstance(shape, StructureShape) and not shape.metadata.get("document"):
        for name, part in value.items():
            yield from _broken_constraints(part, shape.members[name], (*path, name))
    elif isinstance(shape, ListShape):
        for index, item in enumerate(value):
            yield from _broken_constraints(item, shape.member, (*path, str(index)))
    elif isinstance(shape, MapShape):
        for name, part in value.items():
            yield from _broken_constraints(name, shape.key, (*path, name))
            yield from _broken_constraints(part, shape.value, (*path, name))


def _broken_rule(value: Any, kind: str, rules: dict[str, Any]) -> str | None:  # noqa: ANN401
    what, size = ("length", len(value)) if hasattr(value, "__len__") else ("value", value)
    # Put so that NaN, which compares with nothing, fails, too.
    if "max" in rules and not size <= rules["max"]:
        return f"have {what} less than or equal to {rules['max']}"
    if kind == "map" and size < rules.get("min", 0):
        return f"have length greater than or equal to {rules['min']}"
    if "enum" in rules and value not in rules["enum"]:
        return f"satisfy enum value set: [{', '.join(rules['enum'])}]"
    if "pattern" in rules and not re.fullmatch(rules["pattern"], value):
        return f"satisfy regular expression pattern: {rules['pattern']}"
    if kind == "blob":
        try:
            binascii.a2b_base64(value, strict_mode=True)
        except ValueError:
            return "be a base64 string"
    return None
