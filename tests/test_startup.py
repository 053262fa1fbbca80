"""What is imported when, and what sessions of the SDK read."""

import json
import subprocess
import sys

import pytest

from socratic_bench.models.bedrock.session import new_session
from tests.command import ROOT, environment

HEAVY = {"boto3", "s3transfer", "ulid", "moto"}


def _imported(*words):
    # What measures the coverage imports much of its own.
    alone = {k: v for k, v in environment().items() if not k.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "cli", *words],
        cwd=ROOT,
        env=alone,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_help_and_version_import_next_to_nothing(flag):
    imported = _imported(flag)

    assert not imported & {*HEAVY, "typing", "dataclasses", "json", "botocore", "shutil", "asyncio"}
    assert "socratic_bench.types" not in imported


def test_a_run_imports_neither_boto3_nor_the_studies_of_many_runs():
    imported = _imported(
        *("--offline", "--model", "emulator.socratic-v1:0", "--prompt", "Hello?", "--turns", "1")
    )

    assert "botocore.session" in imported
    unwanted = {"boto3", "s3transfer", "moto", "socratic_bench.studies", "cli.doctor"}
    assert not imported & unwanted


def test_the_user_s_own_data_path_comes_first(tmp_path, monkeypatch):
    """As the SDK documents it for AWS_DATA_PATH."""
    model = {"metadata": {"endpointPrefix": "own"}, "operations": {}}
    folder = tmp_path / "own-service" / "2026-01-01"
    folder.mkdir(parents=True)
    (folder / "service-2.json").write_text(json.dumps(model))
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    loader = new_session().get_component("data_loader")

    assert loader.load_service_model("own-service", "service-2")["metadata"] == model["metadata"]


def test_keys_in_the_environment_are_taken_before_those_of_a_profile(tmp_path, monkeypatch):
    """As the SDK documents the order of credentials."""
    file = tmp_path / "credentials"
    file.write_text("[own]\naws_access_key_id = of-file\naws_secret_access_key = secret-of-file\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "own")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-environment")
    assert new_session().get_credentials().access_key == "of-environment"

    monkeypatch.delenv("AWS_ACCESS_KEY_ID")

    assert new_session().get_credentials().access_key == "of-file"


def test_sessions_share_what_was_read():
    first, second = new_session(), new_session()

    assert first.get_component("data_loader") is second.get_component("data_loader")
