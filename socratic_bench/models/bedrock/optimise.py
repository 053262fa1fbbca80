"""Bedrock's OptimizePrompt, called like a model: a prompt is the request, a better one the reply.

The request's `system` names the model that the prompt is for. The service counts no tokens; what is
billed is estimated by the lengths of both prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from msgspec.structs import replace

from socratic_bench.concurrency import SharedResults
from socratic_bench.errors import Words
from socratic_bench.models.bedrock.request import estimated_tokens
from socratic_bench.ports.provider import Answer, UnreadableAnswerError
from socratic_bench.types import Block, Message, Reasoning, Request, Text, Usage

SERVICE = "bedrock-agent-runtime"


def optimise(client: Any, request: Request, monotonic_s: Callable[[], float]) -> Answer:  # noqa: ANN401
    """The optimised prompt, with what the service says of the original one as its reasoning.

    Raises what the SDK raises, and `UnreadableAnswerError` for a stream without a prompt.
    """
    started_s = monotonic_s()
    prompt = request.messages[-1].text
    response = client.optimize_prompt(
        input={"textPrompt": {"text": prompt}}, targetModelId=request.system or ""
    )
    analysis: list[str] = []
    optimised: str | None = None
    with closing(response["optimizedPrompt"]) as events:
        for event in events:
            if "analyzePromptEvent" in event:
                analysis.append(event["analyzePromptEvent"]["message"])
            optimised = _prompt_in(event) or optimised
    if not optimised:
        raise UnreadableAnswerError("OptimizePrompt gave no prompt")
    thoughts: tuple[Block, ...] = (Reasoning("\n".join(analysis)),) if analysis else ()
    return Answer(
        message=Message("assistant", (*thoughts, Text(optimised))),
        stop_reason="end_turn",
        provider_stop_reason="end_turn",
        usage=Usage(
            input_tokens=estimated_tokens(prompt), output_tokens=estimated_tokens(optimised)
        ),
        latency_ms=(monotonic_s() - started_s) * 1000,
        request_id=response["ResponseMetadata"].get("RequestId"),
    )


class OptimisedPrompts:
    """The answers of one connection, which runs that ask for the same prompt and model share: the
    first one pays, and the others' usage is 0. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._answers = SharedResults[tuple[str | None, str], Answer]()

    def answer(self, request: Request, ask: Callable[[], Answer]) -> Answer:
        """What was answered before, or what `ask` returns or raises."""
        key = (request.system, request.messages[-1].text)
        answer, is_first = self._answers.get(key, ask)
        unpaid = Usage(input_tokens=0, output_tokens=0)
        return answer if is_first else replace(answer, usage=unpaid)


def hint_on_optimising(hint: Words) -> Words:
    """The hint with the variable of this service's endpoint."""
    text = hint if isinstance(hint, str) else hint.text
    text = text.replace(
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL_BEDROCK_AGENT_RUNTIME"
    )
    return text if isinstance(hint, str) else replace(hint, text=text)


def _prompt_in(event: Mapping[str, Any]) -> str | None:
    prompt = event.get("optimizedPromptEvent", {}).get("optimizedPrompt", {})
    text: str | None = prompt.get("textPrompt", {}).get("text")
    return text
