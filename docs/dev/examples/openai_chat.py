"""Models behind an endpoint that speaks OpenAI's chat format."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any
from urllib import request as http
from urllib.error import HTTPError

from socratic_bench.catalogue.tokens import PromptBlock
from socratic_bench.errors import Problem
from socratic_bench.ports.provider import (
    THROTTLED,
    Answer,
    ErrorKind,
    Provider,
    ProviderModule,
    UnreadableAnswerError,
)
from socratic_bench.redaction import learn
from socratic_bench.settings import CoreConfig
from socratic_bench.types import Block, Message, Request, StopReason, Text, ToolUse, Usage

Clock = Callable[[], float]
STOPS: dict[str, StopReason] = {"stop": "end_turn", "function_call": "tool_use"}
STOPS |= {"length": "max_tokens", "content_filter": "content_filtered", "tool_calls": "tool_use"}


class ChatProvider(Provider):
    def __init__(self, monotonic_s: Clock) -> None:
        self._monotonic_s = monotonic_s
        self._url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
        self._key = os.environ.get("OPENAI_API_KEY", "")

    def send(self, model_id: str, request: Request, timeout_s: float) -> Answer:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        body = json.dumps(_body(model_id, request)).encode()
        started_s = self._monotonic_s()
        try:
            call = http.Request(self._url, body, headers)  # noqa: S310 -- the user's own address
            with http.urlopen(call, timeout=timeout_s) as response:  # noqa: S310
                completion = json.load(response)
            return _answer(completion, (self._monotonic_s() - started_s) * 1000)
        except (ValueError, LookupError, TypeError) as error:
            raise UnreadableAnswerError("the answer is no chat completion") from error

    def error_kind(self, error: Exception) -> ErrorKind | None:
        text = f"{self._url}: {error}"
        if isinstance(error, HTTPError) and error.code in (429, 529):
            wait = error.headers.get("Retry-After", "")
            wait_s = float(wait) if wait.isdecimal() else None
            return ErrorKind(code=THROTTLED, message=text, is_retried=True, retry_after_s=wait_s)
        if isinstance(error, HTTPError) and error.code in (401, 403):
            return ErrorKind(code="access_denied", message=text, end_reason="access")
        if isinstance(error, HTTPError) and error.code in range(400, 500):
            return ErrorKind(code="invalid_request", message=text, end_reason="refused_request")
        if isinstance(error, (OSError, HTTPException)):
            return ErrorKind(code="server_error", message=text, is_retried=True, maybe_billed=True)
        return None

    def sizes(self, model_id: str, request: Request) -> list[PromptBlock]:  # noqa: ARG002
        texts = [request.system or "", *(message.text for message in request.messages)]
        return [PromptBlock((text,), len(text) // 4 + 4) for text in texts]


def _body(model_id: str, request: Request) -> dict[str, Any]:
    chat = [{"role": "system", "content": request.system}] if request.system else []
    for turn in request.messages:
        chat.append({"role": turn.role, "content": turn.text or str(turn.content)})
    body = {
        "model": model_id,
        "messages": chat,
        "max_tokens": request.config.max_tokens,
        "temperature": request.config.temperature,
    }
    if request.tool:
        name, schema = request.tool.name, request.tool.input_schema
        function = {"name": name, "description": request.tool.description, "parameters": schema}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": name}}
    return {field: value for field, value in body.items() if value is not None}


def _answer(completion: dict[str, Any], latency_ms: float) -> Answer:
    choice, usage = completion["choices"][0], completion["usage"]
    message, stop = choice["message"], choice["finish_reason"]
    text = message.get("content") or message.get("refusal")
    blocks: list[Block] = [Text(text)] if text else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        blocks.append(ToolUse(call["id"], function["name"], json.loads(function["arguments"])))
    return Answer(
        message=Message("assistant", tuple(blocks)),
        stop_reason="refusal" if message.get("refusal") else STOPS.get(stop, "other"),
        provider_stop_reason=stop,
        usage=Usage(input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"]),
        latency_ms=latency_ms,
        request_id=completion.get("id"),
    )


class ChatModule(ProviderModule):
    name = "openai_chat"

    def problems(self, config: CoreConfig) -> Iterable[Problem]:
        yield from super().problems(config)
        if not os.environ.get("OPENAI_BASE_URL"):
            yield Problem.of("OPENAI_BASE_URL is not set.")

    @contextmanager
    def open(self, config: CoreConfig, prepared: object, monotonic_s: Clock) -> Iterator[Provider]:
        del config, prepared
        learn([os.environ.get("OPENAI_API_KEY")])
        yield ChatProvider(monotonic_s)


PROVIDER = ChatModule()
