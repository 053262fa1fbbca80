import json
from typing import Any

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from socratic_bench.catalogue.models import Capabilities, base_id, capabilities_of
from socratic_bench.generation import GenerateConfig, Guardrail
from socratic_bench.models.bedrock.capabilities import refused_field
from socratic_bench.models.bedrock.converse import (
    UnreadableAnswerError,
    neutral_stop_reason,
    read_message,
    read_service_latency,
    read_usage,
)
from socratic_bench.models.bedrock.request import converse_arguments
from socratic_bench.types import (
    Message,
    Reasoning,
    Request,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    Usage,
    clean,
)

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"form": {"type": "number"}}}
TOOL = Tool(name="record", description="Records.", input_schema=SCHEMA)
REQUEST = Request(
    system="Ask, never tell.",
    messages=(Message.user("Hello."),),
    config=GenerateConfig(max_tokens=100, temperature=0.5, top_p=0.9),
)
JSON_IN_WORDS = (
    "Answer with exactly one JSON object and nothing before or after it. It has to fit this JSON "
    'Schema: {"type":"object","properties":{"form":{"type":"number"}}}'
)

MODERN = "anthropic.claude-3-5-sonnet-20241022-v1:0"
NO_SYSTEM = "amazon.titan-text-premier-v1:0"
NO_FORCED_TOOL = "meta.llama3-1-70b-instruct-v1:0"
NO_SAMPLING = "us.anthropic.claude-opus-4-7"
ONE_SAMPLING = "anthropic.claude-sonnet-4-5-20250929-v1:0"


def shaped(model_id: str, request: Request = REQUEST) -> dict[str, Any]:
    return converse_arguments(model_id, request, capabilities_of(model_id))


def with_tool(request: Request = REQUEST, *more: Message) -> Request:
    return Request(
        system=request.system,
        messages=(*request.messages, *more),
        config=GenerateConfig(max_tokens=100),
        tool=TOOL,
    )


USER = {"role": "user", "content": [{"text": "Hello."}]}


class TestRequest:
    def test_a_modern_model_gets_every_field(self):
        assert shaped(MODERN) == {
            "modelId": MODERN,
            "messages": [USER],
            "inferenceConfig": {"maxTokens": 100, "temperature": 0.5, "topP": 0.9},
            "system": [{"text": "Ask, never tell."}],
        }

    def test_a_field_that_nobody_set_is_not_sent(self):
        request = Request(messages=REQUEST.messages, config=GenerateConfig(max_tokens=7))

        assert shaped(MODERN, request) == {
            "modelId": MODERN,
            "messages": [USER],
            "inferenceConfig": {"maxTokens": 7},
        }

    def test_a_temperature_of_zero_is_sent(self):
        config = GenerateConfig(max_tokens=7, temperature=0.0)

        sent = shaped(MODERN, Request(messages=REQUEST.messages, config=config))
        assert sent["inferenceConfig"] == {"maxTokens": 7, "temperature": 0.0}

    def test_without_system_prompts_it_opens_the_first_user_message(self):
        conversation = Request(
            system="Ask, never tell.",
            messages=(Message.user("Hello."), Message.assistant("Why?"), Message.user("So.")),
            config=GenerateConfig(max_tokens=100),
        )

        assert shaped(NO_SYSTEM, conversation) == {
            "modelId": NO_SYSTEM,
            "messages": [
                {"role": "user", "content": [{"text": "Ask, never tell.\n\n"}, {"text": "Hello."}]},
                {"role": "assistant", "content": [{"text": "Why?"}]},
                {"role": "user", "content": [{"text": "So."}]},
            ],
            "inferenceConfig": {"maxTokens": 100},
        }

    def test_a_tool_is_forced_where_it_can_be(self):
        spec = {"name": "record", "description": "Records.", "inputSchema": {"json": SCHEMA}}

        assert shaped(MODERN, with_tool()) == {
            "modelId": MODERN,
            "messages": [USER],
            "inferenceConfig": {"maxTokens": 100},
            "system": [{"text": "Ask, never tell."}],
            "toolConfig": {
                "tools": [{"toolSpec": spec}],
                "toolChoice": {"tool": {"name": "record"}},
            },
        }

    def test_elsewhere_json_is_asked_for_in_words(self):
        assert shaped(NO_FORCED_TOOL, with_tool()) == {
            "modelId": NO_FORCED_TOOL,
            "messages": [USER],
            "inferenceConfig": {"maxTokens": 100},
            "system": [{"text": f"Ask, never tell.\n\n{JSON_IN_WORDS}"}],
        }

    def test_without_both_the_words_open_the_first_message(self):
        assert shaped(NO_SYSTEM, with_tool()) == {
            "modelId": NO_SYSTEM,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"text": f"Ask, never tell.\n\n{JSON_IN_WORDS}\n\n"},
                        {"text": "Hello."},
                    ],
                }
            ],
            "inferenceConfig": {"maxTokens": 100},
        }

    @pytest.mark.parametrize("model_id", [MODERN, ONE_SAMPLING, NO_SAMPLING, "nobody.knows-v1:0"])
    def test_what_the_user_asked_for_is_sent_whatever_the_model(self, model_id):
        """A refusal is the user's to know."""
        assert shaped(model_id)["inferenceConfig"] == {
            "maxTokens": 100,
            "temperature": 0.5,
            "topP": 0.9,
        }

    def test_each_setting_has_its_field(self):
        config = GenerateConfig(
            max_tokens=3000,
            service_tier="flex",
            latency_profile="optimized",
            thinking_budget_tokens=2000,
            guardrail=Guardrail("abc123", "DRAFT"),
        )
        request = Request(messages=REQUEST.messages, config=config)

        assert converse_arguments(MODERN, request, Capabilities(), (("team", "a"), ("b", ""))) == {
            "modelId": MODERN,
            "messages": [{"role": "user", "content": [{"text": "Hello."}]}],
            "inferenceConfig": {"maxTokens": 3000},
            "serviceTier": {"type": "flex"},
            "performanceConfig": {"latency": "optimized"},
            "additionalModelRequestFields": {
                "thinking": {"type": "enabled", "budget_tokens": 2000}
            },
            "guardrailConfig": {"guardrailIdentifier": "abc123", "guardrailVersion": "DRAFT"},
            "requestMetadata": {"team": "a", "b": ""},
        }

    def test_a_tool_exchange_goes_back_in_blocks(self):
        use = Message("assistant", (ToolUse("id-1", "record", {"form": 9}),))
        result = Message("user", (ToolResult("id-1", "No.", is_error=True),))

        assert shaped(MODERN, with_tool(REQUEST, use, result))["messages"] == [
            USER,
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": "id-1", "name": "record", "input": {"form": 9}}}
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "id-1",
                            "content": [{"text": "No."}],
                            "status": "error",
                        }
                    }
                ],
            },
        ]

    def test_a_good_tool_result_is_no_error(self):
        use = Message("assistant", (ToolUse("id-1", "record", {}),))
        result = Message("user", (ToolResult("id-1", "Kept."),))

        sent = shaped(MODERN, with_tool(REQUEST, use, result))["messages"][2]["content"]
        assert sent == [{"toolResult": {"toolUseId": "id-1", "content": [{"text": "Kept."}]}}]

    def test_a_tool_exchange_goes_back_in_words_where_there_are_no_tools(self):
        use = Message("assistant", (ToolUse("id-1", "record", {"form": 9}),))
        result = Message("user", (ToolResult("id-1", "No.", is_error=True),))

        assert shaped(NO_FORCED_TOOL, with_tool(REQUEST, use, result))["messages"] == [
            USER,
            {"role": "assistant", "content": [{"text": '{"form": 9}'}]},
            {"role": "user", "content": [{"text": "No."}]},
        ]

    def test_reasoning_is_never_sent_back(self):
        said = Message("assistant", (Reasoning("Hm."), Text("Why?")))
        request = Request(
            messages=(Message.user("Hello."), said, Message.user("So.")),
            config=GenerateConfig(max_tokens=100),
        )

        assert shaped(MODERN, request)["messages"][1] == {
            "role": "assistant",
            "content": [{"text": "Why?"}],
        }

    @pytest.mark.parametrize("odd", [float("nan"), float("inf"), "\ud800", {"\udfff": ["\ud800"]}])
    def test_what_no_strict_reader_takes_is_not_sent_back(self, odd):
        """A model may put into a tool call what JSON readers let pass; the service would not."""
        use = Message("assistant", (ToolUse("id-1", "record", {"form": odd}),))
        result = Message("user", (ToolResult("id-1", "No."),))

        sent = shaped(MODERN, with_tool(REQUEST, use, result))
        json.dumps(sent, allow_nan=False, ensure_ascii=False).encode()


class TestCapabilities:
    @pytest.mark.parametrize(
        "model_id",
        [
            "meta.llama3-1-70b-instruct-v1:0",
            "us.meta.llama3-1-70b-instruct-v1:0",
            "eu.meta.llama3-1-70b-instruct-v1:0",
            "apac.meta.llama3-1-70b-instruct-v1:0",
            "global.meta.llama3-1-70b-instruct-v1:0",
            "us-gov.meta.llama3-1-70b-instruct-v1:0",
            "arn:aws:bedrock:us-east-1::foundation-model/meta.llama3-1-70b-instruct-v1:0",
            "arn:aws:bedrock:us-east-1:1234:inference-profile/us.meta.llama3-1-70b-instruct-v1:0",
        ],
    )
    def test_ids_profiles_and_arns_are_the_same_model(self, model_id):
        assert base_id(model_id) == "meta.llama3-1-70b-instruct-v1:0"
        assert not capabilities_of(model_id).forced_tool

    def test_an_unknown_model_is_assumed_to_take_everything(self):
        known = capabilities_of("nobody.knows-v1:0")

        assert (known.system, known.forced_tool, known.temperature, known.top_p) == (True,) * 4

    @pytest.mark.parametrize(
        ("model_id", "lacks"),
        [
            ("amazon.titan-text-express-v1", {"system", "forced_tool"}),
            ("mistral.mistral-7b-instruct-v0:2", {"system", "forced_tool"}),
            ("mistral.pixtral-large-2502-v1:0", {"forced_tool"}),
            ("mistral.mistral-large-2407-v1:0", set()),
            ("deepseek.r1-v1:0", {"forced_tool"}),
            ("amazon.nova-lite-v1:0", {"forced_tool"}),
            ("amazon.nova-2-lite-v1:0", set()),
            ("anthropic.claude-3-opus-20240229-v1:0", set()),
            ("anthropic.claude-opus-4-1-20250805-v1:0", {"both_samplings"}),
            ("anthropic.claude-opus-4-6", {"both_samplings"}),
            ("anthropic.claude-opus-4-7", {"temperature", "top_p"}),
            ("anthropic.claude-sonnet-5", {"temperature", "top_p"}),
        ],
    )
    def test_the_table_knows_what_models_lack(self, model_id, lacks):
        can = capabilities_of(model_id)

        fields = ("system", "forced_tool", "temperature", "top_p", "both_samplings")
        assert {field for field in fields if not getattr(can, field)} == lacks

    @pytest.mark.parametrize(
        ("message", "field"),
        [
            ("This model doesn't support system messages. Try again without one.", "system"),
            ("This model doesn\u2019t support tool use.", "forced_tool"),
            ("This model doesn't support the toolConfig.toolChoice.tool field.", "forced_tool"),
            ("`temperature` is deprecated for this model.", "temperature"),
            ("This model doesn't support the inferenceConfig.temperature field.", "temperature"),
            ("This model doesn't support the inferenceConfig.topP field.", "top_p"),
            ("`top_p` is deprecated for this model.", "top_p"),
            (
                "`temperature` and `top_p` cannot both be specified for this model.",
                "both_samplings",
            ),
            ("The maximum tokens you requested exceeds the model limit of 4096.", "max_tokens"),
            ("This model doesn't support the ConverseStream operation.", "streaming"),
            ("This model doesn't support tool use in streaming mode.", "streamed_tools"),
            ("Streaming tool use is not supported by this model.", "streamed_tools"),
            ("The model is unsupported for streaming.", "streaming"),
            (
                "You invoked an unsupported model or your request did not allow prompt caching.",
                "prompt_cache",
            ),
            ("prompt_caching is not available for this model", "prompt_cache"),
            ("Tier flex is not supported for this model", "service_tier"),
            ("Optimized latency is not supported for this model", "latency_profile"),
            ("Extraneous key [cachePoint] is not permitted", "prompt_cache"),
            ("The guardrail identifier or version provided does not exist.", "guardrail"),
            ("The service tier provided is invalid.", "service_tier"),
            ("Latency performance configuration is not supported for x.", "latency_profile"),
            ("performanceConfig is not supported.", "latency_profile"),
            ("thinking: Extra inputs are not permitted", "thinking"),
            ("Unknown parameter: 'reasoning_effort'.", "thinking"),
            ("output_config.effort: Extra inputs are not permitted", "thinking"),
            ("Thinking may not be enabled when tool_choice forces tool use.", "forced_tool"),
            ("`temperature` may only be set to 1 when thinking is enabled.", "temperature"),
            ("requestMetadata is not supported.", "request_metadata"),
            ("Malformed input request: #/temperature: 2 is not less or equal to 1", "temperature"),
            ("Malformed input request: #/inferenceConfig/topP: 2 is not less than 1", "top_p"),
            ("Value '2' at 'inferenceConfig.temperature' failed: must be under 1", "temperature"),
            ("This model does not support the flex tier.", "service_tier"),
            ("The tier 'flex' isn't available for this model in us-east-1.", "service_tier"),
            (
                "This model doesn't support the additionalModelRequestFields field.",
                "thinking",
            ),
            ("The provided request is not valid.", None),
            ("", None),
        ],
    )
    def test_the_services_words_tell_which_field_it_refuses(self, message, field):
        assert refused_field("invalid_request", message) == field


@pytest.mark.parametrize(
    ("code", "message", "field"),
    [
        (
            "access_denied",
            "User r is not authorized to perform: bedrock:InvokeModelWithResponseStream on: m",
            "streaming",
        ),
        ("access_denied", "is not authorized to perform: bedrock:InvokeModel on resource: m", None),
        ("access_denied", "is not authorized to perform: bedrock:ApplyGuardrail", "guardrail"),
        ("access_denied", "your request did not allow prompt caching.", "prompt_cache"),
        ("access_denied", "This model doesn't support system messages.", None),
        ("unknown_model", "The guardrail does not exist.", "guardrail"),
        ("throttled", "guardrail", None),
    ],
)
def test_only_some_errors_refuse_a_field(code, message, field):
    assert refused_field(code, message) == field


def body(*content: object, stop_reason: object = "end_turn") -> dict[str, Any]:
    return {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": stop_reason,
    }


class TestAnswer:
    def test_blocks_are_read_in_order(self):
        thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "x"}}}
        use = {"toolUse": {"toolUseId": "id-1", "name": "record", "input": {"form": 3}}}

        assert read_message(body(thought, {"text": "Well."}, use, {"citationsContent": {}})) == (
            Message(
                "assistant",
                (
                    Reasoning("Hm.", signature="x"),
                    Text("Well."),
                    ToolUse("id-1", "record", {"form": 3}),
                ),
            ),
            "end_turn",
        )

    def test_redacted_reasoning_is_kept_without_words(self):
        hidden = {"reasoningContent": {"redactedContent": b"x"}}

        thought = Reasoning("", encrypted="eA==")
        assert read_message(body(hidden)) == (Message("assistant", (thought,)), "end_turn")

    def test_no_content_is_an_empty_message(self):
        assert read_message(body(stop_reason="content_filtered")) == (
            Message("assistant", ()),
            "content_filtered",
        )

    def test_every_stop_reason_of_the_sdk_has_a_neutral_word(self):
        model = botocore.session.get_session().get_service_model("bedrock-runtime")
        words = model.shape_for("StopReason").enum

        assert len(words) >= 9
        assert "other" not in {neutral_stop_reason(word) for word in (*words, "refusal")}
        assert neutral_stop_reason("refusal") == "refusal"
        assert neutral_stop_reason("of a later version") == "other"

    def test_lone_surrogates_are_replaced(self):
        message, _ = read_message(body({"text": "a\ud800b"}))

        assert message.text == "a\ufffdb"

    @pytest.mark.parametrize(
        "response",
        [
            {},
            {"output": None, "stopReason": "end_turn"},
            {"output": {}, "stopReason": "end_turn"},
            {"output": {"message": None}, "stopReason": "end_turn"},
            {"output": {"message": {}}, "stopReason": "end_turn"},
            {"output": {"message": {"content": None}}, "stopReason": "end_turn"},
            {"output": {"message": {"content": [None]}}, "stopReason": "end_turn"},
            {"output": {"message": {"content": [5]}}, "stopReason": "end_turn"},
            {"output": {"message": {"content": 5}}, "stopReason": "end_turn"},
            {"output": {"message": "words"}, "stopReason": "end_turn"},
            body({"text": 5}),
            body({"text": None}),
            body({"toolUse": {}}),
            body({"toolUse": "record"}),
            body({"reasoningContent": "Hm."}),
            body({"reasoningContent": {"reasoningText": {"text": 5}}}),
            body({"text": "Why?"}, stop_reason=None),
            body({"text": "Why?"}, stop_reason=5),
            {"output": {"message": {"content": [{"text": "Why?"}]}}},
        ],
        ids=str,
    )
    def test_another_shape_is_no_answer(self, response):
        with pytest.raises(UnreadableAnswerError):
            read_message(response)


class TestUsage:
    def test_input_counts_what_went_through_the_cache(self):
        usage = {
            "inputTokens": 7,
            "outputTokens": 5,
            "totalTokens": 312,
            "cacheReadInputTokens": 200,
            "cacheWriteInputTokens": 100,
        }

        assert read_usage({"usage": usage}) == Usage(
            input_tokens=307, output_tokens=5, cache_read_tokens=200, cache_write_tokens=100
        )

    def test_without_a_cache_its_kinds_are_zero(self):
        assert read_usage({"usage": {"inputTokens": 7, "outputTokens": 5}}) == Usage(
            input_tokens=7, output_tokens=5
        )

    @pytest.mark.parametrize(
        "usage",
        [
            None,
            {},
            "many",
            5,
            {"outputTokens": 5},
            {"inputTokens": None, "outputTokens": 5},
            {"inputTokens": "7", "outputTokens": 5},
            {"inputTokens": 7, "outputTokens": "5"},
            {"inputTokens": 7, "outputTokens": 5, "cacheReadInputTokens": "x"},
            {"inputTokens": 7},
        ],
        ids=str,
    )
    def test_counters_that_cannot_be_read_are_unknown_and_not_zero(self, usage):
        assert read_usage({"usage": usage}) is None

    def test_no_counters_are_unknown(self):
        assert read_usage({}) is None


@pytest.mark.parametrize(
    ("response", "latency"),
    [
        ({"metrics": {"latencyMs": 120}}, 120.0),
        ({"metrics": {"latencyMs": "120"}}, None),
        ({"metrics": {}}, None),
        ({"metrics": None}, None),
        ({}, None),
    ],
)
def test_the_latency_is_what_the_service_says_or_unknown(response, latency):
    assert read_service_latency(response) == latency


class TestClean:
    @pytest.mark.parametrize(
        ("text", "cleaned"),
        [
            ("", ""),
            ("plain", "plain"),
            ("\ufeffa\ufeff", "\ufeffa\ufeff"),
            ("é😀\0", "é😀\0"),
            ("\ud800", "\ufffd"),
            ("a\udfffb", "a\ufffdb"),
            ("\udc00\ud800", "\ufffd\ufffd"),
            ("\ud83d\ude00", "😀"),
            ("\ud800x", "\ufffdx"),
        ],
    )
    def test_lone_surrogates_are_replaced_and_nothing_else(self, text, cleaned):
        assert clean(text) == cleaned

    @given(st.text(st.characters(exclude_categories=[]), max_size=30))
    def test_what_comes_out_can_be_written_and_stays(self, text):
        cleaned = clean(text)

        assert cleaned.encode().decode() == cleaned == clean(cleaned)

    @given(st.text(max_size=30))
    def test_text_that_can_be_written_stays_as_it_is(self, text):
        assert clean(text) == text


@pytest.mark.parametrize("count", [-1, True, 10**30, 1.5, "7", None])
def test_counters_that_are_no_counts_are_unknown(count):
    assert read_usage({"usage": {"inputTokens": count, "outputTokens": 3}}) is None


@pytest.mark.parametrize("latency", [-1, 10**400, float("inf"), float("nan"), "7", None])
def test_latencies_that_are_no_times_are_unknown(latency):
    assert read_service_latency({"metrics": {"latencyMs": latency}}) is None


class TestOfferedTools:
    """Tools that the model may call, as agents have them."""

    TOOLS = (
        Tool(name="look", description="Look.", input_schema={"type": "object"}),
        Tool(name="run", description="", input_schema={"type": "object"}),
    )

    def test_none_is_forced_and_signed_thoughts_go_back_word_for_word(self):
        thoughts = (Reasoning("Hm.", signature="s"), Reasoning("", encrypted="eA=="))
        said = Message("assistant", (*thoughts, Reasoning("unsigned"), ToolUse("1", "look", {})))
        result = Message("user", (ToolResult("1", "seen"),))
        request = Request(
            messages=(Message.user("Go."), said, result),
            config=GenerateConfig(max_tokens=100),
            tools=self.TOOLS,
        )
        arguments = converse_arguments("m", request, capabilities_of("unknown.model"))

        assert arguments["toolConfig"] == {
            "tools": [
                {
                    "toolSpec": {
                        "name": "look",
                        "description": "Look.",
                        "inputSchema": {"json": {"type": "object"}},
                    }
                },
                {"toolSpec": {"name": "run", "inputSchema": {"json": {"type": "object"}}}},
            ]
        }
        assert arguments["messages"][1]["content"] == [
            {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}},
            {"reasoningContent": {"redactedContent": b"x"}},
            {"toolUse": {"toolUseId": "1", "name": "look", "input": {}}},
        ]
