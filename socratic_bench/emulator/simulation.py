"""What a simulated model would answer to a request, without a server: its replies are computed."""

from socratic_bench.emulator.catalogue import traits_of
from socratic_bench.emulator.checks import check_request
from socratic_bench.emulator.dialogue import JsonObject, output_tokens, read_dialogue
from socratic_bench.emulator.errors import ServiceError
from socratic_bench.emulator.models.fault_replies import guarded
from socratic_bench.emulator.models.golden import OPTIMISED
from socratic_bench.emulator.models.reply import compose, limited
from socratic_bench.types import OPTIMIZER


def refusal(
    model_id: str,
    body: JsonObject,
    *,
    streamed: bool,
    any_model: bool,
    context_window_tokens: int | None,
) -> ServiceError | None:
    """The error with which an emulator of such settings refuses a request; `None` if none does."""
    if model_id == OPTIMIZER:
        return None
    try:
        check_request(
            model_id,
            body,
            streamed=streamed,
            any_model=any_model,
            context_window_tokens=context_window_tokens,
        )
    except ServiceError as error:
        return error
    return None


def cache_minimum(model_id: str) -> int:
    """Tokens of the shortest prefix that a model caches."""
    return traits_of(model_id).cache_minimum


def answer(model_id: str, body: JsonObject) -> tuple[JsonObject, int]:
    """The response's message and stop reason, and how many output tokens they are."""
    if model_id == OPTIMIZER:
        content = [{"text": OPTIMISED.format(body["messages"][-1]["content"][0]["text"])}]
        message = {"role": "assistant", "content": content}
        return {"output": {"message": message}, "stopReason": "end_turn"}, output_tokens(content)
    traits = traits_of(model_id)
    composed = compose(read_dialogue(model_id, body), body, traits)
    reply = guarded(limited(composed, body, traits), body)
    content = list(reply.content)
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "stopReason": reply.stop_reason}, output_tokens(content)
