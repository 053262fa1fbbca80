"""Converse, ConverseStream and CountTokens as boto3 sees them."""

import json

import pytest
from botocore.exceptions import ClientError

from socratic_bench.emulator import Emulator, Settings
from tests.test_emulator_support import (
    JUDGE,
    SOCRATIC,
    SONNET,
    STUDENT,
    STUDENT_SYSTEM,
    TOOL,
    Raw,
    assistant,
    client,
    http,
    shown,
    text_of,
    user,
)

CACHE = {"cachePoint": {"type": "default"}}
LONG = "The cave, the line and the sun are images for one thing. " * 100


@pytest.fixture(scope="module")
def emulator():
    with Emulator(Settings()) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def bedrock(emulator):
    bedrock = client(emulator.url)
    yield bedrock
    bedrock.close()


def refusal(bedrock, **request):
    """The message with which a request is refused as not valid."""
    with pytest.raises(ClientError) as caught:
        bedrock.converse(**({"modelId": SOCRATIC, "messages": [user("Why?")]} | request))
    error = caught.value.response["Error"]
    assert error["Code"] == "ValidationException"
    return error["Message"]


def raw_refusal(emulator, body, path="/model/emulator.socratic-v1%3A0/converse"):
    """The same for a body that boto3 would not send."""
    with Raw(emulator.url) as raw:
        raw.send(http(json.dumps(body).encode(), path=path))
        status, headers, answer = raw.answer()
    assert (status, headers["x-amzn-errortype"]) == (400, "ValidationException")
    return json.loads(answer)["message"]


def test_each_role_is_told_by_its_request(emulator, bedrock):
    bedrock.converse(modelId=SOCRATIC, messages=[user("Why?"), assistant("Hm."), user("So?")])
    bedrock.converse(modelId=STUDENT, system=STUDENT_SYSTEM, messages=[user("Begin.")])
    bedrock.converse(
        modelId=STUDENT, messages=[user("Be a student. Close with [[end of dialogue]].")]
    )
    bedrock.converse(modelId=JUDGE, messages=[shown("What do you mean?")])
    bedrock.converse(
        modelId=JUDGE, messages=[shown("Why?"), assistant("Well."), user("As JSON, please.")]
    )

    roles = [(record.role, record.turn) for record in emulator.requests[-5:]]
    assert roles == [("tutor", 1), ("student", 0), ("student", 0), ("judge", 0), ("judge", 1)]


def test_the_same_request_gets_the_same_text_however_it_is_asked_for(bedrock):
    request = {"modelId": SOCRATIC, "messages": [user("What is courage?")]}

    plain = text_of(bedrock.converse(**request))
    cached = text_of(bedrock.converse(**request, system=[{"text": "Ask."}, CACHE]))

    assert text_of(bedrock.converse(**request)) == plain
    assert streamed(bedrock, **request)["text"] == plain
    assert text_of(bedrock.converse(**request, requestMetadata={"run": "2"})) == plain
    assert text_of(bedrock.converse(**request, system=[{"text": "Ask."}])) == cached


def streamed(bedrock, **request):
    """A stream read to its end: its events' names, and what they add up to."""
    events = list(bedrock.converse_stream(**request)["stream"])
    deltas = [
        event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event
    ]
    return {
        "names": [next(iter(event)) for event in events],
        "text": "".join(delta.get("text", "") for delta in deltas),
        "input": "".join(delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta),
        "events": events,
    }


def test_a_stream_tells_its_text_in_pieces_and_ends_with_its_metadata(bedrock):
    stream = streamed(bedrock, modelId=SOCRATIC, messages=[user("What is courage?")])

    names = stream["names"]
    assert names[0] == "messageStart"
    assert names.count("contentBlockDelta") >= 2
    assert names[-3:] == ["contentBlockStop", "messageStop", "metadata"]
    usage = stream["events"][-1]["metadata"]["usage"]
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]


def test_a_streamed_tool_call_begins_with_its_name(bedrock):
    stream = streamed(bedrock, modelId=JUDGE, messages=[shown("Why so?")], toolConfig=TOOL)

    start = stream["events"][1]["contentBlockStart"]
    assert start["start"]["toolUse"]["name"] == "record_verdict"
    assert set(json.loads(stream["input"])) == {"form", "substance", "purity", "rationale"}
    assert stream["events"][-2]["messageStop"] == {"stopReason": "tool_use"}


def test_a_streamed_thought_comes_first_and_is_signed(bedrock):
    stream = streamed(
        bedrock,
        modelId=SONNET,
        messages=[user("What is courage?")],
        additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 1024}},
    )

    deltas = [e["contentBlockDelta"] for e in stream["events"] if "contentBlockDelta" in e]
    assert "reasoningContent" in deltas[0]["delta"]
    assert [d["delta"] for d in deltas if "signature" in d["delta"].get("reasoningContent", {})]
    assert stream["text"].endswith("?")


def test_a_judge_answers_by_the_tool_that_is_forced_on_it_or_in_json(bedrock):
    forced = bedrock.converse(modelId=JUDGE, messages=[shown("Why so?")], toolConfig=TOOL)
    plain = bedrock.converse(modelId=JUDGE, messages=[shown("Why so?")])

    (block,) = forced["output"]["message"]["content"]
    assert forced["stopReason"] == "tool_use"
    assert block["toolUse"]["name"] == "record_verdict"
    assert block["toolUse"]["input"] == json.loads(text_of(plain))


def test_a_tutor_fills_a_tool_that_is_forced_on_it(bedrock):
    schema = {
        "type": "object",
        "properties": {
            "question": {"type": "string"},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
            "sure": {"type": ["boolean", "null"]},
            "odd": True,
            "score": {"type": "number"},
        },
    }
    spec = {"toolSpec": {"name": "ask", "inputSchema": {"json": schema}}}

    answer = bedrock.converse(
        modelId=SOCRATIC,
        messages=[user("Why?")],
        toolConfig={"tools": [spec], "toolChoice": {"any": {}}},
    )

    use = answer["output"]["message"]["content"][0]["toolUse"]
    assert use["input"].pop("question") == use["input"].pop("odd")
    assert use["input"] == {"tags": ["a"], "sure": False, "score": 0}


def test_a_reply_is_cut_by_its_limits(bedrock):
    request = {"modelId": SOCRATIC, "messages": [user("What is courage?")]}
    whole = text_of(bedrock.converse(**request))

    cut = bedrock.converse(**request, inferenceConfig={"maxTokens": 3})
    stopped = bedrock.converse(
        **request,
        inferenceConfig={"stopSequences": ["zzz", "?"]},
        additionalModelResponseFieldPaths=["/stop_sequence"],
    )
    tool = bedrock.converse(
        modelId=JUDGE,
        messages=[shown("Why?")],
        toolConfig=TOOL,
        inferenceConfig={"maxTokens": 5},
    )

    assert (text_of(cut), cut["stopReason"]) == (whole[:12], "max_tokens")
    assert (text_of(stopped), stopped["stopReason"]) == (whole.partition("?")[0], "stop_sequence")
    assert "additionalModelResponseFields" in stopped
    assert tool["stopReason"] == "max_tokens"
    assert tool["output"]["message"]["content"][0]["toolUse"]["input"] == {}


def test_what_was_served_is_echoed(bedrock):
    answer = bedrock.converse(
        modelId=SOCRATIC,
        messages=[user("Why?")],
        performanceConfig={"latency": "optimized"},
        serviceTier={"type": "flex"},
    )

    assert answer["performanceConfig"] == {"latency": "optimized"}
    assert answer["serviceTier"] == {"type": "flex"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"messages": [{"role": "robot", "content": []}]},
            (
                "Value 'robot' at 'messages.0.role' failed to satisfy constraint: Member must "
                "satisfy enum value set: [user, assistant, system]"
            ),
        ),
        (
            {"messages": [{"role": "user"}]},
            'Missing required parameter in messages[0]: "content"',
        ),
        (
            {"messages": [{"role": "user", "content": [{"text": 5}]}]},
            "Invalid type for parameter messages[0].content[0].text",
        ),
        (
            {"messages": [{"role": "user", "content": [{"text": "a", **CACHE}]}]},
            "Invalid number of parameters set for tagged union structure messages[0].content[0]",
        ),
        ({"messages": [{"role": "user", "content": [{}]}]}, "Must set one of the following keys"),
        ({"messages": {}}, "Invalid type for parameter messages,"),
        ({"messages": ["hello"]}, "Invalid type for parameter messages[0],"),
        ({"inferenceConfig": {"topK": 5}}, 'Unknown parameter in inferenceConfig: "topK"'),
        ({"inferenceConfig": {"maxTokens": 0}}, "valid min value: 1"),
        (
            {"inferenceConfig": {"maxTokens": 1.5}},
            "parameter inferenceConfig.maxTokens",
        ),
        ({"inferenceConfig": {"temperature": 1.5}}, "value less than or equal to 1"),
        ({"inferenceConfig": {"temperature": float("nan")}}, "failed to satisfy constraint"),
        (
            {"inferenceConfig": {"temperature": "hot"}},
            "parameter inferenceConfig.temperature",
        ),
        ({"inferenceConfig": {"stopSequences": [""]}}, "valid min length: 1"),
        ({"system": [{"text": ""}]}, "valid min length: 1"),
        ({"requestMetadata": {}}, "length greater than or equal to 1"),
        ({"requestMetadata": {"a": "*"}}, "regular expression pattern"),
        ({"requestMetadata": {"k" * 300: "v"}}, "length less than or equal to 256"),
        ({"requestMetadata": []}, "Invalid type for parameter requestMetadata"),
        ({"serviceTier": {"type": "cheap"}}, "enum value set: [priority, default, flex, reserved]"),
        ({"toolConfig": {"tools": []}}, "Invalid length for parameter toolConfig.tools"),
        (
            {"toolConfig": {"tools": [{"toolSpec": {"name": "a b", "inputSchema": {"json": {}}}}]}},
            "'toolConfig.tools.0.toolSpec.name' failed to satisfy constraint",
        ),
        (
            {
                "toolConfig": {
                    "tools": [{"toolSpec": {"name": "a", "strict": 1, "inputSchema": {"json": {}}}}]
                }
            },
            "Invalid type for parameter toolConfig.tools[0].toolSpec.strict",
        ),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"image": {"format": "png", "source": {"bytes": "???"}}}],
                    }
                ]
            },
            "Member must be a base64 string",
        ),
    ],
)
def test_a_body_that_breaks_the_model_is_refused_precisely(emulator, change, message):
    body = {"messages": [user("Why?")]} | change

    assert message in raw_refusal(emulator, body)


def test_an_absent_value_and_a_null_are_the_same(emulator):
    body = {"messages": [user("Why?")], "system": None, "inferenceConfig": {"maxTokens": None}}
    with Raw(emulator.url) as raw:
        raw.send(http(json.dumps(body).encode()))

        assert raw.answer()[0] == 200


def test_an_id_that_breaks_the_model_is_refused(emulator):
    message = raw_refusal(emulator, {"messages": [user("Why?")]}, "/model/no%20good%21/converse")

    assert "Value 'no good!' at 'modelId' failed to satisfy constraint" in message


def tool_result(number):
    return {"toolResult": {"toolUseId": number, "content": [{"text": "done"}]}}


def tool_use(number):
    use = {"toolUse": {"toolUseId": number, "name": "record_verdict", "input": {}}}
    return {"role": "assistant", "content": [use]}


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (
            [user("a"), {**tool_use("t1"), "content": [{"text": ""}, *tool_use("t1")["content"]]}],
            "The text field in the ContentBlock object at messages.1.content.0 is blank",
        ),
        (
            [user("a"), tool_use("t1"), user("b")],
            "Expected toolResult blocks at messages.2.content",
        ),
        (
            [{"role": "user", "content": [tool_result("t1")]}],
            "exceeds the number of toolUse blocks of previous turn",
        ),
    ],
)
def test_tool_calls_and_their_results_have_an_order(bedrock, messages, message):
    tools = {"tools": TOOL["tools"]}

    assert message in refusal(bedrock, messages=messages, toolConfig=tools)


@pytest.mark.parametrize(
    "body", [b"[]", b"{", b"\xff", b"[" * 200_000, b'{"messages": ' + b"9" * 5000 + b"}"]
)
def test_a_body_that_is_no_json_object_is_refused(emulator, body):
    with Raw(emulator.url) as raw:
        raw.send(http(body))
        status, headers, _ = raw.answer()

    assert (status, headers["x-amzn-errortype"]) == (400, "SerializationException")


def test_text_that_is_no_valid_unicode_is_taken_and_answered(emulator):
    body = b'{"messages": [{"role": "user", "content": [{"text": "what is a \\ud800 letter?"}]}]}'
    with Raw(emulator.url) as raw:
        raw.send(http(body))
        status, _, answer = raw.answer()

    assert status == 200
    assert json.loads(answer)["output"]["message"]["content"][0]["text"].endswith("?")


def test_a_tool_call_may_be_answered_where_tools_are_defined(bedrock):
    messages = [user("a"), tool_use("t1"), {"role": "user", "content": [tool_result("t1")]}]

    assert "toolConfig field must be defined" in refusal(bedrock, messages=messages)
    answer = bedrock.converse(
        modelId=SOCRATIC, messages=messages, toolConfig={"tools": TOOL["tools"]}
    )
    assert text_of(answer)


@pytest.mark.parametrize(
    ("model", "request_fields", "message"),
    [
        ("amazon.titan-text-express-v1", {"system": [{"text": "Ask."}]}, "support system messages"),
        (
            "mistral.mistral-7b-instruct-v0:2",
            {"system": [{"text": "Ask."}]},
            "This model doesn't support system messages. Try again without a system message",
        ),
        (
            "us.meta.llama3-3-70b-instruct-v1:0",
            {"toolConfig": TOOL},
            (
                "This model doesn't support the toolConfig.toolChoice.tool field. "
                "Remove toolConfig.toolChoice.tool and try again."
            ),
        ),
        ("us.deepseek.r1-v1:0", {"toolConfig": TOOL}, "toolConfig.toolChoice.tool field"),
        ("us.mistral.pixtral-large-2502-v1:0", {"toolConfig": TOOL}, "toolChoice.tool field"),
        ("amazon.titan-text-express-v1", {"toolConfig": TOOL}, "support the toolConfig field"),
        (
            SONNET,
            {"inferenceConfig": {"temperature": 0.5, "topP": 0.9}},
            "`temperature` and `top_p` cannot both be specified for this model",
        ),
        (
            "global.anthropic.claude-opus-4-7",
            {"inferenceConfig": {"topP": 0.9}},
            "`top_p` is deprecated for this model",
        ),
        (
            "us.anthropic.claude-sonnet-5",
            {"inferenceConfig": {"temperature": 0}},
            "`temperature` is deprecated for this model",
        ),
        (
            "us.anthropic.claude-opus-4-6-v1",
            {"messages": [user("Why?"), assistant("Because")]},
            "does not support assistant message prefill",
        ),
        (
            "anthropic.claude-3-haiku-20240307-v1:0",
            {"inferenceConfig": {"maxTokens": 4097}},
            (
                "The maximum tokens you requested exceeds the model limit of 4096. Try again "
                "with a maximum tokens value that is lower than 4096."
            ),
        ),
        (
            "mistral.mistral-large-2402-v1:0",
            {"system": [{"text": "Ask."}, CACHE]},
            "You invoked an unsupported model or your request did not allow prompt caching",
        ),
        (SOCRATIC, {"system": [{"text": "Ask."}, *[CACHE] * 5]}, "Found 5"),
        (
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            {},
            "with on-demand throughput isn\u2019t supported",
        ),
        (
            "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-20250514-v1:0",
            {},
            "with on-demand throughput isn\u2019t supported",
        ),
        ("emulator.picky-v1:0", {"system": [{"text": "Ask."}]}, "support system messages"),
        ("emulator.picky-v1:0", {"toolConfig": TOOL}, "toolConfig.toolChoice.tool field"),
        (
            "emulator.picky-v1:0",
            {"inferenceConfig": {"temperature": 0}},
            "This model doesn't support the inferenceConfig.temperature field.",
        ),
        (
            SOCRATIC,
            {"toolConfig": {**TOOL, "toolChoice": {"tool": {"name": "other"}}}},
            "The tool other in toolConfig.toolChoice.tool is not one of the tools",
        ),
        (
            "amazon.nova-lite-v1:0",
            {
                "outputConfig": {
                    "textFormat": {
                        "type": "json_schema",
                        "structure": {"jsonSchema": {"schema": "{}"}},
                    }
                }
            },
            "doesn't support the outputConfig.textFormat field",
        ),
    ],
)
def test_each_model_refuses_what_the_real_one_refuses(bedrock, model, request_fields, message):
    assert message in refusal(bedrock, modelId=model, **request_fields)


@pytest.mark.parametrize(
    ("model", "thinking", "request_fields", "message"),
    [
        (SONNET, {"budget_tokens": 1000}, {}, "greater than or equal to 1024"),
        (
            SONNET,
            {"budget_tokens": 2000},
            {"inferenceConfig": {"maxTokens": 2000}},
            "`max_tokens` must be greater than `thinking.budget_tokens`",
        ),
        (SONNET, {"budget_tokens": 64000}, {}, "`max_tokens` must be greater"),
        (
            SONNET,
            {"budget_tokens": 2000},
            {"inferenceConfig": {"temperature": 0.5}},
            "`temperature` may only be set to 1",
        ),
        (SONNET, {"budget_tokens": 2000}, {"toolConfig": TOOL}, "when tool_choice forces tool use"),
        ("amazon.nova-pro-v1:0", {"budget_tokens": 2000}, {}, "Extra inputs are not permitted"),
    ],
)
def test_thinking_has_rules(bedrock, model, thinking, request_fields, message):
    fields = {"thinking": {"type": "enabled", **thinking}}

    assert message in refusal(
        bedrock, modelId=model, additionalModelRequestFields=fields, **request_fields
    )


def test_a_model_at_the_end_of_its_life_is_not_found(bedrock):
    with pytest.raises(ClientError, match="reached the end of its life") as caught:
        bedrock.converse(modelId="anthropic.claude-v2:1", messages=[user("Why?")])

    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"


def test_a_reasoning_model_thinks_without_being_asked(bedrock):
    answer = bedrock.converse(modelId="us.deepseek.r1-v1:0", messages=[user("Why?")])

    assert "reasoningContent" in answer["output"]["message"]["content"][0]


def usage_of(bedrock, *messages, system=LONG, model=SOCRATIC):
    answer = bedrock.converse(
        modelId=model, system=[{"text": system}, CACHE], messages=list(messages)
    )
    usage = answer["usage"]
    return usage["inputTokens"], usage["cacheReadInputTokens"], usage["cacheWriteInputTokens"]


def test_a_prefix_is_written_once_and_read_from_then_on(bedrock):
    system = LONG + "First of all."

    fresh, read, written = usage_of(bedrock, user("Why?"), system=system)
    again = usage_of(bedrock, user("How?"), system=system)

    assert (read, written > 1024) == (0, True)
    assert again == (fresh, written, 0)
    assert usage_of(bedrock, user("How?"), system=system + "!")[1] == 0
    assert usage_of(bedrock, user("How?"), system=system, model="emulator.judge-v1:0")[1] == 0


def test_a_short_prefix_is_not_cached(bedrock):
    assert usage_of(bedrock, user("Why?"), system="Short.")[1:] == (0, 0)
    assert usage_of(bedrock, user("Why?"), system="Short.")[1:] == (0, 0)


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 1024),
        ("us.anthropic.claude-sonnet-4-6", 2048),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", 4096),
    ],
)
def test_a_prefix_is_cached_from_the_model_s_own_minimum_on(bedrock, model, minimum):
    under, over = ("so " * round((minimum + more) * 4 / 3) for more in (-400, 400))

    assert usage_of(bedrock, user("Why?"), system=under, model=model)[1:] == (0, 0)
    assert usage_of(bedrock, user("Why?"), system=over, model=model)[2] >= minimum


def test_a_growing_dialogue_reads_what_it_had_written(bedrock):
    """The cache point moves on with the last message; the one before is found by looking back."""
    dialogue = [user(LONG + "Second of all.", "Why?")]
    reads = []
    for turn in range(3):
        last = {"role": "user", "content": [*dialogue[-1]["content"], CACHE]}
        answer = bedrock.converse(modelId=SOCRATIC, messages=[*dialogue[:-1], last])
        reads.append(answer["usage"]["cacheReadInputTokens"])
        dialogue += [assistant(text_of(answer)), user(f"Because of {turn}.")]

    assert reads[0] == 0
    assert 1024 < reads[1] < reads[2]


def test_what_lies_more_than_twenty_blocks_back_is_not_found(bedrock):
    texts = [LONG + "Third of all.", *(f"Point {number}." for number in range(25))]
    near, far = texts[:15], texts
    for part in ([texts[0]], near, far):
        message = user(*part)
        message["content"].append(CACHE)
        answer = bedrock.converse(modelId=SOCRATIC, messages=[message])
        last_read = answer["usage"]["cacheReadInputTokens"]
        if part is near:
            assert last_read > 0

    assert last_read > 0
    message = user(LONG + "Fourth of all.", *texts[1:])
    first = {"role": "user", "content": [message["content"][0], CACHE]}
    bedrock.converse(modelId=SOCRATIC, messages=[first])
    message["content"].append(CACHE)
    answer = bedrock.converse(modelId=SOCRATIC, messages=[message])
    assert answer["usage"]["cacheReadInputTokens"] == 0
    assert answer["usage"]["cacheDetails"][0]["ttl"] == "5m"


def test_cached_tokens_are_not_counted_as_input_but_in_the_total(bedrock):
    counted = bedrock.count_tokens(
        modelId=SOCRATIC,
        input={"converse": {"system": [{"text": LONG + "Fifth."}], "messages": [user("Why not?")]}},
    )["inputTokens"]

    fresh, read, written = usage_of(bedrock, user("Why not?"), system=LONG + "Fifth.")

    assert fresh + read + written == counted


@pytest.mark.parametrize("model", ["amazon.nova-lite-v1:0", SONNET])
def test_some_models_do_not_count_tokens(bedrock, model):
    with pytest.raises(ClientError, match="The provided model doesn't support counting tokens"):
        bedrock.count_tokens(modelId=model, input={"converse": {"messages": [user("Why?")]}})


def test_tokens_of_a_native_request_are_counted_too(bedrock):
    counted = bedrock.count_tokens(modelId=SOCRATIC, input={"invokeModel": {"body": b"x" * 300}})

    assert counted["inputTokens"] > 0
