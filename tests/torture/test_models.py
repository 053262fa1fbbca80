"""Each family of models as the command calls it: settings in the family's own form, or refused."""

import json
from collections.abc import Iterator

import pytest

from tests.command import CLAUDE, Outcome, account, daily, run
from tests.fakes import FakeBedrock, Sent, answer, refusal, scored

WARM = ("--temperature", "0.5")
THINK = ("--enable-thinking",)
HARD = ("--enable-thinking", "--thinking-budget-tokens", "5000")
FIELDS = "additionalModelRequestFields"


@pytest.fixture(scope="module")
def service() -> Iterator[FakeBedrock]:
    with FakeBedrock() as fake:
        yield fake


def play(service: FakeBedrock, model: str, *words: str) -> tuple[Outcome, list[Sent]]:
    """A run of one turn, and what it sent to the model under test."""
    service.reset()
    outcome = run(
        *("--model", model, "--prompt", "Hi", "--turns", "1", "--no-judge", *words),
        env=account(service.url, model),
    )
    return outcome, service.of(model)


@pytest.mark.parametrize(
    ("model", "words", "sent"),
    daily(
        [
            # a budget
            (
                "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                HARD,
                {"thinking": {"type": "enabled", "budget_tokens": 5000}},
            ),
            (
                "nobody.knows-v1:0",
                THINK,
                {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            ),
            # levels
            (
                "us.anthropic.claude-opus-4-7",
                THINK,
                {
                    "thinking": {"type": "adaptive", "display": "summarized"},
                    "output_config": {"effort": "low"},
                },
            ),
            (
                "global.anthropic.claude-sonnet-5-5",
                HARD,
                {
                    "thinking": {"type": "adaptive", "display": "summarized"},
                    "output_config": {"effort": "high"},
                },
            ),
            ("openai.gpt-oss-120b-1:0", (*HARD, *WARM), {"reasoning_effort": "high"}),
            ("openai.gpt-oss-safeguard-20b", (*THINK, *WARM), {"reasoning_effort": "low"}),
            ("us.openai.gpt-6-sol", THINK, {"reasoning": {"effort": "low"}}),
            ("global.moonshotai.kimi-k3", HARD, {"reasoning": {"effort": "high"}}),
            (
                "us.amazon.nova-2-lite-v1:0",
                (*HARD, *WARM),
                {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}},
            ),
            # on or off
            ("qwen.qwen3-32b-v1:0", (*THINK, *WARM), {"reasoning_config": "high"}),
            ("moonshotai.kimi-k2.5", (*THINK, *WARM), {"reasoning_config": "high"}),
            ("minimax.minimax-m2.5", (*THINK, *WARM), {"reasoning_config": "high"}),
            ("zai.glm-4.7", (*THINK, *WARM), {"reasoning_config": "high"}),
            ("deepseek.v3.2", (*THINK, *WARM), {"reasoning_config": "high"}),
            ("nvidia.nemotron-super-3-120b", (*THINK, *WARM), {"reasoning_config": "high"}),
        ],
        first=10,
    ),
)
def test_thinking_is_asked_for_in_the_family_s_own_form(service, model, words, sent):
    outcome, requests = play(service, model, *words)

    assert outcome.exit_code == 0, outcome.document["error"]
    assert [request.body[FIELDS] for request in requests] == [sent]
    temperature = {"temperature": 0.5} if "--temperature" in words else {}
    assert requests[0].body["inferenceConfig"].items() >= temperature.items()
    assert "cachePoint" not in json.dumps(requests[0].body) or "claude" in model


@pytest.mark.parametrize(
    "model",
    daily(
        [
            "mistral.magistral-small-2509",
            "google.gemma-3-27b-it",
            "nvidia.nemotron-nano-9b-v2",
            "writer.palmyra-x5-v1:0",
            "qwen.qwen3-coder-next",
            "us.meta.llama4-scout-17b-instruct-v1:0",
        ],
        first=2,
    ),
)
def test_a_temperature_goes_out_where_thinking_is_refused_before_the_first_call(service, model):
    warm, requests = play(service, model, *WARM)
    assert warm.exit_code == 0, warm.document["error"]
    assert [request.body["inferenceConfig"]["temperature"] for request in requests] == [0.5]

    refused, requests = play(service, model, *THINK)
    assert (refused.exit_code, requests) == (2, [])
    assert f"{model} takes no --enable-thinking: leave it out." in refused.stderr


@pytest.mark.parametrize(
    "model",
    daily(
        [
            "us.anthropic.claude-opus-5",
            "us.anthropic.claude-fable-5",
            "global.openai.gpt-5.6-luna",
            "us.xai.grok-4.6",
            "in.moonshotai.kimi-k3",
            "il.anthropic.claude-opus-4-7",
            "mx.anthropic.claude-sonnet-5",
        ],
        first=2,
    ),
)
def test_a_temperature_that_the_family_refuses_is_named_before_the_first_call(service, model):
    refused, requests = play(service, model, *WARM, "--top-p", "0.9")

    assert (refused.exit_code, requests) == (2, [])
    for flag in ("--temperature", "--top-p"):
        assert f"{model} takes no {flag}: leave it out." in refused.stderr


def test_claude_thinks_at_one_temperature_and_others_at_any(service):
    claude = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
    refused, requests = play(service, claude, *THINK, *WARM)

    assert (refused.exit_code, requests) == (2, [])
    assert "--enable-thinking allows no --temperature but 1, not 0.5" in refused.stderr


def test_a_judge_that_thinks_whenever_it_is_asked_is_asked_in_words(service):
    """The table does not know that it always thinks; the service says so."""
    tool_and_thought = "Thinking may not be enabled when tool_choice forces tool use."

    def judge(sent: Sent) -> object:
        if "toolConfig" in sent.body:
            return refusal(400, "ValidationException", tool_and_thought)
        use = json.loads(scored(3, 3, 4).body)["output"]["message"]["content"][0]["toolUse"]
        return answer(json.dumps(use["input"]))

    service.reset()
    service.scripts["thinks.always-v1:0"] = judge
    outcome = run(
        *("--model", CLAUDE, "--prompt", "Hi", "--turns", "2"),
        *("--judge-model", "thinks.always-v1:0"),
        env=account(service.url),
    )

    assert outcome.exit_code == 0, outcome.document["error"]
    assert outcome.document["judge"]["coverage"] == 1.0
    assert outcome.document["notices"] == [
        "thinks.always-v1:0 refuses forced tool: the run continues without it."
    ]


def test_a_budget_that_only_chooses_a_level_is_told(service):
    told, _ = play(service, "openai.gpt-oss-120b-1:0", *HARD)
    least, _ = play(service, "openai.gpt-oss-120b-1:0", *THINK)
    exact, _ = play(service, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", *HARD)

    assert [text for text in told.document["notices"] if "5000 chooses the level" in text]
    assert least.document["notices"] == exact.document["notices"] == []
