"""The manifest of Kubernetes by its schema, and Lambda's handler under its runtime client."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.command import ROOT, account
from tests.resuming import Service

MANIFEST = ROOT / "deploy" / "kubernetes" / "sweep.yaml"
MODEL = "emulator.socratic-v1:0"
EVENT = {
    "model": MODEL,
    "judge_model": "emulator.judge-v1:0",
    "scenario": "career-change",
    "turns": 4,
    "seed": 7,
}


def test_the_manifest_is_valid_and_strict():
    documents = [*yaml.safe_load_all(MANIFEST.read_text())]
    for document in documents:
        kubernetes_validate.validate(document, "1.33", strict=True)

    assert [document["kind"] for document in documents] == ["ServiceAccount", "ConfigMap", "Job"]


def test_a_misspelt_field_of_the_manifest_is_found():
    job = [*yaml.safe_load_all(MANIFEST.read_text())][-1]
    job["spec"]["backoffLimitPerIndexes"] = job["spec"].pop("backoffLimitPerIndex")

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.33", strict=True)


class RuntimeApi(ThreadingHTTPServer):
    """Lambda's Runtime API for one invocation: gives the event out once, keeps the answer."""

    def __init__(self, event: dict[str, Any], left_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _RuntimeRequest)
        self.event, self.left_s = event, left_s
        self.is_given = False
        self.answered = Event()
        self.answer: tuple[str, Any] = ("", None)


class _RuntimeRequest(BaseHTTPRequestHandler):
    server: RuntimeApi

    def do_GET(self) -> None:
        if self.server.is_given:  # there is no other invocation
            self.server.answered.wait()
            time.sleep(60)
        self.server.is_given = True
        body = json.dumps(self.server.event).encode()
        self.send_response(200)
        deadline_ms = round((time.time() + self.server.left_s) * 1000)
        headers = {
            "Lambda-Runtime-Aws-Request-Id": "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
            "Lambda-Runtime-Deadline-Ms": str(deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:1:function:run",
            "Lambda-Runtime-Trace-Id": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0",
            "Lambda-Runtime-Client-Context": "{}",
            "Lambda-Runtime-Cognito-Identity": "{}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.answer = self.path.rpartition("/")[2], json.loads(body)
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.answered.set()

    def log_message(self, *words: object) -> None: ...


@contextmanager
def runtime_api(event: dict[str, Any], left_s: float) -> Iterator[RuntimeApi]:
    with RuntimeApi(event, left_s) as server:
        server.daemon_threads = True
        server.block_on_close = False
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def invoke(service: Service, moto_url: str, bucket: str, *, left_s: float) -> tuple[str, Any]:
    """How one invocation of the function has ended, and its answer."""
    env = account(
        service.url,
        MODEL,
        AWS_ENDPOINT_URL_S3=moto_url,
        RUNNER_S3_BUCKET=bucket,
        AWS_LAMBDA_FUNCTION_NAME="run",
        AWS_LAMBDA_FUNCTION_MEMORY_SIZE="512",
        AWS_LAMBDA_FUNCTION_VERSION="1",
        AWS_LAMBDA_INITIALIZATION_TYPE="on-demand",
    )
    with runtime_api(EVENT, left_s) as server:
        host, port = server.server_address[:2]
        process = subprocess.Popen(
            [sys.executable, "-m", "awslambdaric", "handler.handler"],
            cwd=ROOT / "deploy" / "lambda",
            env={**env, "AWS_LAMBDA_RUNTIME_API": f"{host!s}:{port}", "HOME": os.environ["HOME"]},
        )
        try:
            assert server.answered.wait(60)
        finally:
            process.kill()
            process.wait()
        return server.answer


def test_a_run_that_the_functions_time_cuts_short_is_continued_by_the_same_event(
    service: Service, moto_url: str, bucket: str
):
    service.reset(latency_ms=700)
    cut_how, cut = invoke(service, moto_url, bucket, left_s=18)
    n_requests = len(service.requests)
    how, document = invoke(service, moto_url, bucket, left_s=900)
    repeated_how, repeated = invoke(service, moto_url, bucket, left_s=900)

    assert (cut_how, how, repeated_how) == ("response", "response", "response"), cut
    assert (cut["end_reason"], cut["status"]) == ("deadline", "partial")
    assert (document["status"], document["n_turns"]) == ("completed", 4)
    assert document["run_id"] == cut["run_id"] == repeated["run_id"]
    assert n_requests < len(service.requests)
    assert document["turns"] == repeated["turns"]


def test_a_wrong_event_is_an_error_of_the_invocation(
    service: Service, moto_url, bucket, monkeypatch
):
    monkeypatch.setitem(EVENT, "turns", 0)
    how, answer = invoke(service, moto_url, bucket, left_s=900)

    assert how == "error"
    assert answer["errorType"] == "UsageError"
    assert "turns is 0" in answer["errorMessage"]
