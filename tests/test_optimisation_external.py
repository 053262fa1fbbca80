"""An external agent: what it can reach, how it is limited, and how its calls are forwarded."""

import json
import os
import sys
from pathlib import Path

import pytest
from botocore.eventstream import EventStreamBuffer

from socratic_bench.benchmarks.optimisation.converse_wire import answer_of, read_request, stream_of
from socratic_bench.benchmarks.optimisation.preparing import Prepared, folder_of, prepare_item
from socratic_bench.errors import ModelError
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.bedrock.converse import StreamedAnswer, read_answer
from socratic_bench.types import Message, Reasoning, Text, ToolUse
from tests.optimising import Context, JournalledModel, call, completion, item_of, workplace

CONFIG = GenerateConfig(max_tokens=1000, temperature=0.5)
# An agent of the standard library alone: one call, then what the model told it to run.
AGENT = """
import json, os, subprocess, sys, urllib.request
def converse(text, key=os.environ["AWS_ACCESS_KEY_ID"]):
    url = os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] + "/model/any/converse"
    body = json.dumps({"messages": [{"role": "user", "content": [{"text": text}]}]}).encode()
    headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={key}/x", "Content-Type": "a/json"}
    request = urllib.request.Request(url, body, headers)
    try:
        answer = json.load(urllib.request.urlopen(request))
        return answer["output"]["message"]["content"][0]["text"]
    except urllib.error.HTTPError as error:
        return f"{error.code}: {json.load(error)['message']}"
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source" / "repo"


def play(tmp_path, source, code, *script, **limits) -> tuple[Prepared, JournalledModel, Path]:
    model = JournalledModel([Message.assistant(text) for text in script])
    spec = item_of(source)
    (tmp_path / "agent.py").write_text(AGENT + code)
    # The agent's program is text on its command line: its file would be hidden from it.
    cli = f"python3 - {{workdir}} {{trajectory_path}} <<'END'\n{AGENT}{code}\nEND"
    place = workplace(tmp_path, source, cli=cli, **limits)
    return prepare_item(Context(model), 0, spec, place), model, folder_of(place.folder, 0).path


class TestCalls:
    def test_its_calls_are_forwarded_and_its_patch_is_captured(self, tmp_path, source):
        code = """
subprocess.run(converse("What?"), shell=True)
open(sys.argv[2], "w").write('[{"step": 1}]')
print("done")
"""
        prepared, model, folder = play(tmp_path, source, code, "echo 'fast = 1' >> words.py")

        assert (prepared.result.stop, prepared.status) == ("finished", "patched")
        assert model.requests[0].messages[-1].text == "What?"
        assert model.requests[0].config.max_tokens == 4096
        assert len(prepared.calls) == 1
        assert (folder / "agent_stdout.txt").read_text() == "done\n"
        assert (folder / "trajectory.json").read_text() == '[{"step": 1}]'

    def test_a_key_of_somebody_else_is_refused(self, tmp_path, source):
        _, model, folder = play(tmp_path, source, 'print(converse("What?", key="AKIA"))')

        assert (folder / "agent_stdout.txt").read_text().startswith("403: ")
        assert not model.requests

    def test_a_step_over_the_limit_ends_the_agent(self, tmp_path, source):
        code = 'converse("a")\nprint(converse("b"), flush=True)\nimport time\ntime.sleep(300)'
        prepared, model, _ = play(tmp_path, source, code, "x", max_steps=1)

        assert prepared.result.stop == "max_steps"
        assert len(model.requests) == 1

    def test_an_agent_that_fails_is_captured_all_the_same(self, tmp_path, source):
        code = "open('words.py', 'a').write('x = 1')\nsys.exit(3)"
        prepared, _, _ = play(tmp_path, source, code)

        assert (prepared.result.stop, prepared.status) == ("agent_crash", "patched")
        assert "exit code 3" in prepared.result.message

    def test_a_dead_agent_begins_anew_and_repeated_calls_are_free(self, tmp_path, source):
        code = 'print(converse("a"), converse("b"), flush=True)'
        spec, model = item_of(source), JournalledModel([Message.assistant("1")])
        cli = f"python3 - <<'END'\n{AGENT}{code}\nEND"
        place = workplace(tmp_path, source, cli=cli)
        expired = ModelError("Expired.", code="auth", end_reason="credentials", retryable=False)
        model.script = [Message.assistant("1"), expired]
        with pytest.raises(ModelError):
            prepare_item(Context(model), 0, spec, place)

        model.script = [Message.assistant("1"), Message.assistant("2")]
        prepared = prepare_item(Context(model), 0, spec, place)

        folder = folder_of(place.folder, 0).path
        assert (folder / "agent_stdout.txt").read_text() == "1 2\n"
        assert len(model.requests) == len(prepared.calls) == 2


class TestIsolation:
    def test_the_harness_and_the_network_are_out_of_reach(self, tmp_path, source, monkeypatch):
        monkeypatch.setenv("AWS_SESSION_TOKEN", "secret-of-the-harness")
        home = Path.home()
        code = f"""
import socket
found = dict(os.environ)
try:
    socket.create_connection(("192.0.2.1", 80), 2)
    network = "open"
except OSError as error:
    network = type(error).__name__
try:
    home = os.listdir({str(home)!r})
except OSError:
    home = []
print(json.dumps([found, home, network, os.path.exists({str(source)!r})]))
"""
        _, _, folder = play(tmp_path, source, code)

        environment, home_files, network, is_source_visible = json.loads(
            (folder / "agent_stdout.txt").read_text()
        )
        assert "secret-of-the-harness" not in json.dumps(environment)
        assert {name for name in environment if name.startswith("AWS")} == {
            *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"),
            *("AWS_EC2_METADATA_DISABLED", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
        }
        # A Python that lies in the home is seen, and nothing beside it.
        is_python_there = Path(sys.base_prefix).is_relative_to(home)
        python = {Path(sys.base_prefix).relative_to(home).parts[0]} if is_python_there else set()
        assert {*home_files} <= python
        assert not is_source_visible
        assert network == "OSError"

    def test_git_configuration_of_the_agent_runs_nothing(self, tmp_path, source):
        ran = tmp_path / "ran"
        code = f"""
script = "#!/bin/sh\\nenv > {ran}\\n"
open("hook.sh", "w").write(script)
os.chmod("hook.sh", 0o755)
for key in ("core.fsmonitor", "diff.external", "core.sshCommand", "filter.x.clean"):
    subprocess.run(["git", "config", key, os.path.abspath("hook.sh")])
open(".gitattributes", "w").write("* filter=x diff=x\\n")
"""
        prepared, _, _ = play(tmp_path, source, code)

        assert prepared.status == "patched"
        assert not ran.exists()

    def test_a_trajectory_that_links_to_the_harness_is_not_read(self, tmp_path, source):
        code = 'os.symlink("/etc/passwd", sys.argv[2])'
        _, _, folder = play(tmp_path, source, code)

        assert (folder / "trajectory.json").read_bytes() == b""

    def test_no_process_of_it_is_left(self, tmp_path, source):
        marker = f"sleep 29{os.getpid() % 1000:03d}"
        code = f'subprocess.Popen(["setsid", "sh", "-c", "trap : TERM; {marker}; :"])'
        play(tmp_path, source, code)

        commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
        assert not any(marker.encode() in line.replace(b"\0", b" ") for line in commands)


class TestWire:
    def test_a_request_with_tools_and_thoughts_is_read(self):
        body = {
            "system": [{"text": "Be quick."}, {"cachePoint": {"type": "default"}}],
            "messages": [
                {"role": "user", "content": [{"text": "Go."}]},
                {
                    "role": "assistant",
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "s"}}},
                        {"toolUse": {"toolUseId": "1", "name": "run", "input": {"a": 1}}},
                    ],
                },
                {
                    "role": "user",
                    "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "ok"}]}}],
                },
            ],
            "toolConfig": {
                "tools": [
                    {"toolSpec": {"name": "run", "inputSchema": {"json": {"type": "object"}}}}
                ]
            },
            "inferenceConfig": {"maxTokens": 100, "temperature": 0.0},
        }
        request = read_request(body, CONFIG)

        assert request.messages[1].content == (
            Reasoning("Hm", signature="s"),
            ToolUse("1", "run", {"a": 1}),
        )
        assert (request.system, request.config.max_tokens) == ("Be quick.", 100)
        assert request.config.temperature == 0.5
        assert [tool.name for tool in request.tools] == ["run"]

    @pytest.mark.parametrize(
        ("body", "part"),
        [
            ({}, "no request"),
            ({"messages": [], "guardrailConfig": {"a": 1}}, "guardrailConfig"),
            ({"messages": [{"role": "user", "content": [{"video": {}}]}]}, "video"),
        ],
    )
    def test_what_cannot_be_forwarded_is_refused_by_name(self, body, part):
        with pytest.raises(ValueError, match=part):
            read_request(body, CONFIG)

    def test_an_answer_is_the_same_whole_and_streamed(self):
        content = (
            Reasoning("Hm", signature="s"),
            Text("Well."),
            *call("run", "1", command="ls").content,
        )
        answer = completion(Message("assistant", content))
        buffer, events = EventStreamBuffer(), StreamedAnswer()
        buffer.add_data(stream_of(answer))
        for event in buffer:
            fields = event.to_response_dict()
            payload = json.loads(fields["body"])
            events.add({fields["headers"][":event-type"]: payload}, 1.0)

        streamed = read_answer(events.fields(), latency_ms=1.0)
        whole = read_answer(answer_of(answer), latency_ms=1.0)
        assert streamed.message == whole.message == answer.message
        assert streamed.usage == whole.usage == answer.usage
        assert streamed.stop_reason == "tool_use"
