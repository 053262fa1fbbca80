"""Documented commands, word for word, and each block of docs/docker.md, against stand-ins."""

import json
import re

import pytest

from tests.image.conftest import BUCKET, keys_in
from tests.image.engine import REPOSITORY, RUNNER, inspect

pytestmark = pytest.mark.image

SONNET = "anthropic.claude-3-5-sonnet-20241022-v1:0"
LLAMA = "meta.llama3-1-70b-instruct-v1:0"
MISTRAL = "mistral.mistral-large-2407-v1:0"
ENVIRONMENT = f"""
export AWS_REGION=us-east-1
export BEDROCK_MODEL_IDS='[
  "{SONNET}",
  "{LLAMA}",
  "{MISTRAL}"
]'
"""
BASIC = """
docker run --rm \\
  -e AWS_REGION=us-east-1 \\
  -e BEDROCK_MODEL_IDS='["anthropic.claude-3-5-sonnet-20241022-v1:0"]' \\
  socratic-runner \\
  --model anthropic.claude-3-5-sonnet-20241022-v1:0 \\
  --prompt "I'm considering a career change but unsure where to start."
"""
FULL = """
export AWS_REGION=us-east-1
export BEDROCK_MODEL_IDS='[
  "anthropic.claude-3-5-sonnet-20241022-v1:0",
  "meta.llama3-1-70b-instruct-v1:0"
]'
export RUNNER_S3_BUCKET=socratic-benchmark-data

docker run --rm \\
  -e AWS_REGION \\
  -e BEDROCK_MODEL_IDS \\
  -e RUNNER_S3_BUCKET \\
  socratic-runner \\
  --model anthropic.claude-3-5-sonnet-20241022-v1:0 \\
  --prompt "I'm considering a career change but unsure where to start." \\
  --turns 10
"""
CROSS_ACCOUNT = """
export AWS_REGION=us-east-1
export BEDROCK_ASSUME_ROLE_ARN=arn:aws:iam::123456789012:role/BedrockInvokeRole
export BEDROCK_MODEL_IDS='["anthropic.claude-3-5-sonnet-20241022-v1:0"]'

docker run --rm \\
  -e AWS_REGION \\
  -e BEDROCK_ASSUME_ROLE_ARN \\
  -e BEDROCK_MODEL_IDS \\
  socratic-runner \\
  --model anthropic.claude-3-5-sonnet-20241022-v1:0 \\
  --prompt "I'm exploring ethical dilemmas in AI development."
"""
JUDGE = """
export RUNNER_JUDGE_MODEL=anthropic.claude-3-opus-20240229-v1:0

docker run --rm \\
  -e AWS_REGION \\
  -e BEDROCK_MODEL_IDS \\
  -e RUNNER_JUDGE_MODEL \\
  socratic-runner \\
  --model anthropic.claude-3-5-sonnet-20241022-v1:0 \\
  --prompt "Your prompt here"
"""
PARALLEL = """
docker run --rm -e AWS_REGION -e BEDROCK_MODEL_IDS socratic-runner \\
  --model anthropic.claude-3-5-sonnet-20241022-v1:0 \\
  --prompt "Prompt 1" &

docker run --rm -e AWS_REGION -e BEDROCK_MODEL_IDS socratic-runner \\
  --model meta.llama3-1-70b-instruct-v1:0 \\
  --prompt "Prompt 1" &

docker run --rm -e AWS_REGION -e BEDROCK_MODEL_IDS socratic-runner \\
  --model mistral.mistral-large-2407-v1:0 \\
  --prompt "Prompt 1" &

wait
"""
BATCH = """\
#!/bin/bash
# batch-run.sh

MODELS=(
  "anthropic.claude-3-5-sonnet-20241022-v1:0"
  "meta.llama3-1-70b-instruct-v1:0"
  "mistral.mistral-large-2407-v1:0"
)

PROMPTS=(
  "I'm considering a career change."
  "I'm struggling with time management."
  "I'm facing an ethical dilemma at work."
)

for model in "${MODELS[@]}"; do
  for prompt in "${PROMPTS[@]}"; do
    docker run --rm \\
      -e AWS_REGION \\
      -e BEDROCK_MODEL_IDS \\
      -e RUNNER_S3_BUCKET \\
      socratic-runner \\
      --model "$model" \\
      --prompt "$prompt" \\
      --turns 5
  done
done
"""

# The quickstart's equal of that script: the prompts, and one command.
PROMPTS_AND_SWEEP = re.compile(
    r"Save this as `prompts\.txt`.*?^```text\n(.*?)^```\n\n^```bash\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)


def documents(stdout):
    return [json.loads(line) for line in stdout.splitlines()]


@pytest.mark.parametrize("tag", ["socratic-runner", "socratic-runner:1.0.0"])
def test_build(shell, tag):
    done = shell(f"docker build -t {tag} .")

    assert done.code == 0, done.stderr
    test_tag = tag.replace("socratic-runner", RUNNER)
    assert inspect(test_tag)["Config"]["Entrypoint"] == ["python", "-I", "-m", "socratic_runner"]


def test_basic_run(shell, bedrock):
    done = shell(BASIC)

    assert done.code == 0, done.stderr
    document = done.document
    assert (document["model"], document["scenario"]) == (SONNET, "career-change")
    assert document["status"] == "completed"
    assert document["n_turns"] == len(document["turns"]) == 40
    assert document["s3_artifacts"] is None
    assert {call.access_key for call in bedrock.calls} == {"AKIASTANDIN"}


def test_full_run_leaves_artifacts_in_the_bucket(shell, s3):
    done = shell(FULL)

    assert done.code == 0, done.stderr
    document = done.document
    run = f"runs/{document['run_id']}"
    assert document["s3_artifacts"] == {
        "raw": f"s3://{BUCKET}/raw/{run}/",
        "curated": f"s3://{BUCKET}/curated/{run}.json",
    }
    files = [f"{kind}_{turn:03}.json" for kind in ("judge", "turn") for turn in range(10)]
    files.insert(0, "closing_verdict.json")
    keys = keys_in(s3)
    assert [key for key in keys if not key.startswith("journal/")] == [
        f"curated/{run}.json",
        *(f"raw/{run}/{name}" for name in files),
    ]
    assert f"journal/{run}/lease.json" in keys
    curated = json.load(s3.get_object(Bucket=BUCKET, Key=f"curated/{run}.json")["Body"])
    assert curated["overall_score"] == document["overall_score"]


def test_cross_account_run_signs_with_the_role(shell, bedrock):
    done = shell(CROSS_ACCOUNT)

    assert done.code == 0, done.stderr
    assert done.document["status"] == "completed"
    assert all(call.access_key.startswith("ASIA") for call in bedrock.calls)


def test_custom_judge_model(shell):
    done = shell(ENVIRONMENT + JUDGE)

    assert done.code == 0, done.stderr
    assert done.document["judge"]["model"] == "anthropic.claude-3-opus-20240229-v1:0"
    assert done.document["scenario"] == "custom"


def test_three_models_in_parallel(shell):
    # They share one pipe, in which documents of more than 64 KiB can mix (docs/docker.md).
    done = shell(ENVIRONMENT + PARALLEL, RUNNER_DEFAULT_TURNS="20")

    assert done.code == 0, done.stderr
    runs = documents(done.stdout)
    assert {document["model"] for document in runs} == {SONNET, LLAMA, MISTRAL}
    assert [document["status"] for document in runs] == ["completed"] * 3


def test_batch_script(shell, s3, tmp_path):
    script = tmp_path / "batch-run.sh"
    script.write_text(BATCH)

    done = shell(f"{ENVIRONMENT}export RUNNER_S3_BUCKET={BUCKET}\nbash {script}")

    assert done.code == 0, done.stderr
    runs = documents(done.stdout)
    assert [document["model"] for document in runs] == [SONNET] * 3 + [LLAMA] * 3 + [MISTRAL] * 3
    assert {document["n_turns"] for document in runs} <= {1, 2, 3, 4, 5}
    curated = [key for key in keys_in(s3) if key.startswith("curated/")]
    assert curated == sorted(f"curated/runs/{document['run_id']}.json" for document in runs)

    prompts, sweep = PROMPTS_AND_SWEEP.search(
        (REPOSITORY / "docs/quickstart.md").read_text()
    ).groups()
    (tmp_path / "prompts.txt").write_text(prompts)
    at_once = shell(f"{ENVIRONMENT}cd {tmp_path}\n{sweep}")

    assert at_once.code == 0, at_once.stderr
    cells = at_once.document["runs"]
    pairs = sorted((cell["axes"]["model"], cell["axes"]["prompt"]) for cell in cells)
    assert pairs == sorted((document["model"], document["prompt"]) for document in runs)
    assert sum(key.startswith("curated/") for key in keys_in(s3)) == 2 * len(runs)


def test_model_that_is_not_allowed(shell, bedrock):
    done = shell(BASIC.replace("--model anthropic", "--model antropic"))

    assert done.code == 2
    assert done.document["end_reason"] == "usage"
    assert "Model not found in BEDROCK_MODEL_IDS" in done.stderr
    assert not bedrock.requests


def test_bucket_that_does_not_exist(shell):
    done = shell(FULL.replace(BUCKET, "nobody-made-this"))

    assert done.code == 2
    assert "No such bucket" in done.stderr


def test_help_and_version(shell):
    assert shell("docker run --rm socratic-runner --help").stdout.startswith("usage:")
    assert shell("docker run --rm socratic-runner --version").stdout.startswith("socratic-runner ")


PAGE = (REPOSITORY / "docs/docker.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# test_image_compose.py runs the commands of compose.
COMPOSE = """
docker() {
  case "$*" in
    "compose run --rm runner" | "compose run --rm tests") ;;
    "compose run --rm bucket list socratic-runs") ;;
    "build "*" .") command docker "${@:1:$#-1}" "$REPOSITORY" ;;
    *) command docker "$@" ;;
  esac
}
"""


def blocks(language):
    return [text for info, text in BLOCK.findall(PAGE) if info == language]


def test_every_command_of_the_page_works(shell, s3, tmp_path):
    commands = "\n".join(text for text in blocks("bash"))
    setting = f"cd {tmp_path}\nREPOSITORY={REPOSITORY}\n{COMPOSE}\nset -x\n"

    done = shell(setting + commands)

    assert done.code == 0, done.stderr
    documents = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(documents) == 7
    assert {document["status"] for document in documents} == {"completed"}
    assert len((tmp_path / "batch.jsonl").read_text().splitlines()) == 3
    assert sum(key.startswith("curated/") for key in keys_in(s3)) == 1


def test_profile(shell, bedrock, tmp_path):
    """Keys in variables would win over a profile, so this container gets none."""
    (text,) = blocks("text")
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        "[bench]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = secret\n"
    )
    (tmp_path / ".aws/credentials").chmod(0o600)
    setting = (
        f"export HOME={tmp_path} AWS_REGION=us-east-1\n"
        """export BEDROCK_MODEL_IDS='["anthropic.claude-3-5-sonnet-20241022-v1:0"]'\n"""
    )

    done = shell(setting + text, keys=False)

    assert done.code == 0, done.stderr
    assert {call.access_key for call in bedrock.calls} == {"AKIAPROFILE"}


def test_task_definition_names_words_that_the_image_takes(shell):
    (text,) = blocks("json")
    container = json.loads(text)
    variables = [f"-e {entry['name']}='{entry['value']}'" for entry in container["environment"]]
    words = " ".join(container["command"])

    done = shell(f"docker run --rm --read-only {' '.join(variables)} {container['image']} {words}")

    assert done.code == 0, done.stderr
