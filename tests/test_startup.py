"""What is imported when, and that the quick loader reads what the SDK's own would."""

import json
import socket
import subprocess
import sys

import pytest

from socratic_bench.models.bedrock.data import new_session
from socratic_bench.models.bedrock.endpoint_table import read_endpoints
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


def test_a_run_imports_neither_boto3_nor_the_s3_store():
    imported = _imported(
        *("--offline", "--model", "emulator.socratic-v1:0", "--prompt", "Hello?", "--turns", "1")
    )

    assert "botocore.session" in imported
    unwanted = {
        "tenacity",  # nothing failed
        "socratic_bench.storage.s3",
        "socratic_bench.studies.compare",
        "socratic_bench.studies.report",
        "socratic_bench.statistics",
        "socratic_bench.runs.doctor",
        "socratic_bench.documents.doctor",
        "socratic_bench.models.bedrock.account",
        "cli.doctor",
        "socratic_bench.benchmarks.socratic.scenarios.lint",
    }
    assert not imported & ((HEAVY | unwanted) - {"ulid"})


# What is imported beside the first call would come at its own time.
NOTHING_BESIDE = """
import runpy, sys
from cli import preloader
preloader.SENDING_S = 3600
sys.argv[0] = "cli"
runpy.run_module("cli", run_name="__main__", alter_sys=True)
"""


def _imported_before_the_first_byte(errors):
    alone = {k: v for k, v in environment().items() if not k.startswith("COVERAGE_")}
    models = ("--model", "some.tutor-v1:0", "--student-model", "some.student-v1:0")
    with socket.create_server(("127.0.0.1", 0)) as server, errors.open("w") as written:
        server.settimeout(60)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
        process = subprocess.Popen(
            [
                *(sys.executable, "-X", "importtime", "-c", NOTHING_BESIDE, *models, "--quiet"),
                *("--judge-model", "some.judge-v1:0", "--scenario", "career-change"),
            ],
            cwd=ROOT,
            env={
                **alone,
                **keys,
                "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
                "BEDROCK_MODEL_IDS": json.dumps([models[1]]),
            },
            stdout=subprocess.DEVNULL,
            stderr=written,
        )
        try:
            connection, _ = server.accept()
            with connection:
                connection.settimeout(60)
                assert connection.recv(1)
                lines = errors.read_text().splitlines()
        finally:
            process.kill()
            process.wait()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def test_the_first_request_waits_for_nothing_that_it_does_not_need(tmp_path):
    imported = _imported_before_the_first_byte(tmp_path / "errors.txt")

    assert "socratic_bench.models.bedrock.session" in imported
    unwanted = {
        "boto3",
        "tenacity",
        "statistics",
        "fractions",
        "difflib",
        "encodings.utf_8_sig",
        "socratic_bench.benchmarks.socratic.document",  # what is printed and stored of turns
        "socratic_bench.benchmarks.socratic.metrics",
        "socratic_bench.benchmarks.socratic.metrics_document",
        "socratic_bench.benchmarks.socratic.scenarios.fields",  # a teacher's own scenario
        "socratic_bench.models.call_errors",  # nothing failed
        "socratic_bench.models.rate_window",
        "socratic_bench.documents.result",
        "socratic_bench.documents.run",
        "socratic_bench.documents.usage",
        "socratic_bench.findings",  # a look beforehand
        "socratic_bench.judging.injection",
        "socratic_bench.judging.jury",
        "socratic_bench.judging.verdict",
        "socratic_bench.runs.closing",
        "socratic_bench.settings.listing",  # help's and documents'
        "socratic_bench.settings.toml_file",  # a teacher's own scenario
        "socratic_bench.storage.s3",
        "socratic_bench.studies.sweep",
    }
    assert not imported & unwanted


# In a process of its own: the SDK's clients change in place what their loader has read.
COMPARED = """
import sys, botocore.exceptions, botocore.session
from socratic_bench.models.bedrock.data import new_session

def read(session, name):
    loader = session.get_component("data_loader")
    try:
        if "/" in name or name in ("endpoints", "partitions"):
            return loader.load_data(name)
        assert name in loader.list_available_services("service-2")
        return loader.load_service_model(name, "service-2")
    except botocore.exceptions.DataNotFoundError as error:
        return str(error)

for name in sys.argv[1:]:
    assert read(new_session(), name) == read(botocore.session.Session(), name), name
print("same")
"""


def test_the_loader_reads_what_the_sdk_s_own_reads():
    data = ["endpoints", "partitions", "bedrock-runtime/2023-09-30/service-2", "s3/2006-03-01/x"]
    services = ["bedrock", "bedrock-runtime", "s3", "sso", "sso-oidc", "sts"]
    done = subprocess.run(
        [sys.executable, "-c", COMPARED, *data, *services],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("same\n", "")


def test_the_user_s_own_data_path_comes_first(tmp_path, monkeypatch):
    """As the SDK documents it for AWS_DATA_PATH."""
    model = {"metadata": {"endpointPrefix": "own"}, "operations": {}}
    folder = tmp_path / "own-service" / "2026-01-01"
    folder.mkdir(parents=True)
    (folder / "service-2.json").write_text(json.dumps(model))
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    loader = new_session().get_component("data_loader")

    assert loader.load_service_model("own-service", "service-2")["metadata"] == model["metadata"]


@pytest.mark.parametrize(
    "table", [{"partitions": [], "version": [3]}, {"partitions": [["aws"]]}, ["aws"]]
)
def test_a_table_of_endpoints_of_another_form_is_read_whole(table):
    assert read_endpoints(json.dumps(table).encode()) == table


def test_a_table_of_endpoints_that_is_no_json_is_named_as_other_files_are():
    with pytest.raises(ValueError, match="line 1"):
        read_endpoints(b'{"partitions": [')


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
