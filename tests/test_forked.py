"""A command that the tests fork is like one that is started: only its imports were made before,
and its patterns compiled.
"""

import os
import signal
import subprocess

import pytest

from tests import forked
from tests.command import OFFLINE, OPENING, begin, environment, printed, run
from tests.fronted import Front
from tests.resuming import comparable

# It changes nothing, but the interpreter reads it before anything else, so it has to be started.
STARTED = {"PYTHONDONTWRITEBYTECODE": ""}


def _unmeasured(env):
    return {k: v for k, v in env.items() if not k.startswith("COVERAGE_")}


def _both(*words, env, **how):
    env = _unmeasured(env)
    assert forked.can_fork(env)
    assert not forked.can_fork(env | STARTED)
    return [run(*words, env=one, **how) for one in (env, env | STARTED)]


def test_what_it_says_and_how_it_ends_are_the_same(tmp_path):
    for words, env in (
        (("--version",), environment()),
        (("--turns", "none", "--modell"), environment(AWS_REGION="x", RUNNER_OUTPUT_DIR="out")),
    ):
        outcome, started = _both(*words, env=env, cwd=tmp_path)

        assert outcome == started
        assert outcome.exit_code == (2 if env.get("AWS_REGION") else 0)


def test_its_folder_and_stdin_are_its_own(tmp_path):
    words = (*OFFLINE[:-1], "-", "--turns", "2", "--seed", "5", "--output-dir", "out")
    outcome, started = _both(*words, env=environment(), cwd=tmp_path, stdin=OPENING.encode())

    assert comparable(outcome.document) == comparable(started.document)
    assert outcome.document["prompt"] == OPENING
    assert len([*tmp_path.glob("out/curated/runs/*.json")]) == 2


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_it_takes_signals(number, code):
    with begin("emulator", env=_unmeasured(environment()), stderr=subprocess.DEVNULL) as process:
        assert isinstance(process, forked.Process)
        assert process.stdout.readline().startswith(b"{")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)

        assert process.communicate() == (b"", None)
        assert process.returncode == code


def test_what_is_measured_is_started():
    assert not forked.can_fork(environment(COVERAGE_PROCESS_START="pyproject.toml"))


def test_a_script_has_the_streams_signals_and_end_of_the_command_that_is_forked_for_it(tmp_path):
    front, env = Front(tmp_path), _unmeasured(environment())
    words = (*OFFLINE, "--turns", "1", "--quiet")
    played = subprocess.run([*front.command, *words], env=env, capture_output=True, check=False)
    refused = subprocess.run([*front.command, "--no"], env=env, capture_output=True, check=False)
    assert (played.returncode, printed(played.stdout)["n_turns"]) == (0, 1)
    assert (refused.returncode, b"--no" in refused.stderr) == (2, True)

    for number, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
        ready, says = os.pipe()
        with os.fdopen(ready) as told:
            begun = subprocess.Popen(
                [*front.command, "emulator", "--port", "0"], env=env, stdout=says
            )
            os.close(says)
            assert told.readline()
            begun.send_signal(number)
            assert begun.wait() == code
            told.read()  # comes to an end: the command has ended, too
    front.close()
