"""What a simulated model would answer to a request, without a server: its replies are computed."""

from socratic_bench.emulator.catalogue import traits_of
from socratic_bench.emulator.checks import check_request
from socratic_bench.emulator.dialogue import JsonObject, read_dialogue
from socratic_bench.emulator.errors import ServiceError
from socratic_bench.emulator.fault_replies import guarded
from socratic_bench.emulator.models.reply import compose, limited
from socratic_bench.emulator.tokens import output_tokens


def refusal(model_id: str, body: JsonObject) -> str | None:
    """The words with which a model refuses a field of the request; `None` if it takes them all."""
    try:
        check_request(model_id, traits_of(model_id), body)
    except ServiceError as error:
        return error.message
    return None


def streams(model_id: str, *, verdicts: bool) -> bool:
    """Whether a model gives its answers as streams; `verdicts`: those that are tool calls, too, if
    it can be made to call a tool.
    """
    traits = traits_of(model_id)
    has_tool = verdicts and traits.tool_choice
    return traits.streaming and (traits.streamed_tools or not has_tool)


def cache_minimum(model_id: str) -> int:
    """Tokens of the shortest prefix that a model caches."""
    return traits_of(model_id).cache_minimum


def answer(model_id: str, body: JsonObject) -> tuple[JsonObject, int]:
    """The response's message and stop reason, and how many output tokens they are."""
    traits = traits_of(model_id)
    composed = compose(read_dialogue(model_id, body), body, traits)
    reply = guarded(limited(composed, body, traits), body)
    content = list(reply.content)
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "stopReason": reply.stop_reason}, output_tokens(content)
