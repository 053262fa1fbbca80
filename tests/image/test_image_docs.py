"""Every command of docs/docker.md is run, one block after the other, in the real engine."""

import json
import re

import pytest
import yaml

from tests.image.conftest import keys_in
from tests.image.engine import REPOSITORY

pytestmark = pytest.mark.image

PAGE = (REPOSITORY / "docs/docker.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# These are run where their services are looked at, in test_image_compose.py.
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


def shown(language):
    return [text for found, text in BLOCK.findall(PAGE) if found == language]


def test_every_command_works(shell, s3, tmp_path):
    commands = "\n".join(text for text in shown("bash"))
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
    (text,) = shown("text")
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


def test_steps_of_the_pipeline(shell, tmp_path):
    (text,) = shown("yaml")
    job = yaml.safe_load(text)["jobs"]["benchmark"]
    steps = [step["run"] for step in job["steps"] if "run" in step]
    setting = "".join(f"export {name}='{value}'\n" for name, value in job["env"].items())

    for step in steps:
        done = shell(setting + step.replace("run.json", str(tmp_path / "run.json")))

        assert done.code == 0, done.stderr
    assert json.loads((tmp_path / "run.json").read_text())["status"] == "completed"


def test_task_definition_names_words_that_the_image_takes(shell):
    (text,) = shown("json")
    container = json.loads(text)
    variables = [f"-e {entry['name']}='{entry['value']}'" for entry in container["environment"]]
    words = " ".join(container["command"])

    done = shell(f"docker run --rm --read-only {' '.join(variables)} {container['image']} {words}")

    assert done.code == 0, done.stderr
