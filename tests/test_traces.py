"""Traces: what is sent by OTLP, decoded by the official definitions; no run depends on it."""

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from socratic_bench.tracing import exporting
from socratic_bench.tracing.spans import EVALUATION, PROVIDERS, first_ids
from tests.command import ROOT, environment, run

TUTOR = "emulator.drift-5-v1:0"
PLAYED = ("--offline", "--model", TUTOR, "--scenario", "career-change", "--turns", "3", "--quiet")
REGISTRY = json.loads((ROOT / "tests/data/genai_names.json").read_text())


class Receiver:
    """An OTLP endpoint over HTTP: what it was sent, by path."""

    def __init__(self):
        self.spans, self.logs, self.requests = [], [], []

    def take(self, path, headers, body):
        self.requests.append((path, headers))
        if path.endswith("traces"):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        else:
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                self.logs += [log for scope in resource.scope_logs for log in scope.log_records]

    def named(self, name):
        return [span for span in self.spans if span.name.startswith(name)]


@contextmanager
def receiving(status=200, wait=lambda: None):
    received = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            wait()
            received.take(self.path, dict(self.headers), body)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield received, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def attributes(record):
    values = {}
    for entry in record.attributes:
        kind = entry.value.WhichOneof("value")
        values[entry.key] = getattr(entry.value, kind)
    return values


def play(url, *words, **variables):
    return run(*PLAYED, *words, env=environment(OTEL_EXPORTER_OTLP_ENDPOINT=url, **variables))


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """A run with traces over HTTP and in a file: what arrived, its document, and the files."""
    folder = tmp_path_factory.mktemp("traces")
    with receiving() as (received, url):
        outcome = play(url, "--otel", "--trace", str(folder / "trace.jsonl"))
    assert outcome.exit_code == 0
    return received, outcome.document, folder


def test_a_run_is_a_trace_of_turns_calls_and_attempts(sent):
    received, document, _ = sent
    (root,) = received.named("invoke_workflow")
    trace_id, span_id = first_ids(document["run_id"])
    assert (int.from_bytes(root.trace_id), int.from_bytes(root.span_id)) == (trace_id, span_id)
    assert {span.trace_id for span in received.spans} == {root.trace_id}
    turns = received.named("turn")
    assert [span.parent_span_id for span in turns] == [root.span_id] * document["n_turns"]
    calls = received.named("chat")
    assert len(calls) == document["usage"]["total"]["calls"]
    assert {span.parent_span_id for span in calls} <= {root.span_id, *(t.span_id for t in turns)}
    attempts = received.named("attempt")
    assert {span.parent_span_id for span in attempts} == {span.span_id for span in calls}
    assert all(span.kind == Span.SPAN_KIND_CLIENT for span in (*calls, *attempts))
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in received.spans)
    values = [attributes(span) for span in calls]
    assert {call["gen_ai.conversation.id"] for call in values} == {document["run_id"]}
    assert (
        sum(call["gen_ai.usage.input_tokens"] for call in values)
        == (document["usage"]["total"]["input_tokens"])
    )
    total_usd = document["cost"]["total"]["total_usd"]
    assert sum(call["socratic.cost_usd"] for call in values) == pytest.approx(total_usd, abs=1e-5)


def test_names_are_those_of_the_registry(sent):
    received, _, _ = sent
    known = {*REGISTRY["attributes"], "error.type"}
    for record in (*received.spans, *received.logs):
        names = attributes(record).keys()
        assert [n for n in names if n not in known and not n.startswith("socratic.")] == []
        operation = attributes(record).get("gen_ai.operation.name", "chat")
        assert operation in REGISTRY["operations"]
    assert {*PROVIDERS.values()} <= {*REGISTRY["providers"]}
    assert EVALUATION in REGISTRY["events"]


def test_each_score_is_an_event_of_the_reply_and_on_the_judges_span(sent):
    received, document, _ = sent
    by_role = {}
    for span in received.named("chat"):
        values = attributes(span)
        by_role.setdefault((values["socratic.role"], values["socratic.turn"]), []).append(span)
    assert {log.event_name for log in received.logs} == {EVALUATION}
    scores = {
        (values["socratic.turn"], values["gen_ai.evaluation.name"]): (log, values)
        for log in received.logs
        for values in [attributes(log)]
    }
    for turn in document["turns"]:
        (reply,) = by_role["tutor", turn["turn"]]
        for name, score in {**turn["scores"], "overall_score": turn["score"]}.items():
            log, values = scores.pop((turn["turn"], name))
            assert (log.trace_id, log.span_id) == (reply.trace_id, reply.span_id)
            assert values["gen_ai.evaluation.score.value"] == score
        verdicts = [attributes(span) for span in by_role["judge", turn["turn"]]]
        assert turn["score"] in [v.get("gen_ai.evaluation.score.value") for v in verdicts]
    assert scores == {}


def test_the_ordinary_variables_name_the_service(tmp_path):
    variables = {"OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "team=red"}
    outcome = run(*PLAYED, "--trace", str(tmp_path / "t.jsonl"), env=environment(**variables))
    assert outcome.exit_code == 0
    line = json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0])
    entries = line["resourceSpans"][0]["resource"]["attributes"]
    values = {entry["key"]: entry["value"].get("stringValue") for entry in entries}
    assert (values["service.name"], values["team"]) == ("mine", "red")


def test_the_file_has_the_same_spans_and_records(sent):
    received, _, folder = sent
    lines = (folder / "trace.jsonl").read_text().splitlines()
    spans = [
        span["spanId"]
        for line in lines
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert {*spans} == {span.span_id.hex() for span in received.spans}
    logs = (folder / "trace.logs.jsonl").read_text()
    assert logs.count(f'"{EVALUATION}"') == len(received.logs)


def test_what_was_said_is_sent_only_if_asked_for():
    for words, has_content in ((), False), (("--otel-content",), True):
        with receiving() as (received, url):
            document = play(url, "--otel", *words).document
        text = "".join(map(str, (*received.spans, *received.logs)))
        reply = document["turns"][0]["reply"][:20]
        assert (reply in text) == has_content
        names = {name for record in received.spans for name in attributes(record)}
        assert ("gen_ai.input.messages" in names) == has_content
        explained = [
            log for log in received.logs if "gen_ai.evaluation.explanation" in attributes(log)
        ]
        assert bool(explained) == has_content


def test_a_resumed_run_links_its_first_trace(tmp_path):
    store = ("-o", str(tmp_path))
    with receiving() as (received, url):
        cut = play(url, "--otel", "--seed", "7", "--max-cost-usd", "0.05", *store)
        run_id = cut.document["run_id"]
        assert cut.exit_code == 6
        (first,) = received.named("invoke_workflow")
        env = environment(OTEL_EXPORTER_OTLP_ENDPOINT=url)
        words = ("resume", run_id, "--max-cost-usd", "5", "--otel", "--quiet", *store)
        assert run(*words, env=env).exit_code == 0
    second = received.named("invoke_workflow")[1]
    assert second.trace_id != first.trace_id
    assert [(link.trace_id, link.span_id) for link in second.links] == [
        (first.trace_id, first.span_id)
    ]
    assert len(received.named("chat")) == len({*(s.span_id for s in received.named("chat"))})


def test_an_endpoint_that_fails_costs_the_run_nothing_and_is_said():
    plain = run(*PLAYED, "--seed", "7").document
    with receiving(status=400) as (_, url):
        outcome = play(url, "--otel", "--seed", "7")
    assert outcome.exit_code == 0
    assert outcome.document["metrics"] == plain["metrics"]
    assert "could not be sent as traces" in outcome.stderr


def test_an_endpoint_that_is_slow_does_not_hold_up_the_command(monkeypatch):
    monkeypatch.setattr(exporting, "LAST_EXPORT_S", 0.05)
    is_over = threading.Event()
    with receiving(wait=is_over.wait) as (_, url):
        outcome = play(url, "--otel")
        is_over.set()
    assert outcome.exit_code == 0
    assert "not all sent within 0.05 s" in outcome.stderr


def test_a_sweep_traces_every_run(tmp_path):
    with receiving() as (received, url):
        words = ("sweep", "--offline", "--models", TUTOR, "--scenarios", "career-change")
        more = ("--turns", "2", "--repeats", "2", "-o", str(tmp_path), "--otel", "--quiet")
        env = environment(OTEL_EXPORTER_OTLP_ENDPOINT=url)
        assert run(*words, *more, env=env).exit_code == 0
    assert len({span.trace_id for span in received.named("invoke_workflow")}) == 2


def test_flags_of_the_first_scripts_send_to_galileo_and_print_its_links():
    with receiving() as (received, url):
        outcome = run(
            *(*PLAYED, "--enable-galileo", "--galileo-project", "MyFirstEvaluation"),
            *("--galileo-log-stream", "aws-bedrock-sonnet"),
            env=environment(
                GALILEO_API_KEY="galileo-key-123456",
                GALILEO_API_ENDPOINT=url,
                GALILEO_CONSOLE_URL="https://console.example.com",
                GALILEO_PROJECT_ID="p1",
                GALILEO_LOG_STREAM_ID="s1",
            ),
        )
    assert outcome.exit_code == 0
    paths, headers = {path for path, _ in received.requests}, received.requests[0][1]
    assert paths == {"/otel/traces"}
    sent = {name.lower(): value for name, value in headers.items()}
    assert sent["galileo-api-key"] == "galileo-key-123456"
    assert (sent["project"], sent["logstream"]) == ("MyFirstEvaluation", "aws-bedrock-sonnet")
    assert any("gen_ai.input.messages" in attributes(span) for span in received.spans)
    console = "https://console.example.com/project/p1"
    assert f"Galileo project: {console}" in outcome.stderr
    assert f"Galileo log stream: {console}/log-streams/s1" in outcome.stderr


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        (("--enable-galileo",), "set GALILEO_API_KEY"),
        (("--galileo-project", "x"), "need --enable-galileo"),
        (("--otel-content",), "--otel-content needs"),
        (("--otel", "--enable-galileo"), "keep one"),
        (("--trace", "no/such/folder/x"), "--trace no/such/folder/x names no file"),
    ],
)
def test_mistakes_are_told_before_the_run(words, mistake):
    outcome = run(*PLAYED, *words)
    assert outcome.exit_code == 2
    assert mistake in outcome.stderr
