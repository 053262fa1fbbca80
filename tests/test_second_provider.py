"""Another provider on the same engine, added as CONTRIBUTING.md says: OpenAI's chat format."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from typing import Any, Self

import pytest

from tests import command
from tests.command import PLAIN_RUBRIC, ROOT, environment
from tests.fakes import PATIENCE_S

WALK = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding a provider\n")[2]
MODULE, LINE = re.findall(r"^```(?:python|text)\n(.*?)^```$", WALK, re.MULTILINE | re.DOTALL)[:2]
CUT = 0
KEY = "sk-of-the-users-own-0123456789"
VERDICT = {"form": 3, "substance": 2.5, "purity": 4}
WORDS = (
    *("--provider", "openai_chat", "--model", "tutor-1", "--judge-model", "judge-1"),
    *("--scenario", "time-management", "--turns", "3", "--seed", "1", "--quiet"),
    *("--rubric", PLAIN_RUBRIC),  # its judge is asked for nothing but verdicts
)
PRICES = {
    "models": {
        "tutor-1": {"default": {"input": 1.0, "output": 2.0}},
        "judge-1": {"default": {"input": 3.0, "output": 4.0}},
    }
}


class ChatServer(ThreadingHTTPServer):
    """Answers as such a service does; the statuses in `refuses` come first, one a request, `CUT`
    for an answer that breaks off. Once `hangs_at` is reached, a request is `asked` and gets none.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refuses: list[int] = []
        self.stop = "stop"
        # What each of the tutor's next answers ends with, and whether it is a refusal.
        self.stops: list[tuple[str, bool]] = []
        self.sent: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.hangs_at: int | None = None
        self.asked = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.sent.append(sent)
        self.server.keys.add(self.headers["Authorization"])
        if len(self.server.sent) == self.server.hangs_at:
            self.server.asked.set()
            threading.Event().wait(PATIENCE_S)
        status = self.server.refuses.pop(0) if self.server.refuses else 200
        body = json.dumps(self._said(sent) if status == 200 else {"error": {}}).encode()
        self.send_response(200 if status == CUT else status)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if status == CUT else body)

    def log_message(self, *_: object) -> None:
        """Not to stderr."""

    def _said(self, sent: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "What do you mean by that?"}
        stop = self.server.stop
        if self.server.stops and "tools" not in sent:
            stop, is_refusal = self.server.stops.pop(0)
            said = message.pop("content")
            message |= {"content": None, "refusal": said} if is_refusal else {"content": said}
        if "tools" in sent:
            verdict = {**VERDICT, "rationale": dict.fromkeys(VERDICT, "So.")}
            name = sent["tools"][0]["function"]["name"]
            call = {"id": "c1", "function": {"name": name, "arguments": json.dumps(verdict)}}
            message, stop = {"role": "assistant", "content": None, "tool_calls": [call]}, "stop"
        return {
            "id": "chat-1",
            "choices": [{"message": message, "finish_reason": stop}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A copy of the program with the file and the line of the walk."""
    root: Path = tmp_path_factory.mktemp("clone")
    for room in ("cli", "socratic_bench"):
        copytree(ROOT / room, root / room)
    models = root / "socratic_bench" / "models"
    (models / "openai_chat.py").write_text(MODULE)
    broken = MODULE.replace(
        "            return _answer(", "            print(1 / 0)\n            return _answer("
    )
    (models / "broken_chat.py").write_text(broken)
    registry = models / "__init__.py"
    head, begin, rest = registry.read_text().partition("PROVIDERS = {\n")
    registry.write_text(head + begin + LINE + LINE.replace("openai", "broken") + rest)
    return root


@pytest.fixture
def service():
    with ChatServer() as server:
        yield server


def variables(clone: Path, service: ChatServer) -> dict[str, str]:
    """Nothing of AWS: no region, no keys, no list of models."""
    env = environment(OPENAI_BASE_URL=service.url, OPENAI_API_KEY=KEY, PYTHONPATH=str(clone))
    assert not [name for name in env if re.search(r"REGION|KEY_ID|SECRET|BEDROCK", name)]
    return env


def play(
    clone: Path,
    service: ChatServer,
    *words: str,
    exit_code: int = 0,
    provider: str = "openai_chat",
) -> dict[str, Any]:
    usual = [provider if word == "openai_chat" else word for word in WORDS]
    outcome = command.run(*usual, *words, env=variables(clone, service), cwd=clone)
    assert outcome.exit_code == exit_code, outcome
    assert KEY not in outcome.stdout.decode() + outcome.stderr
    return outcome.document


def test_the_walk_is_one_file_of_no_great_length_and_one_line():
    assert len(MODULE.splitlines()) < 120
    assert len(LINE.splitlines()) == 1


def test_the_walk_passes_the_lint_of_the_house(clone):
    path = clone / "socratic_bench" / "models" / "openai_chat.py"
    words = ["check", "--no-cache", "--config", str(ROOT / "pyproject.toml"), str(path)]
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", *words], stdout=subprocess.PIPE, check=False
    )

    assert checked.returncode == 0, checked.stdout.decode()


def test_the_doctor_asks_its_models_too(clone, service):
    service.refuses = [429]
    words = ("--provider", "openai_chat", "--model", "tutor-1", "--judge-model", "judge-1")
    outcome = command.run("doctor", *words, env=variables(clone, service), cwd=clone)
    document = outcome.document
    tutor, judge = document["models"]

    assert (outcome.exit_code, document["status"], document["n_failed"]) == (0, "ok", 0)
    assert max(sent["max_tokens"] for sent in service.sent) <= 128
    assert tutor["status"] == judge["status"] == "ok"
    assert tutor["n_throttled"] + judge["n_throttled"] == 1
    assert [check["check"] for check in judge["checks"]] == [
        "answer",
        "streaming",
        "tools",
        "price",
    ]


def test_it_plays_tutor_and_judge_and_is_named_in_the_document(clone, service, tmp_path):
    service.refuses, service.stop = [503, 429, CUT], "length"
    document = play(clone, service, "--output-dir", str(tmp_path))

    assert (document["status"], document["n_turns"], document["overall_score"]) == (
        *("completed", 3),
        9.5,
    )
    inputs = document["inputs"]
    assert (inputs["provider"], inputs["region"]) == ("openai_chat", None)
    assert inputs["sdk_version"].startswith("python 3.")
    assert inputs["models"]["tutor"]["asked"] == "tutor-1"
    assert document["usage"]["tutor"]["input_tokens"] == 300
    attempts = sum(document["usage"][role]["attempts"] for role in ("tutor", "judge"))
    assert attempts == len(service.sent) == 9
    assert service.keys == {f"Bearer {KEY}"}
    assert {turn["stop_reason"] for turn in document["turns"]} == {"max_tokens"}
    assert {turn["provider_stop_reason"] for turn in document["turns"]} == {"length"}
    assert document["turns"][0]["cut"] is True


def test_stop_reasons_are_neutral_with_the_providers_own_beside_them(clone, service):
    service.stops = [("stop", True), ("tool_calls", False), ("content_filter", False)]
    document = play(clone, service)

    told = [(turn["stop_reason"], turn["provider_stop_reason"]) for turn in document["turns"]]
    assert told == [
        ("refusal", "stop"),
        ("tool_use", "tool_calls"),
        ("content_filtered", "content_filter"),
    ]
    assert document["turns"][0]["outcome"] == "refused"
    assert document["end_reason"] == "content_filtered"


def test_a_budget_holds_and_the_run_goes_on_with_a_larger_one(clone, service, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICES))
    kept = ("--output-dir", str(tmp_path / "out"), "--prices", str(prices))
    short = play(clone, service, *kept, "--max-cost-usd", "0.01", exit_code=6)
    n_sent = len(service.sent)

    assert (short["end_reason"], short["status"]) == ("budget", "partial")
    assert 0 < short["cost"]["total"]["total_usd"] <= 0.01

    whole = play(clone, service, *kept, "--max-cost-usd", "1", "--resume")
    assert (whole["run_id"], whole["status"]) == (short["run_id"], "completed")
    assert len(service.sent) == 6
    assert 0 < n_sent < 6
    cost = whole["cost"]
    assert cost["tutor"]["total_usd"] == pytest.approx(3 * (100 * 1 + 10 * 2) / 1e6)
    assert cost["judge"]["total_usd"] == pytest.approx(3 * (100 * 3 + 10 * 4) / 1e6)


def test_a_run_cut_short_goes_on_by_its_id_alone(clone, service, tmp_path):
    service.refuses = [401]
    kept = ("--output-dir", str(tmp_path))
    cut = play(clone, service, *kept, exit_code=3)
    env = variables(clone, service)
    again = command.run("resume", cut["run_id"], *kept, env=env, cwd=clone)

    assert again.exit_code == 0, again
    document = again.document
    assert (document["run_id"], document["n_turns"]) == (cut["run_id"], 3)
    assert (document["inputs"]["provider"], document["inputs"]["region"]) == ("openai_chat", None)


def test_a_refusal_ends_the_run_by_its_kind(clone, service):
    service.refuses = [401]
    document = play(clone, service, exit_code=3)

    assert (document["end_reason"], document["error"]["code"]) == ("access", "access_denied")
    assert len(service.sent) == 1


def test_a_defect_of_the_provider_ends_the_run_with_what_was_sent_counted(clone, service, tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICES))
    words = ("--prices", str(prices), "--max-cost-usd", "1")
    document = play(clone, service, *words, exit_code=1, provider="broken_chat")

    assert (document["end_reason"], document["error"]["code"]) == ("internal", "internal")
    assert len(service.sent) == document["usage"]["tutor"]["attempts"] == 1
    maybe = document["cost"]["maybe_billed"]
    assert (maybe["attempts"], maybe["at_most_usd"] > 0) == (1, True)


def test_a_call_that_hangs_is_left_when_the_run_is_told_to_end(clone, service):
    service.hangs_at = 1
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", *WORDS],
        env=variables(clone, service),
        cwd=clone,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert service.asked.wait(PATIENCE_S)
    os.kill(process.pid, signal.SIGTERM)
    stdout, _ = process.communicate(timeout=PATIENCE_S)

    document = command.printed(stdout)
    assert (process.returncode, document["end_reason"]) == (143, "interrupted")
    assert document["usage"]["tutor"]["attempts"] == 1


def test_what_it_lacks_is_told_before_anything_is_sent(clone, service):
    env = variables(clone, service)
    del env["OPENAI_BASE_URL"]
    outcome = command.run(*WORDS, "--offline", env=env, cwd=clone)

    assert outcome.exit_code == 2
    assert "OPENAI_BASE_URL is not set." in outcome.stderr
    assert "--offline plays on an endpoint that this --provider does not call." in outcome.stderr


def test_a_dry_run_foretells_it(clone, service):
    document = play(clone, service, "--dry-run")

    assert document["kind"] == "dry_run"
    assert service.sent == []


def test_an_unknown_provider_is_refused_by_name():
    outcome = command.run("--provider", "nobody", "--model", "m", "--prompt", "Hello.")

    assert outcome.exit_code == 2
    assert "No --provider 'nobody': there is bedrock" in outcome.stderr
