"""How the command ends: exit code, status, end reason, and exactly one document each time."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

from socratic_bench.benchmarks.execution.benchmark import ExecutionBenchmark
from socratic_bench.benchmarks.socratic.benchmark import SocraticBenchmark
from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import (
    CLAUDE,
    OFFLINE,
    OPENING,
    ROOT,
    account,
    assert_valid,
    begin,
    daily,
    environment,
    in_time,
    printed,
    run,
)
from tests.fakes import FakeBedrock, Said, Sent, answer, scored
from tests.interruptions import writing
from tests.terminal import screen

JUDGE = "other.judge-v1:0"


def play(*faults, turns="3", words=(), keep=None, **variables):
    """A run with a tutor and a judge against an emulator with faults."""
    ordered = tuple(parse_fault(spec) for spec in faults)
    with Emulator(Settings(faults=ordered, any_model=True)) as served:
        env = account(served.url, CLAUDE, RUNNER_JUDGE_MODEL=JUDGE, **variables)
        outcome = run(
            *("--model", CLAUDE, "--prompt", OPENING, "--turns", turns, "--max-attempts", "2"),
            *words,
            env=env,
        )
        if keep is not None:
            keep.extend(served.requests)
    assert_valid("run", outcome.document)
    return outcome


def has_turns(outcome):
    return outcome.document["n_turns"] > 0


# One of each exit code; test_runner_endings.py has every way to end.
# faults -> exit code, status, end reason, turns played
ENDINGS = {
    "complete": ([], 0, "completed", "max_turns", 3),
    "guardrail": (["guardrail:role=tutor:after=1"], 0, "completed", "guardrail", 2),
    "nothing judged": (["filtered:role=tutor"], 5, "completed", "content_filtered", 1),
    "tutor gone later": (["throttled:role=tutor:after=2"], 4, "partial", "unavailable", 2),
    "judge gone": (["internal:role=judge"], 4, "partial", "unavailable", 3),
    "expired": (["expired_token:role=tutor:after=1"], 3, "partial", "credentials", 1),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_ending(case):
    faults, exit_code, status, end_reason, n_turns = ENDINGS[case]
    outcome = play(*faults)
    document = outcome.document

    assert (outcome.exit_code, document["status"], document["end_reason"]) == (
        exit_code,
        status,
        end_reason,
    )
    assert (document["n_turns"], len(document["turns"])) == (n_turns, n_turns)
    assert (document["error"] is None) == (exit_code == 0)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("context_window:role=tutor:after=2", " completed (context_window): score "),
        ("context_window:role=tutor", " completed (context_window): no turn was run\n"),
        ("filtered:role=tutor:after=1", " completed (content_filtered): score "),
    ],
)
def test_complete_run_that_was_cut_short_says_by_what(fault, told):
    assert told in play(fault).stderr


def test_a_sweep_says_where_unjudged_turns_come_late(tmp_path):
    def tutor(sent: Sent) -> Said:
        return answer(f"Reply number {len(sent.body['messages']) // 2}: why?")

    def judge(sent: Sent) -> Said:
        turn = max(map(int, re.findall(rb"Reply number (\d+)", sent.raw)))
        return scored(30 if turn > 14 else 3, 3, 4)

    prompts = tmp_path / "prompts.txt"
    prompts.write_text("I wonder about trains.\n")
    words = ("--models", CLAUDE, "--prompts", str(prompts), "--turns", "20")
    with FakeBedrock({CLAUDE: tutor, JUDGE: judge}) as served:
        env = account(served.url, CLAUDE, RUNNER_JUDGE_MODEL=JUDGE)
        outcome = run("sweep", *words, "--output-dir", str(tmp_path), env=env)
    (note,) = [text for text in outcome.document["notices"] if "unlike" in text]

    assert outcome.exit_code == 5
    assert note.startswith(
        f"{CLAUDE}: in 1 run the unjudged turns are unlike the judged ones (late)"
    )
    assert f"~ {note}" in outcome.stderr


@pytest.mark.parametrize(("n_broken", "exit_code"), [(1, 0), (2, 5)])
def test_one_unjudged_turn_is_always_allowed_two_are_not(n_broken, exit_code):
    """Each time that a verdict on one of the first turns is asked for, its scores are no scores."""

    def tutor(sent: Sent) -> Said:
        return answer(f"Reply number {len(sent.body['messages']) // 2}: why?")

    def judge(sent: Sent) -> Said:
        turn = max(map(int, re.findall(rb"Reply number (\d)", sent.raw)))
        return scored(30 if turn < n_broken else 3, 3, 4)

    with FakeBedrock({CLAUDE: tutor, JUDGE: judge}) as served:
        env = account(served.url, CLAUDE, RUNNER_JUDGE_MODEL=JUDGE)
        words = ("--model", CLAUDE, "--prompt", "I wonder about trains.", "--turns", "3")
        outcome = run(*words, env=env)
    judge = outcome.document["judge"]

    assert outcome.exit_code == exit_code
    assert judge["unjudged_reasons"] == {"invalid_verdict": n_broken}
    assert judge["coverage"] == round((3 - n_broken) / 3, 4)


def test_gates_name_what_failed_and_by_how_much():
    bounds = ("overall_score=9.9", "overall_score=2")
    words = [word for bound in bounds for word in ("--fail-under", bound)]
    words += ["--fail-over", "lapse_rate=0.5", "--fail-over", "lapse_rate=0.9"]
    outcome = run(
        *("--offline", "--model", "emulator.leading-v1:0", "--prompt", OPENING),
        *("--turns", "3", "--half-life-threshold", "10", *words),
    )
    document = outcome.document

    assert outcome.exit_code == 5
    assert document["status"] == "completed"
    assert document["error"]["code"] == "gate"
    thresholds = document["thresholds"]
    assert thresholds["fail_under"] == {"overall_score": 9.9}
    assert thresholds["fail_over"] == {"lapse_rate": 0.5}
    assert (
        f"overall_score is {document['overall_score']:g}, but must be at least 9.9."
        in document["error"]["message"]
    )
    assert "lapse_rate is 1, but must be at most 0.5." in outcome.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fail-under", "lapse_rate=0.2"), "a lower value is better. Bound it by --fail-over."),
        (("--fail-over", "usefulness=0.2"), "a higher value is better. Bound it by --fail-under."),
        (("--fail-under", "overall_score=11"), "overall_score is from 0 to 10, so the result is"),
        (("--fail-over", "lapse_rate=-0.1"), "lapse_rate is from 0 to 1, so the result is"),
        (
            ("--fail-under", "turns_held=5"),
            "runs of this length measure turns_held up to 4, not up to 5.",
        ),
        (("--fail-under", "half_life=9"), "runs of this length measure half_life up to 8"),
        (("--no-judge", "--fail-under", "overall_score=1"), "--no-judge leaves judging out"),
        (("--judge-model", "emulator.judg-v1:0"), "--judge-model: --offline has no model"),
        (("--judge-model", "anthropic.claude-9-v1:0"), "--judge-model: --offline has no model"),
        (("--student-model", "emulator.studnt-v1:0"), "(nearest: emulator.student-v1:0"),
    ],
)
def test_what_is_certain_beforehand_or_does_not_exist_is_refused(words, said):
    outcome = run(*OFFLINE, "--turns", "8", *words)

    assert (outcome.exit_code, outcome.document["n_turns"]) == (2, 0)
    assert said in outcome.stderr


def test_thresholds_move_the_metrics_and_are_printed():
    words = ("--offline", "--model", "emulator.leading-v1:0", "--prompt", OPENING, "--turns", "4")
    strict = run(*words, "--compliance-threshold", "10", "--half-life-threshold", "1").document
    usual = run(*words).document

    assert (usual["compliance_rate"], usual["half_life"]) == (1.0, 0)
    assert (strict["compliance_rate"], strict["half_life"]) == (0.0, 4)
    assert strict["metrics"]["half_life_censored"] is True
    assert (strict["thresholds"]["compliance"], strict["thresholds"]["half_life"]) == (10.0, 1.0)


def test_usage_mistakes_come_all_at_once_before_any_call():
    requests: list[object] = []
    outcome = play(
        turns="0",
        words=(
            "--scenario",
            "no-such",
            "--frobnicate",
            "--fail-under",
            "x=1",
            "--temperature",
            "7",
        ),
        keep=requests,
    )
    document = outcome.document

    assert (outcome.exit_code, document["end_reason"], document["status"]) == (2, "usage", "failed")
    assert (document["run_id"], document["turns"], requests) == (None, [], [])
    for part in ("turns is 0", "no-such", "--frobnicate", "'x'", "temperature is 7"):
        assert part in document["error"]["message"]
        assert part in outcome.stderr


def test_unknown_model_names_the_nearest_allowed_ids():
    env = account("http://127.0.0.1:9", CLAUDE, "meta.llama3-1-70b-instruct-v1:0")
    outcome = run("--model", "anthropic.claude-3-5-sonnet-20240620-v1:0", "--prompt", "hi", env=env)

    assert outcome.exit_code == 2
    assert "Model not found in BEDROCK_MODEL_IDS" in outcome.stderr
    assert f"nearest: {CLAUDE}" in outcome.stderr


def test_hint_of_a_judge_that_is_gone_says_what_to_do_about_it():
    document = play("daily_quota:role=judge").document

    assert (document["end_reason"], document["error"]["code"]) == (
        "unavailable",
        "judge_unavailable",
    )
    assert "run again tomorrow" in document["error"]["hint"]


@pytest.mark.parametrize("model", ["judge\n", "judge\x1b[2J", b"judge\xff"])
def test_model_id_that_drives_a_terminal_or_is_no_text_is_a_usage_error(model):
    outcome = run(*OFFLINE, "--judge-model", os.fsdecode(model))

    assert outcome.exit_code == 2
    assert "--judge-model holds a character that no model id has" in outcome.stderr


def test_no_credentials_is_exit_3_and_never_tried_again():
    with Emulator(Settings()) as served:
        env = account(served.url, CLAUDE)
        del env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
        outcome = run("--model", CLAUDE, "--prompt", OPENING, "--turns", "1", env=env)
        assert served.requests == []

    assert (outcome.exit_code, outcome.document["end_reason"]) == (3, "credentials")
    assert "Traceback" not in outcome.stderr
    assert "AWS_ACCESS_KEY_ID" in outcome.stderr


@pytest.mark.parametrize(
    ("names", "code"), [(["SIGTERM"], 143), (["SIGHUP"], 129), (["SIGHUP", "SIGHUP"], 129)]
)
def test_signal_before_anything_started_still_gives_a_document(names, code):
    """The program waits for its prompt on standard input when the signals come."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "--offline", "--model", "m", "--prompt", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    )
    assert process.stdin
    # More than a pipe holds: it is written once the program reads, and by then its handlers stand.
    process.stdin.write(b"x" * 100_000)
    process.stdin.flush()
    for name in names:
        process.send_signal(getattr(signal, name))
        time.sleep(0.002)
    stdout, stderr = process.communicate()

    assert process.returncode == code
    assert_valid("run", json.loads(stdout))
    assert b"Traceback" not in stderr


def broken(*_):
    raise ZeroDivisionError


def test_defect_is_exit_1_with_a_document_and_a_traceback_only_on_request(monkeypatch):
    monkeypatch.setattr(SocraticBenchmark, "prepare", broken)
    monkeypatch.setattr(ExecutionBenchmark, "prepare", broken)
    plain = run(*OFFLINE)
    other = ("--offline", "--model", "emulator.executes-v1:0", "--benchmark", "execution")
    debug = run(*other, "--debug")
    told = json.loads(debug.stdout)

    assert (plain.exit_code, plain.document["end_reason"]) == (1, "internal")
    assert_valid("run", plain.document)
    assert plain.document["error"]["hint"].startswith("Run again with --debug for the traceback")
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debug.stderr
    assert (debug.exit_code, told["error"]["code"]) == (1, "internal")
    assert (told["benchmark"], told["model"]) == ("execution", "emulator.executes-v1:0")


def test_a_defect_in_a_benchmark_s_metrics_leaves_the_document_of_what_was_played(
    monkeypatch, tmp_path
):
    with monkeypatch.context() as patch:
        patch.setattr(SocraticBenchmark, "summarise", broken)
        outcome = run(*OFFLINE, "--turns", "8")
    document = outcome.document
    kept = tmp_path / "kept.json"
    kept.write_bytes(outcome.stdout)
    whole = run("--resume-from", str(kept))

    assert (outcome.exit_code, document["end_reason"]) == (1, "internal")
    assert_valid("run", document)
    assert document["n_turns"] > 0
    assert document["error"]["hint"].endswith("socratic-runner --resume-from FILE.")
    assert (whole.exit_code, whole.document["usage"]) == (0, document["usage"])


def test_missing_bucket_is_found_before_the_first_call(moto_url):
    requests: list[object] = []
    bucket = {"RUNNER_S3_BUCKET": "no-such-bucket", "AWS_ENDPOINT_URL_S3": moto_url}
    outcome = play(keep=requests, **bucket)

    assert (outcome.exit_code, requests) == (2, [])
    assert "No such bucket: no-such-bucket" in outcome.stderr
    assert "unset RUNNER_S3_BUCKET" in outcome.stderr


def test_output_folder_that_cannot_be_written_is_found_before_the_first_call(tmp_path):
    (tmp_path / "file").write_text("")
    requests: list[object] = []
    outcome = play(keep=requests, RUNNER_OUTPUT_DIR=str(tmp_path / "file" / "out"))

    assert (outcome.exit_code, requests) == (2, [])
    assert "is a file" in outcome.stderr


@pytest.mark.parametrize("name", daily(["SIGHUP", "SIGINT", "SIGTERM"], first=1))
def test_signal_while_the_document_is_written_adds_nothing_to_it(name):
    """Nobody reads a pipe that holds less than the document, so that the write stands still."""
    with writing(subprocess.PIPE) as process:
        process.send_signal(getattr(signal, name))
        rest, stderr = process.communicate()

    assert_valid("run", json.loads(b"{" + rest))
    assert process.returncode == 0
    assert stderr == b""


@pytest.mark.parametrize(
    ("redirect", "words"), [("2>&-", ("--turns", "0")), ("2>/dev/full", ("--turns", "1"))]
)
def test_document_comes_whatever_stderr_is(redirect, words):
    quoted = [sys.executable, "-m", "cli", *OFFLINE, *words]
    done = subprocess.run(
        ["bash", "-c", f'"$@" {redirect}', "bash", *quoted],
        capture_output=True,
        cwd=ROOT,
        env=environment(),
        check=False,
    )

    assert_valid("run", json.loads(done.stdout))
    assert done.returncode == (2 if words[1] == "0" else 0)


@pytest.fixture
def silent_server():
    """A server that takes connections and never says a word."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


S3_WORDS = ("--turns", "1", "--s3-bucket", "a-bucket")
KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example"}


def test_deadline_holds_while_a_store_does_not_answer(silent_server):
    env = environment(AWS_ENDPOINT_URL_S3=silent_server, **KEYS)
    outcome = in_time(
        lambda s: run(*OFFLINE, *S3_WORDS, "--deadline", str(s), env=env), has_turns, first_s=6
    )

    assert (outcome.exit_code, outcome.document["end_reason"]) == (7, "deadline")
    assert outcome.document["n_turns"] == 1
    assert outcome.document["s3_artifacts"]["curated"] is None


def test_signal_ends_a_run_that_waits_for_its_store(silent_server):
    env = environment(AWS_ENDPOINT_URL_S3=silent_server, **KEYS)
    process = begin(*OFFLINE, *S3_WORDS, env=env)
    assert process.stderr
    while not process.stderr.readline()[5:].startswith(b"turn   0"):
        assert process.poll() is None
    process.terminate()
    stdout, _ = process.communicate()

    assert process.returncode == 143
    assert printed(stdout)["end_reason"] == "interrupted"


@pytest.mark.parametrize(
    "words",
    [
        (*OFFLINE, "--system-prompt-file", "/dev/zero"),
        (*OFFLINE, "--scenario-file", "/dev/zero"),
        (*OFFLINE, "--output-dir", "/dev/null/x"),
        (*OFFLINE, "--output-dir", "/proc/none"),
        (*OFFLINE, "--output-dir", "x" * 300),
    ],
    ids=["system prompt", "scenario", "under a file", "unwritable", "long name"],
)
def test_odd_files_and_folders_are_usage_mistakes(words):
    outcome = run(*words)

    assert (outcome.exit_code, outcome.document["end_reason"]) == (2, "usage")


def test_closed_standard_input_is_an_empty_prompt():
    words = [sys.executable, "-m", "cli", "--offline", "--model", "m", "--prompt", "-"]
    done = subprocess.run(
        ["bash", "-c", '"$@" <&-', "bash", *words],
        capture_output=True,
        cwd=ROOT,
        env=environment(),
        check=False,
    )

    assert done.returncode == 2
    assert "The prompt is empty" in printed(done.stdout)["error"]["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("--port", "99999"),
        ("--host", "a..b"),
        ("--latency-ms", "-5"),
        ("--latency-ms", "nan"),
        ("--requests-per-minute", "0"),
        ("--fault", "no-such-kind"),
    ],
    ids=str,
)
def test_mistakes_of_the_emulator_are_refused(words):
    outcome = run("emulator", *words)

    assert outcome.exit_code == 2
    assert_valid("error", outcome.document)
    assert "defect" not in outcome.stderr


def test_live_line_is_cleared_before_a_run_that_ended_early_is_reported():
    """stderr is a terminal, stdout is piped, as in `socratic-runner ... | jq`."""
    mine, theirs = pty.openpty()
    with Emulator(Settings(faults=(parse_fault("access_denied:role=tutor:after=1"),))) as served:
        words = ("--model", CLAUDE, "--prompt", OPENING, "--turns", "5")
        process = begin(*words, env=account(served.url, CLAUDE), stderr=theirs)
        os.close(theirs)
        stdout, _ = process.communicate()
    seen = os.read(mine, 65536).decode()
    os.close(mine)

    assert (process.returncode, printed(stdout)["n_turns"]) == (3, 1)
    assert "turn 1: waiting for the tutor" in seen
    assert re.search(r"\r\x1b\[K\w{4} partial: ", seen)
    assert "waiting" not in "".join(screen(seen))
