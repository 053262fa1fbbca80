"""Numbers that say what they rest on: flaws of replies, and the inputs of a run."""

import botocore
import pytest

from socratic_bench.version import VERSION
from tests.command import CLAUDE, account, assert_valid, run
from tests.fakes import FakeBedrock, answer, stored
from tests.test_cli_endings import play

ROUTED = "anthropic.claude-3-haiku-20240307-v1:0"
FLAWS = {
    "max_tokens": ("cut", True),
    "empty_reply": ("empty", False),
    "malformed_output": ("empty", False),
    "reasoning_only": ("reasoning_only", False),
    "filtered": ("content_filtered", False),
    "guardrail": ("guardrail", False),
    "context_stop": ("context_window", True),
}


@pytest.mark.parametrize("kind", FLAWS)
def test_a_reply_with_a_flaw_says_so_and_is_scored_as_documented(kind, tmp_path):
    flaw, is_judged = FLAWS[kind]
    outcome = play(f"{kind}:role=tutor:after=1", turns="2", words=("--output-dir", str(tmp_path)))
    first, second = outcome.document["turns"]
    (file,) = tmp_path.glob("raw/runs/*/turn_001.json")

    assert (first["flaw"], second["flaw"]) == (None, flaw)
    assert (second["score"] is not None) == is_judged
    assert stored(file.parent)["turn_001.json"]["notes"]["flaw"] == flaw


def test_the_curated_file_pins_what_the_run_was_made_of(tmp_path):
    """The judge is asked through a router, which says what it chose; the tutor has a tier."""
    given = {"form": 3, "substance": 3, "purity": 4, "rationale": {}}
    verdict = {"toolUse": {"toolUseId": "use-1", "name": "record_verdict", "input": given}}
    scripts = {
        CLAUDE: [answer("Why?", serviceTier={"type": "flex"})],
        "judge": [
            answer([verdict], "tool_use", trace={"promptRouter": {"invokedModelId": ROUTED}})
        ],
    }
    with FakeBedrock(scripts) as service:
        outcome = run(
            # No scenario, and so no closing question.
            *("--model", CLAUDE, "--judge-model", "judge", "--prompt", "Why?", "--turns", "2"),
            *("--no-stream", "--output-dir", str(tmp_path)),
            env=account(service.url, CLAUDE),
        )
    (file,) = tmp_path.glob("curated/runs/*.json")
    curated = stored(file.parent)[file.name]

    assert outcome.exit_code == 0
    assert_valid("curated", curated)
    assert curated["inputs"]["models"] == {
        "tutor": {"asked": CLAUDE, "served": None, "served_tiers": ["flex"]},
        "student": None,
        "judge": {"asked": "judge", "served": [ROUTED], "served_tiers": None},
    }
    assert curated["inputs"]["sdk_version"] == f"botocore {botocore.__version__}"
    assert curated["inputs"]["runner_version"] == VERSION
    assert {"region", "rubric_sha256"} <= set(curated["inputs"])
    assert curated["seed"] is not None
    assert curated["thresholds"]["half_life"] == 8.0
