"""What the service checks beyond its model: a conversation's order, and the limits of models."""

from itertools import pairwise

from socratic_bench.emulator.catalogue import Traits, traits_of, unknown_model
from socratic_bench.emulator.dialogue import JsonObject, input_tokens
from socratic_bench.emulator.errors import ServiceError, invalid, unknown_resource

CACHE_POINTS = 4
DOCUMENTS = 5
MINIMUM_THINKING = 1024
_NO_BUDGET = (
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
    '"output_config.effort" to control thinking behavior.'
)

# Every guardrail exists but those whose id begins so, and lets pass what it is shown but those.
ABSENT_GUARDRAIL = "absent"
BLOCKING_GUARDRAIL = "blocks"


def check_request(
    model_id: str,
    body: JsonObject,
    *,
    streamed: bool,
    any_model: bool,
    context_window_tokens: int | None,
) -> None:
    """Raise the service's error for a well-formed body that this model does not take."""
    traits = traits_of(model_id)
    messages: list[JsonObject] = body.get("messages") or []
    _check_model_id(model_id, traits, any_model=any_model)
    _check_roles(messages)
    _check_texts(body, messages)
    _check_documents(messages)
    _check_tools(messages, body)
    _check_model(traits, body, messages)
    _check_cache_points(traits, body, messages)
    _check_thinking(traits, body, messages)
    _check_service(traits, body)
    if streamed:
        _check_streaming(traits, body)
    if input_tokens(body) > (context_window_tokens or traits.context_window):
        raise invalid("Input is too long for requested model.")


def _check_model_id(model_id: str, traits: Traits, *, any_model: bool) -> None:
    if not (traits.is_known or any_model):
        raise unknown_model()
    if traits.end_of_life:
        raise unknown_resource(
            "This model version has reached the end of its life. "
            "Please refer to the AWS documentation for more details."
        )
    if traits.profile_only and model_id.rpartition("foundation-model/")[2] == traits.base_id:
        raise invalid(
            f"Invocation of model ID {traits.base_id} with on-demand throughput isn\u2019t "
            "supported. Retry your request with the ID or ARN of an inference profile that "
            "contains this model."
        )


def _check_streaming(traits: Traits, body: JsonObject) -> None:
    if not traits.streaming:
        raise invalid(
            "This model doesn't support streaming. Use the Converse operation and try again."
        )
    if "toolConfig" in body and not traits.streamed_tools:
        raise invalid("This model doesn't support tool use in streaming mode.")


def guardrail_of(body: JsonObject) -> str:
    """The id of the request's guardrail, "" without one."""
    return (body.get("guardrailConfig") or {}).get("guardrailIdentifier") or ""


def _check_service(traits: Traits, body: JsonObject) -> None:
    tier = (body.get("serviceTier") or {}).get("type")
    latency = (body.get("performanceConfig") or {}).get("latency")
    if tier == "reserved":
        raise invalid("Reservation not found.")
    if tier in ("priority", "flex") and not traits.tiers:
        raise invalid(f"The service tier {tier} is not supported for this model.")
    if latency == "optimized" and not traits.latency_optimized:
        raise invalid(
            f"Latency performance configuration is not supported for {traits.base_id}. "
            "Remove performanceConfig and try again."
        )
    if guardrail_of(body).rpartition("/")[2].startswith(ABSENT_GUARDRAIL):
        raise invalid("The guardrail identifier or version provided in the request does not exist.")


def _check_roles(messages: list[JsonObject]) -> None:
    if not messages or messages[0]["role"] != "user":
        raise invalid(
            "A conversation must start with a user message. "
            "Try again with a conversation that starts with a user message."
        )
    roles = [message["role"] for message in messages if message["role"] != "system"]
    if any(role == next_role for role, next_role in pairwise(roles)):
        raise invalid(
            "A conversation must alternate between user and assistant roles. "
            "Make sure the conversation alternates between user and assistant roles and try again."
        )


def _check_texts(body: JsonObject, messages: list[JsonObject]) -> None:
    """Refuse empty messages, and every text without a word."""
    for number, block in enumerate(body.get("system") or ()):
        if "text" in block and not block["text"].strip():
            raise _blank_text("SystemContentBlock", f"system.{number}")
    for number, message in enumerate(messages):
        if not message["content"]:
            raise invalid(
                f"The content field in the Message object at messages.{number} is empty. "
                "Add a ContentBlock object to the content field and try again."
            )
        for at, block in enumerate(message["content"]):
            _check_block(block, f"messages.{number}.content.{at}")


def _blank_text(kind: str, place: str) -> ServiceError:
    return invalid(
        f"The text field in the {kind} object at {place} is blank. "
        "Add text to the text field, and try again."
    )


def _check_block(block: JsonObject, place: str) -> None:
    if "text" in block:
        if not block["text"].strip():
            raise _blank_text("ContentBlock", place)
    elif "toolResult" in block:
        parts = block["toolResult"]["content"]
        if any("text" in part and not part["text"].strip() for part in parts):
            raise _model_error("messages: text content blocks must be non-empty")


def _check_documents(messages: list[JsonObject]) -> None:
    names: list[str] = []
    for number, message in enumerate(messages):
        content = message["content"]
        document_names = [block["document"]["name"] for block in content if "document" in block]
        if document_names and not any("text" in block for block in content):
            raise invalid(
                f"The content field in the Message object at messages.{number} has a document and "
                "no text. Include a text block with the document and try again."
            )
        names += document_names
    if len(names) != len(set(names)):
        raise invalid(
            "Messages can't contain duplicate document names. "
            "Rename the document and retry your request."
        )
    if len(names) > DOCUMENTS:
        raise invalid(f"You can't include more than {DOCUMENTS} documents in a request.")


def _check_tools(messages: list[JsonObject], body: JsonObject) -> None:
    call_ids: list[str] = []
    for number, message in enumerate(messages):
        results = _ids(message, "toolResult")
        if (call_ids or results) and "toolConfig" not in body:
            raise invalid(
                "The toolConfig field must be defined when using toolUse and toolResult "
                "content blocks."
            )
        if len(results) > len(call_ids):
            raise invalid(
                f"The number of toolResult blocks at messages.{number}.content exceeds the "
                "number of toolUse blocks of previous turn."
            )
        if missing := [call_id for call_id in call_ids if call_id not in results]:
            raise invalid(
                f"Expected toolResult blocks at messages.{number}.content for the following Ids: "
                f"{', '.join(missing)}"
            )
        call_ids = _ids(message, "toolUse") if message["role"] == "assistant" else []


def _ids(message: JsonObject, kind: str) -> list[str]:
    return [block[kind]["toolUseId"] for block in message["content"] if kind in block]


def _check_model(traits: Traits, body: JsonObject, messages: list[JsonObject]) -> None:
    config: JsonObject = body.get("inferenceConfig") or {}
    if body.get("system") and not traits.system:
        raise invalid(
            "This model doesn't support system messages. "
            "Try again without a system message or use a model that supports system messages."
        )
    _check_tool_choice(traits, body)
    if traits.max_tokens < config.get("maxTokens", 0):
        raise invalid(
            f"The maximum tokens you requested exceeds the model limit of {traits.max_tokens}. "
            f"Try again with a maximum tokens value that is lower than {traits.max_tokens}."
        )
    _check_sampling(traits, config)
    if messages[-1]["role"] == "assistant" and not traits.prefill:
        raise _model_error(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    if (body.get("outputConfig") or {}).get("textFormat") and not traits.json_schema:
        raise _unsupported("outputConfig.textFormat")


def _check_tool_choice(traits: Traits, body: JsonObject) -> None:
    tools: JsonObject = body.get("toolConfig") or {}
    choice: JsonObject = tools.get("toolChoice") or {}
    if tools and not traits.tools:
        raise _unsupported("toolConfig")
    for kind in ("tool", "any"):
        if kind in choice and not traits.tool_choice:
            raise _unsupported(f"toolConfig.toolChoice.{kind}")
    names = [tool["toolSpec"]["name"] for tool in tools.get("tools", ()) if "toolSpec" in tool]
    if "tool" in choice and choice["tool"]["name"] not in names:
        raise invalid(
            f"The tool {choice['tool']['name']} in toolConfig.toolChoice.tool is not one of the "
            "tools in toolConfig.tools. Add it and try again."
        )


def _model_error(reason: str) -> ServiceError:
    """What the service says where the model itself refuses."""
    return invalid(f"The model returned the following errors: {reason}")


def _unsupported(field: str) -> ServiceError:
    return invalid(f"This model doesn't support the {field} field. Remove {field} and try again.")


def _check_sampling(traits: Traits, config: JsonObject) -> None:
    sent = [name for name in ("temperature", "topP") if config.get(name) is not None]
    words = {"temperature": "temperature", "topP": "top_p"}
    if traits.sampling == "none" and sent:
        raise _model_error(f"`{words[sent[0]]}` is deprecated for this model.")
    if traits.sampling == "no_temperature" and "temperature" in sent:
        raise _unsupported("inferenceConfig.temperature")
    if traits.sampling == "either" and len(sent) > 1:
        raise _model_error(
            "`temperature` and `top_p` cannot both be specified for this model. "
            "Please use only one."
        )


def _check_cache_points(traits: Traits, body: JsonObject, messages: list[JsonObject]) -> None:
    lists = [message["content"] for message in messages]
    lists += [body.get("system") or [], (body.get("toolConfig") or {}).get("tools", [])]
    count = sum("cachePoint" in block for blocks in lists for block in blocks)
    if count and not traits.cache:
        raise invalid(
            "You invoked an unsupported model or your request did not allow prompt caching. "
            "See the documentation for more information."
        )
    if count > CACHE_POINTS:
        raise _model_error(
            f"A maximum of 4 blocks with cache_control may be provided. Found {count}."
        )


def _check_thinking(traits: Traits, body: JsonObject, messages: list[JsonObject]) -> None:
    fields = body.get("additionalModelRequestFields") or {}
    thinking = fields.get("thinking") if isinstance(fields, dict) else None
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return
    if reason := _thinking_error(traits, body, thinking):
        raise _model_error(reason)
    replies = [message["content"] for message in messages if message["role"] == "assistant"]
    # While tools are called, the model has to get its thoughts back as it had them.
    if (
        replies
        and any("toolUse" in block for block in replies[-1])
        and "signature" not in replies[-1][0].get("reasoningContent", {}).get("reasoningText", {})
    ):
        raise _model_error(
            "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
            "enabled, a final `assistant` message must start with a thinking block."
        )


def _thinking_error(traits: Traits, body: JsonObject, thinking: JsonObject) -> str | None:
    config = body.get("inferenceConfig") or {}
    budget = thinking.get("budget_tokens")
    choice = (body.get("toolConfig") or {}).get("toolChoice") or {}
    if not traits.thinking or traits.adaptive_thinking:
        return (
            _NO_BUDGET if traits.adaptive_thinking else "thinking: Extra inputs are not permitted"
        )
    if not isinstance(budget, int) or budget < MINIMUM_THINKING:
        return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
    if budget >= config.get("maxTokens", traits.max_tokens):
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    if config.get("temperature") not in (None, 1):
        return "`temperature` may only be set to 1 when thinking is enabled."
    if "tool" in choice or "any" in choice:
        return "Thinking may not be enabled when tool_choice forces tool use."
    return None
