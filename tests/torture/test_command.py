"""The command among hostile conditions: terminals that close, clocks that are set, odd input."""

import fcntl
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.documents import encode
from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import (
    CLAUDE,
    OFFLINE,
    OPENING,
    ROOT,
    account,
    assert_valid,
    daily,
    environment,
    run,
)
from tests.in_process import played
from tests.interruptions import writing

COMMAND = (sys.executable, "-m", "cli")
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
        document: dict[str, Any] = json.loads(self.stdout)
        return document


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


@pytest.mark.parametrize("kind", [Hanging, HangingTwice], ids=["once", "repeated"])
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
    document = json.loads(stdout)

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


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
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
    document = json.loads(stdout)

    assert process.returncode == 128 + number
    assert_valid("run", document)
    told = (document["status"], document["end_reason"], document["run_id"])
    assert told == ("failed", "interrupted", None)
    assert document["error"]["hint"] == "Nothing was played or kept: give the command again."
    assert b"Traceback" not in stderr


@pytest.mark.torture
def test_hangups_that_go_on_for_seconds_end_the_process():
    """Nobody reads the document that is being written."""
    with writing() as process:
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
            time.sleep(0.05)

    assert process.returncode == 129


def shell(line: str, *words: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """The command, as `"$@"`, in a line of a shell."""
    return subprocess.run(
        # One that served on would never end.
        ["bash", "-c", line, "bash", "timeout", "--foreground", "120", *COMMAND, *words],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **how},
        cwd=ROOT,
        check=False,
    )


FULL = '"$@" >/dev/full'
# Whoever reads is gone before anything is written.
GONE = '{ sleep 0.2; "$@"; } | true; exit "${PIPESTATUS[0]}"'
# Every way to get something on stdout; each leaves its command without a mistake.
PRINTING = [
    (*OFFLINE, "--turns", "1"),
    ("scenarios", "--quiet"),
    ("schema", "run"),
    ("emulator",),
    ("--version",),
    ("--help",),
    pytest.param((*OFFLINE, "--turns", "1", "--dry-run"), marks=pytest.mark.torture),
    pytest.param(("scenarios", "--check", "--quiet"), marks=pytest.mark.torture),
    pytest.param(("run", "--version"), marks=pytest.mark.torture),
    pytest.param(("schema", "--help"), marks=pytest.mark.torture),
]


@pytest.mark.parametrize("redirect", [">&-", "1</dev/null"], ids=["closed", "read only"])
@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_stdout_that_is_closed_from_the_start_is_a_mistake_before_anything_is_done(
    words, redirect, tmp_path
):
    out = ("--output-dir", str(tmp_path / "out")) if words[0] == "--offline" else ()
    done = shell(f'"$@" {redirect}', *words, *out)

    assert done.returncode == 2
    assert b"stdout is closed" in done.stderr
    assert b"defect" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "line", [FULL, pytest.param(GONE, marks=pytest.mark.torture)], ids=["full", "broken"]
)
@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_a_stdout_that_breaks_or_is_full_is_told_and_is_no_defect(words, line):
    done = shell(line, *words)

    assert done.returncode == 4
    assert b"stdout" in done.stderr
    assert b"defect" not in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_a_document_that_nobody_got_can_be_printed_from_the_whole_artifacts(tmp_path):
    done = shell(FULL, *OFFLINE, "--turns", "2", "--output-dir", str(tmp_path))
    (curated,) = tmp_path.glob("curated/runs/*.json")
    told = done.stderr.decode().rpartition("socratic-runner resume ")[2].split()
    again = run("resume", *told)

    assert done.returncode == 4
    # Two turns, their verdicts and the closing one.
    assert len([*tmp_path.glob("raw/runs/*/*.json")]) == 5
    assert (again.exit_code, again.document["run_id"]) == (0, curated.stem)


def test_a_run_that_failed_keeps_its_own_exit_code_whatever_stdout_is():
    assert shell(FULL, *OFFLINE, "--turns", "0").returncode == 2
    lecturer = ("--offline", "--model", "emulator.lecturer-v1:0", "--prompt", "x")
    words = (*lecturer, "--turns", "1", "--fail-under", "overall_score=9")
    assert shell(FULL, *words).returncode == 5


def test_a_pipe_that_is_read_slowly_gets_the_whole_document():
    """Its reader has set it so that a write that would wait is refused instead."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen(
        [*COMMAND, *OFFLINE, "--turns", "5", "--quiet"],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    )
    os.close(writing)
    select.select([reading], [], [])
    time.sleep(0.3)
    with os.fdopen(reading, "rb") as pipe:
        document = json.loads(pipe.read())
    assert process.stderr
    stderr = process.stderr.read()
    process.stderr.close()

    assert (process.wait(), stderr) == (0, b"")
    assert document["n_turns"] == 5


@pytest.mark.parametrize(
    ("words", "flag"),
    daily(
        [
            ((*OFFLINE, "--turns", "1", "--turns", "2"), "--turns"),
            ((*OFFLINE, "--turns=1", "--turns", "2"), "--turns"),
            ((*OFFLINE, "--turns=1", "--turns=1"), "--turns"),
            ((*OFFLINE, "--prompt", "again"), "--prompt"),
            ((*OFFLINE, "--quiet", "--quiet"), "--quiet"),
            (("resume", "run-x", "--output-dir", "a", "--output-dir", "b"), "--output-dir"),
            (("scenarios", "--quiet", "--qui"), "--quiet"),
            (("emulator", "--port", "0", "--port=0"), "--port"),
            (("emulator", "--latency", "1", "--latency-ms", "2"), "--latency-ms"),
            (("schema", "run", "--debug", "--debug"), "--debug"),
        ],
        first=6,
    ),
    ids=lambda value: value if isinstance(value, str) else " ".join(value[-3:]),
)
def test_a_flag_that_is_given_twice_is_a_mistake(words, flag):
    done = shell('"$@"', *words)

    assert (done.returncode, json.loads(done.stdout)["end_reason"]) == (2, "usage")
    assert f"{flag} is given more than once" in done.stderr.decode()


def test_flags_that_may_be_repeated_still_may():
    pairs = ("--request-metadata", "a=1", "--request-metadata", "b=2")
    gates = ("--fail-under", "overall_score=1", "--fail-under=compliance_rate=0.1")
    outcome = run(*OFFLINE, "--turns", "1", *pairs, *gates)

    assert outcome.exit_code == 0
    assert outcome.document["inputs"]["request_metadata"] == {"a": "1", "b": "2"}


LATIN = b"caf\xe9"
PATHS = (
    *("--output-dir", "--s3-prefix", "--scenario-file", "--transcript", "--system-prompt-file"),
    "--prices",
)
PLAY = ("--offline", "--model", "emulator.socratic-v1:0", "--turns", "1")


def assert_no_utf8(done: subprocess.CompletedProcess[bytes]) -> None:
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert document["end_reason"] == "usage"
    assert "no UTF-8 text" in document["error"]["message"]
    assert b"no UTF-8 text" in done.stderr


def test_a_piped_prompt_that_is_no_utf8_is_a_mistake():
    assert_no_utf8(shell('"$@"', *PLAY, "--prompt", "-", input=b"Hi " + LATIN))


NO_TEXT = [
    (*PLAY, "--prompt", LATIN),
    (*PLAY, b"--prompt=" + LATIN),
    (*PLAY, "--prompt", b"half \xed\xa0\x80"),
    (*PLAY, "--prompt", "x", "--request-metadata", b"a=" + LATIN),
    ("resume", LATIN, "--output-dir", "x"),
    ("scenarios", "--check", LATIN),
    ("emulator", "--host", LATIN),
    (*PLAY, "--prompt", "x", PATHS[0], LATIN),
    *(
        pytest.param(words, marks=pytest.mark.torture)
        for words in (
            *((*PLAY, "--prompt", "x", flag, LATIN) for flag in PATHS[1:]),
            (*PLAY, "--prompt", "x", "--judge-model", LATIN),
            ("resume", "run-1", "--output-dir", LATIN),
        )
    ),
]


@pytest.mark.parametrize("words", NO_TEXT, ids=str)
def test_a_word_that_is_no_utf8_is_a_mistake(words):
    assert_no_utf8(shell('"$@"', *words))


@pytest.mark.parametrize(
    "name", ["RUNNER_JUDGE_MODEL", "RUNNER_OUTPUT_DIR", "AWS_PROFILE", "AWS_REGION"]
)
def test_a_variable_that_is_no_utf8_is_a_mistake_by_its_name_alone(name):
    env = {**{k.encode(): v.encode() for k, v in environment().items()}, name.encode(): LATIN}
    done = shell('"$@"', *PLAY, "--prompt", "x", env=env)

    assert_no_utf8(done)
    assert f"{name} is no UTF-8 text" in done.stderr.decode()


def test_a_folder_in_one_whose_name_is_no_utf8_is_a_mistake(tmp_path):
    """The document tells it from the root, where nobody could find it."""
    folder = os.fsencode(tmp_path) + b"/" + LATIN
    os.mkdir(folder)  # noqa: PTH102 -- of bytes
    env = {**{k.encode(): v.encode() for k, v in environment().items()}, b"HERE": folder}
    words = (*PLAY, "--prompt", "x", "--output-dir", "out")
    done = shell('cd "$HERE" && "$@"', *words, env=env)

    assert_no_utf8(done)
    assert "--output-dir lies in a folder" in done.stderr.decode()
    assert [*Path(os.fsdecode(folder)).iterdir()] == []


@pytest.mark.parametrize(
    ("flag", "content"),
    [
        ("--transcript", b'{"turns": [{"student": "caf\xe9", "tutor": "Why?"}]}'),
        ("--scenario-file", b'title = "caf\xe9"'),
        ("--system-prompt-file", b"Ask, caf\xe9."),
        ("--prices", b'{"models": {"caf\xe9": {}}}'),
        (
            "--prices",
            '{"models": {"m": {"default": {"input": 1, "output": 1}}}}'.encode("utf-16"),
        ),
        ("--resume-from", b'{"journal": ["caf\xe9"]}'),
    ],
)
def test_a_file_that_is_no_utf8_is_a_mistake(flag, content, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(content)
    opening = () if flag == "--transcript" else ("--prompt", "x")
    outcome = run(*PLAY, *opening, flag, str(file))

    assert (outcome.exit_code, outcome.document["end_reason"]) == (2, "usage")
    assert "UTF-8 text" in outcome.stderr


def test_half_a_character_in_a_transcript_is_a_mistake(tmp_path):
    file = tmp_path / "t.json"
    file.write_text(r'{"turns": [{"student": "a\ud83d", "tutor": "Why?"}]}')
    outcome = run(*PLAY, "--transcript", str(file))

    assert outcome.exit_code == 2
    assert "turns[0].student: holds half of a character" in outcome.stderr


@pytest.mark.parametrize(
    ("piped", "prompt"),
    [
        (b"Hello\n", "Hello"),
        (b"Hello\r\n", "Hello"),
        (b"Hello", "Hello"),
        (b"Hello\n\n", "Hello\n"),
        (b"One\nTwo\n", "One\nTwo"),
        (b" Hello \n", " Hello "),
        (b"\xef\xbb\xbfHello\n", "Hello"),
    ],
    ids=str,
)
def test_a_piped_prompt_ends_before_its_last_line_break(piped, prompt):
    outcome = run(*PLAY, "--prompt", "-", "--max-attempts", "0", stdin=piped)

    assert outcome.document["error"]["message"] == "--max-attempts is 0, but must lie in 1..100."
    assert outcome.document["prompt"] == prompt


@pytest.mark.parametrize("letter", [b"x", "\u00e9".encode(), "\u20ac".encode()], ids=len)
def test_a_piped_prompt_without_end_is_too_long_and_not_misread(letter):
    """What is read of it ends within a letter."""
    outcome = run(*PLAY, "--prompt", "-", stdin=b"a" + letter * 1_000_000)

    assert outcome.exit_code == 2
    assert "more than 1000000 bytes" in outcome.stderr
    assert "UTF-8" not in outcome.stderr


MANY = 50_000


def keys(count: int) -> dict[str, int]:
    return {f"key-{n}": n for n in range(count)}


def table(count: int) -> str:
    return "".join(f"key-{n} = 1\n" for n in range(count))


TURN = {"student": "Hello", "tutor": "Why?"}
CROWDED = {
    "transcript": ("--transcript", json.dumps({"turns": [TURN], **keys(MANY)})),
    "its turn": ("--transcript", json.dumps({"turns": [{**TURN, **keys(MANY)}]})),
    "its turns": ("--transcript", json.dumps({"turns": [0] * MANY})),
    "prices": ("--prices", json.dumps({"models": keys(MANY)})),
    "scenario": ("--scenario-file", table(MANY)),
    "student": ("--scenario-file", f"[student]\n{table(MANY)}"),
    "items": ("--scenario-file", f"openings = [{'1,' * MANY}]"),
}


def bounded(*words: str, cpu_s: int = 20) -> subprocess.CompletedProcess[bytes]:
    """The command with so much of the processor's time, however busy the machine is."""
    return shell(f'ulimit -t {cpu_s}; exec "$@"', *words)


@pytest.mark.parametrize("name", daily(CROWDED, "its turns", "prices", "scenario"))
def test_of_ten_thousands_of_mistakes_twenty_are_shown_and_the_rest_is_counted(name, tmp_path):
    flag, content = CROWDED[name]
    file = tmp_path / "file"
    file.write_text(content)
    opening = () if flag == "--transcript" else ("--prompt", "x")
    done = bounded(*PLAY, *opening, flag, str(file))
    lines = done.stderr.decode().splitlines()
    document = json.loads(done.stdout)
    count = int(lines[0].split()[1])

    assert done.returncode == 2
    assert_valid("run", document)
    assert count >= MANY
    assert len([line for line in lines if line.startswith("  - ")]) == 21
    assert lines[21] == f"  - And {count - 20} more."
    assert f"And {count - 20} more." in document["error"]["message"]
    assert len(done.stdout) < 10_000


def test_the_checker_of_scenarios_shows_as_few(tmp_path):
    file = tmp_path / "file.toml"
    file.write_text(table(MANY))
    done = bounded("scenarios", "--check", str(file))
    document = json.loads(done.stdout)

    assert done.returncode == 2
    assert_valid("scenario_check", document)
    assert document["n_problems"] > MANY
    assert done.stderr.count(b"  - ") == 21
    assert len(document["scenarios"][-1]["problems"]) == 21


def test_twenty_mistakes_are_all_shown_and_of_more_the_number_is_that_of_all_sources(tmp_path):
    file = tmp_path / "file.toml"
    file.write_text(table(30))
    both = run(*PLAY, "--prompt", "x", "--scenario-file", str(file), "--max-attempts", "0", "--x")
    flags = [f"--unknown-{n}" for n in range(20)]
    twenty = run(*PLAY, "--prompt", "x", *flags)

    # 30 unknown fields, 15 that are missing, and two of the command line.
    assert both.stderr.splitlines()[0] == "socratic-runner: 47 mistakes, nothing was called:"
    assert "  - And 27 more.\n" in both.stderr
    assert twenty.stderr.count("  - Unknown flag") == 20
    assert "more." not in twenty.stderr


PARTS = 100_000
DEEP = {
    "dotted name": "a." * PARTS + "b = 1",
    "quoted name": '"a" . ' * PARTS + "b = 1",
    "name without a value": "a." * PARTS,
    "table": "[" + "a." * PARTS + "b]\nx = 1",
    "names below a table": "["
    + "a." * PARTS
    + "b]\n"
    + "".join(f"k{n}.x=1\n" for n in range(9999)),
    "inline": "a = {" + "a." * PARTS + "b = 1}",
    "lists": "a = " + "[" * PARTS,
    "inline tables": "a = " + "{a = " * PARTS,
}


@pytest.mark.parametrize("name", daily(DEEP, first=2))
def test_a_deep_file_is_refused_in_no_time(name, tmp_path):
    file = tmp_path / "deep.toml"
    file.write_text(DEEP[name])
    done = bounded(*PLAY, "--prompt", "x", "--scenario-file", str(file))

    assert done.returncode == 2
    assert b"deep.toml" in done.stderr


@pytest.mark.parametrize("flag", ["--transcript", "--prices", "--resume-from"])
def test_deep_json_is_refused_in_no_time(flag, tmp_path):
    file = tmp_path / "deep.json"
    file.write_text('{"turns":' * PARTS)
    opening = () if flag == "--transcript" else ("--prompt", "x")
    done = bounded(*PLAY, *opening, flag, str(file))

    assert done.returncode == 2
    assert b"deep.json" in done.stderr


def test_a_single_mistake_is_no_book(tmp_path):
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"k" * 5_000_000: 1, "turns": [TURN]}))
    done = bounded(*PLAY, "--transcript", str(file))

    assert done.returncode == 2
    assert len(done.stderr) < 3000
    assert len(done.stdout) < 10_000


def test_a_folder_of_turns_with_an_enormous_number_is_refused_at_once(tmp_path):
    (tmp_path / "turn_99999999999999.json").write_text("{}")
    done = bounded(*PLAY, "--transcript", str(tmp_path))

    assert done.returncode == 2
    assert b"turn_000.json, turn_001.json" in done.stderr


def test_thousands_of_words_on_the_command_line_are_one_mistake():
    done = bounded(*PLAY, *["--request-metadata", "a=b"] * 20_000)

    assert done.returncode == 2
    assert b"The command line has 40005 words" in done.stderr


# What a terminal obeys, what turns the direction of writing, and what shows nothing.
HIDDEN = (
    "\x7f\x80\x9b\x85\xad\u061c\u200e\u200f\u202a\u202e\u2066\u2069\u2028\u2029\ufeff\U000e0041"
)
SAID = f"A{HIDDEN}\u00e9\u2019\U0001f600 \u05d0 and \u0645\u06cc\u200c\u062e"


@pytest.mark.parametrize(
    "extra", [(), ("--pretty",), ("--dry-run",)], ids=["plain", "pretty", "dry"]
)
def test_the_document_escapes_what_a_terminal_would_obey_and_its_data_stay_the_same(extra):
    outcome = run(*PLAY, "--prompt", SAID, "--quiet", *extra)
    shown = outcome.stdout.decode()

    assert outcome.exit_code == 0
    assert json.loads(shown)["prompt"] == SAID
    assert [letter for letter in HIDDEN if letter in shown] == []
    assert "\u00e9\u2019\U0001f600 \u05d0" in shown
    assert "\\udb40\\udc41" in shown


def test_documents_of_failures_and_other_commands_escape_as_well(tmp_path):
    file = tmp_path / "f.toml"
    file.write_text(f'"k{HIDDEN[2:]}" = 1', encoding="utf-8")
    failed = run(*PLAY, "--prompt", SAID, "--turns", "0", "--brief")
    brief = run("--offline", "--model", SAID, "--prompt", "x", "--brief")
    checked = run("scenarios", "--check", str(file), "--quiet")

    for outcome in (failed, brief, checked):
        assert outcome.exit_code == 2
        assert [letter for letter in HIDDEN if letter.encode() in outcome.stdout] == []
    assert json.loads(brief.stdout)["model"] == SAID


# Stands before the standard library, as `sitecustomize`: the clock of the machine is set by so many
# seconds, once it has been asked for the time so often. No other clock is touched.
CLOCK = """
import datetime, importlib.abc, importlib.util, sys
asked = 0
class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        global asked
        asked += 1
        return super().now(tz) + datetime.timedelta(seconds={seconds} if asked > {after} else 0)

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "socratic_bench.runner.clock":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            module.datetime = Shifted
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
HOURS_S = 7200


def clock(folder: Path, seconds: int, after: int = 0) -> dict[str, str]:
    """An environment in which the clock is wrong."""
    (folder / "clock").mkdir(exist_ok=True)
    (folder / "clock/sitecustomize.py").write_text(CLOCK.format(seconds=seconds, after=after))
    return environment(PYTHONPATH=f"{folder / 'clock'}{os.pathsep}{ROOT}")


def assert_consistent(document: dict[str, Any], at_most_s: float) -> None:
    assert_valid("run", document)
    times = document["timestamps"]
    started, completed = (moment(times[name]) for name in ("started_at", "completed_at"))
    # Times of day are in whole seconds.
    assert 0 <= times["duration_seconds"] <= (completed - started).total_seconds() + 1
    assert times["duration_seconds"] < at_most_s


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z")


def turns_in_order(folder: Path, document: dict[str, Any]) -> None:
    """Each turn's file tells a time that lies within the run's, after the turn before."""
    files = sorted(folder.glob("raw/runs/*/turn_*.json"))
    told = [json.loads(file.read_bytes())["timestamp"] for file in files]
    times = document["timestamps"]
    assert len(told) == document["n_turns"]
    assert [times["started_at"], *told, times["completed_at"]] == sorted(
        [times["started_at"], *told, times["completed_at"]]
    )


@pytest.mark.parametrize("seconds", [-HOURS_S, HOURS_S], ids=["back", "forward"])
def test_a_clock_that_is_set_between_two_processes_leaves_durations_true(seconds, tmp_path):
    out = ("--output-dir", str(tmp_path / "out"))
    before_s = time.monotonic()
    first = played(*OFFLINE, "--turns", "2", *out)
    again = ("resume", first.document["run_id"], "--turns", "4", *out)
    second = run(*again, env=clock(tmp_path, seconds))
    took_s = time.monotonic() - before_s
    third = played(*again)
    (curated,) = (tmp_path / "out").glob("curated/runs/*.json")
    firsts_s = first.document["timestamps"]["duration_seconds"]

    for outcome in (first, second, third):
        assert outcome.exit_code == 0
        assert_consistent(outcome.document, took_s)
    # It is the sum of what both took.
    assert second.document["timestamps"]["duration_seconds"] > firsts_s
    assert third.document["timestamps"] == second.document["timestamps"]
    assert_valid("curated", json.loads(curated.read_bytes()))
    turns_in_order(tmp_path / "out", second.document)
    behind = [text for text in second.document["notices"] if "behind the run's last entry" in text]
    assert len(behind) == (seconds < 0)


@pytest.mark.parametrize("seconds", [-HOURS_S, HOURS_S], ids=["back", "forward"])
def test_a_clock_that_is_set_while_a_run_is_under_way_leaves_durations_true(seconds, tmp_path):
    before_s = time.monotonic()
    outcome = run(
        *(*OFFLINE, "--turns", "4", "--output-dir", str(tmp_path / "out")),
        env=clock(tmp_path, seconds, after=12),
    )
    took_s = time.monotonic() - before_s

    assert outcome.exit_code == 0
    assert_consistent(outcome.document, took_s)
    turns_in_order(tmp_path / "out", outcome.document)


def test_a_partial_document_is_gone_on_with_before_it_was_made(tmp_path):
    """No store: the document alone tells what the first process took."""
    words = (*OFFLINE, "--turns", "3", "--seed", "1")
    before_s = time.monotonic()
    cut = played(*words, "--max-cost-usd", "0.01")
    file = tmp_path / "cut.json"
    file.write_bytes(cut.stdout)
    second = run("--resume-from", str(file), "--max-cost-usd", "9", env=clock(tmp_path, -HOURS_S))

    assert (cut.exit_code, second.exit_code) == (6, 0)
    assert_consistent(second.document, time.monotonic() - before_s)


def sealed(entry: dict[str, Any]) -> bytes:
    """A line of a folder's journal."""
    plain = {key: value for key, value in entry.items() if key != "sha256"}
    return encode({**plain, "sha256": sha256(encode(plain)).hexdigest()[:16]}) + b"\n"


def rewritten(journal: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A journal of the same entries, each changed and sealed anew."""
    lines = [json.loads(line) for line in journal.read_bytes().splitlines()]
    for entry in lines:
        change(entry)
    journal.write_bytes(b"".join(sealed(entry) for entry in lines))


def as_before_elapsed_times(entry: dict[str, Any]) -> None:
    """As it was written before entries had a time of their own, by a clock that was set back."""
    entry.pop("elapsed_s", None)
    if entry["kind"] == "end":
        entry["duration_s"] = -7196.0
    if entry["kind"] in ("run", "process"):
        begun = datetime.fromisoformat(entry["started_at"])
        entry["started_at"] = (begun + timedelta(hours=2)).isoformat()


def test_a_run_goes_on_no_sooner_than_its_processes_took(tmp_path):
    """The last entries of a busy process may tell no time of day, or one that lies well before."""
    out = ("--output-dir", str(tmp_path / "out"))
    before_s = time.monotonic()
    cut = played(*OFFLINE, "--turns", "3", "--seed", "1", "--max-cost-usd", "0.01", *out)
    (journal,) = (tmp_path / "out").glob("journal/runs/*")
    rewritten(
        journal, lambda entry: entry.update({"elapsed_s": 9.5} if "elapsed_s" in entry else {})
    )
    again = ("resume", cut.document["run_id"], "--max-cost-usd", "9", *out)
    second = run(*again, env=clock(tmp_path, -HOURS_S))

    assert (cut.exit_code, second.exit_code) == (6, 0)
    assert_consistent(second.document, time.monotonic() - before_s + 9.5)
    assert second.document["timestamps"]["duration_seconds"] > 9.5


@pytest.mark.parametrize("turns", ["2", "3"], ids=["complete", "goes on"])
def test_a_journal_with_a_negative_duration_is_read(turns, tmp_path):
    out = ("--output-dir", str(tmp_path))
    first = played(*OFFLINE, "--turns", "2", *out)
    (journal,) = tmp_path.glob("journal/runs/*.jsonl")
    rewritten(journal, as_before_elapsed_times)
    before_s = time.monotonic()
    second = played("resume", first.document["run_id"], "--turns", turns, *out)

    assert second.exit_code == 0
    assert_consistent(second.document, time.monotonic() - before_s)
