"""What ends the command from outside: a terminal that goes, and signals that go on."""

import json
import os
import pty
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import CLAUDE, OPENING, ROOT, account, assert_valid, daily, environment, printed
from tests.interruptions import writing
from tests.torture.commands import COMMAND

HANGING = "hang:role=tutor:after=1:ms=60000"
ONE_RUN = ("--model", CLAUDE, "--prompt", OPENING, "--turns", "9")


class Hanging:
    """The command, started, and met by a signal in its second turn, which nobody answers."""

    def __init__(self, *words: str, before: Sequence[str] = (), **how: Any) -> None:
        with Emulator(Settings(faults=(parse_fault(HANGING),))) as served:
            self.process = subprocess.Popen(
                [*before, *COMMAND, *words, *ONE_RUN],
                **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
                cwd=ROOT,
                env=account(served.url, CLAUDE),
            )
            try:
                while not any(request.fault for request in served.requests):
                    assert self.process.poll() is None
                    time.sleep(0.01)
                self.meet()
                self.stdout, self.stderr = self.process.communicate()
            finally:
                self.process.kill()

    def meet(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    @property
    def document(self) -> dict[str, Any]:
        return printed(self.stdout)


class HangingTwice(Hanging):
    """A terminal that closes sends one from its shell, and one from the system."""

    def meet(self) -> None:
        for _ in range(3):
            self.process.send_signal(signal.SIGHUP)
            time.sleep(0.02)


class Terminated(Hanging):
    def meet(self) -> None:
        self.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.process.terminate()


@pytest.mark.parametrize("kind", daily([Hanging, HangingTwice], HangingTwice))
def test_a_hangup_ends_a_run_with_its_document(kind, tmp_path):
    ended = kind("--output-dir", str(tmp_path))
    document = ended.document

    assert ended.process.returncode == 129
    assert_valid("run", document)
    assert (document["status"], document["end_reason"]) == ("partial", "interrupted")
    assert document["n_turns"] == 1
    assert b"socratic-runner resume" in ended.stderr


def test_a_hangup_ends_a_resumed_run_with_its_document(tmp_path):
    first = Hanging("--output-dir", str(tmp_path))
    run_id = first.document["run_id"]
    with Emulator(Settings(faults=(parse_fault("hang:role=tutor:ms=60000"),))) as served:
        process = subprocess.Popen(
            [*COMMAND, "resume", run_id, "--output-dir", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=account(served.url, CLAUDE),
        )
        while not served.requests:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        stdout, _ = process.communicate()
    document = printed(stdout)

    assert (process.returncode, document["end_reason"]) == (129, "interrupted")
    assert (document["run_id"], document["n_turns"]) == (run_id, 1)


def test_a_hangup_that_is_ignored_from_the_start_stays_ignored():
    """As nohup has it: another signal is needed to end the run."""
    ended = Terminated(before=("bash", "-c", 'trap "" HUP; exec "$@"', "bash"))

    assert ended.process.returncode == 143
    assert "signal 15" in ended.document["error"]["message"]


def test_a_terminal_that_closes_leaves_the_document_where_it_was_redirected(tmp_path):
    """The system itself sends the signal, and stderr is gone from then on."""
    mine, theirs = pty.openpty()
    with (tmp_path / "run.json").open("wb") as stdout:

        class Closing(Hanging):
            def meet(self) -> None:
                os.close(mine)

        # A session of its own, whose terminal is standard input's.
        before = ("setsid", "--ctty")
        ended = Closing(before=before, stdin=theirs, stdout=stdout, stderr=theirs)
    os.close(theirs)
    document = json.loads((tmp_path / "run.json").read_bytes())

    assert ended.process.returncode == 129
    assert (document["end_reason"], document["n_turns"]) == ("interrupted", 1)


def test_a_hangup_ends_the_emulator_as_other_signals_do():
    process = subprocess.Popen(
        [*COMMAND, "emulator"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    )
    assert process.stdout
    assert_valid("emulator", json.loads(process.stdout.readline()))
    process.send_signal(signal.SIGHUP)
    _, stderr = process.communicate()

    assert process.returncode == 0
    assert b"Traceback" not in stderr


@pytest.mark.parametrize("number", daily([signal.SIGHUP, signal.SIGINT, signal.SIGTERM], first=1))
def test_a_signal_ends_a_dry_run_that_waits_for_an_answer(number):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [*COMMAND, *ONE_RUN, "--dry-run"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=account(url, CLAUDE, AWS_ENDPOINT_URL_BEDROCK=url),
        )
        asking, _ = silent.accept()
        process.send_signal(number)
        stdout, stderr = process.communicate()
        asking.close()
    document = printed(stdout)

    assert process.returncode == 128 + number
    assert_valid("run", document)
    told = (document["status"], document["end_reason"], document["run_id"])
    assert told == ("failed", "interrupted", None)
    assert document["error"]["hint"] == "Nothing was run or stored: run the command again."
    assert b"Traceback" not in stderr


def test_hangups_that_go_on_for_seconds_end_the_process():
    """Nobody reads the document that is being written."""
    with writing() as process:
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
            time.sleep(0.05)

    assert process.returncode == 129
