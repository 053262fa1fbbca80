"""What the command does with its stdout, and with flags that are given twice."""

import fcntl
import json
import os
import select
import subprocess
import time

import pytest

from tests.command import OFFLINE, ROOT, daily, environment, printed, run
from tests.torture.commands import COMMAND, shell

FULL = '"$@" >/dev/full'
# Whoever reads is gone before anything is written.
GONE = '{ sleep 0.2; "$@"; } | true; exit "${PIPESTATUS[0]}"'
# Every way to get something on stdout; each leaves its command without a mistake.
WAYS = [
    (*OFFLINE, "--turns", "1"),
    ("schema", "run"),
    ("--version",),
    ("emulator",),
    ("scenarios", "--quiet"),
    ("--help",),
    (*OFFLINE, "--turns", "1", "--dry-run"),
    ("scenarios", "--check", "--quiet"),
    ("run", "--version"),
    ("schema", "--help"),
]
PRINTING = [pytest.param(way, marks=[pytest.mark.torture] * (n > 2)) for n, way in enumerate(WAYS)]


@pytest.mark.parametrize("redirect", daily([">&-", "1</dev/null"], first=1))
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
            (("scenarios", "--quiet", "--quiet"), "--quiet"),
            (("emulator", "--port", "0", "--port=0"), "--port"),
            (("emulator", "--latency-ms", "1", "--latency-ms", "2"), "--latency-ms"),
            (("schema", "run", "--debug", "--debug"), "--debug"),
        ],
        first=3,
    ),
    ids=lambda value: value if isinstance(value, str) else " ".join(value[-3:]),
)
def test_a_flag_that_is_given_twice_is_a_mistake(words, flag):
    done = shell('"$@"', *words)

    assert (done.returncode, printed(done.stdout)["end_reason"]) == (2, "usage")
    assert f"{flag} takes one value, but is given more than once" in done.stderr.decode()


def test_flags_that_may_be_repeated_still_may():
    pairs = ("--request-metadata", "a=1", "--request-metadata", "b=2")
    gates = ("--fail-under", "overall_score=1", "--fail-under=compliance_rate=0.1")
    outcome = run(*OFFLINE, "--turns", "1", *pairs, *gates)

    assert outcome.exit_code == 0
    assert outcome.document["inputs"]["request_metadata"] == {"a": "1", "b": "2"}
