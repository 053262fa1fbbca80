"""The command's main job, from outside: argv in, one document out."""

import json
import sys

import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import (
    CLAUDE,
    OFFLINE,
    OPENING,
    ROOT,
    account,
    assert_valid,
    begin,
    environment,
    run,
)

TOP_LEVEL_KEYS = [
    *("kind", "schema_version", "run_id", "status", "benchmark", "model", "scenario", "prompt"),
    *("n_turns", "overall_score", "compliance_rate", "half_life", "metrics", "turns"),
    *("s3_artifacts", "timestamps", "usage", "cost", "latency", "judge", "student"),
    *("end_reason", "seed", "error"),
]


@pytest.fixture
def emulator():
    with Emulator(Settings()) as served:
        yield served


def test_offline_run_prints_one_judged_document():
    outcome = run(*OFFLINE, "--turns", "3", "--seed", "5")
    document = outcome.document

    assert outcome.exit_code == 0
    assert_valid("run", document)
    assert [key for key in TOP_LEVEL_KEYS if key not in document] == []
    assert (document["status"], document["end_reason"], document["n_turns"]) == (
        "completed",
        "max_turns",
        3,
    )
    assert document["scenario"] == "career-change"
    assert document["judge"]["coverage"] == 1.0
    assert document["overall_score"] == document["metrics"]["overall_score"] >= 8
    # A verdict a turn, and one on the dialogue as a whole.
    assert document["usage"]["tutor"]["calls"] == 3
    assert document["usage"]["judge"]["calls"] == 3 + 1
    assert document["usage"]["student"]["calls"] == 0
    assert document["seed"] == 5


def test_every_way_to_start_the_command_is_the_same(tmp_path):
    """As a module, as a file from any folder, with and without the word `run`."""
    entries = {
        "module": ((sys.executable, "-m", "cli"), ROOT, []),
        "file": ((sys.executable, str(ROOT / "cli" / "runner.py")), tmp_path, []),
        "subcommand": ((sys.executable, "-m", "cli"), ROOT, ["run"]),
    }
    found = {}
    for name, (entry, cwd, words) in entries.items():
        env = environment()
        if name == "file":
            del env["PYTHONPATH"]
        arguments = (*words, *OFFLINE, "--turns", "2", "--seed", "1")
        outcome = run(*arguments, entry=entry, cwd=cwd, env=env)
        found[name] = (outcome.exit_code, [t["question"] for t in outcome.document["turns"]])

    assert found["module"][0] == 0
    assert len(set(map(str, found.values()))) == 1


def test_same_seed_same_requests_in_any_process():
    bodies = []
    for hash_seed in ("1", "2"):
        with Emulator(Settings(any_model=True)) as served:
            env = account(served.url, CLAUDE, PYTHONHASHSEED=hash_seed)
            words = ("--model", CLAUDE, "--prompt", OPENING, "--turns", "4", "--seed", "9")
            assert run(*words, "--student-model", "any.student", env=env).exit_code == 0
            bodies.append(sorted((r.role, r.turn, r.body_sha256) for r in served.requests))

    assert bodies[0] == bodies[1]
    assert len(bodies[0]) == 4 + 3 + 4 + 1  # the last one is about the dialogue as a whole


def test_prompt_from_standard_input():
    outcome = run(
        *("--offline", "--model", "emulator.socratic-v1:0", "--prompt", "-", "--turns", "1"),
        stdin=b"Is a hot dog a sandwich?\n",
    )

    assert outcome.document["prompt"].strip() == "Is a hot dog a sandwich?"
    assert outcome.document["scenario"] == "custom"


def test_an_opening_names_its_scenario_whatever_its_case_and_spaces():
    prompt = "  i'm considering a CAREER change\n but unsure where to start. "
    words = ("--offline", "--model", "emulator.socratic-v1:0", "--prompt", prompt, "--turns", "1")

    assert run(*words).document["scenario"] == "career-change"


def test_model_student_plays_with_swapped_roles_and_no_sight_of_the_tutors_prompt():
    with Emulator(Settings(keep_bodies=True, any_model=True)) as served:
        env = account(served.url, CLAUDE, RUNNER_STUDENT_MODEL="any.student-v1:0")
        outcome = run("--model", CLAUDE, "--prompt", OPENING, "--turns", "3", env=env)
        requests = [(r.role, json.loads(r.body)) for r in served.requests]
    student = [body for role, body in requests if role == "student"]
    tutor = next(body for role, body in requests if role == "tutor")

    assert outcome.document["student"]["mode"] == "model"
    assert outcome.document["usage"]["student"]["calls"] == len(student) == 2
    assert student[0]["messages"][1] == {"role": "assistant", "content": [{"text": OPENING}]}
    assert tutor["system"][0]["text"] not in json.dumps(student)


def test_judge_left_out():
    outcome = run(*OFFLINE, "--turns", "2", "--no-judge")
    document = outcome.document

    assert outcome.exit_code == 0
    assert_valid("run", document)
    assert document["judge"] is None
    assert document["overall_score"] is None
    assert [turn["score"] for turn in document["turns"]] == [None, None]
    assert [turn["unjudged_reason"] for turn in document["turns"]] == [None, None]
    assert document["usage"]["judge"]["attempts"] == 0


def test_brief_prints_the_short_forms_keys_only():
    document = run(*OFFLINE, "--turns", "1", "--brief").document

    assert_valid("brief", document)
    assert list(document) == [
        *("run_id", "model", "scenario", "n_turns", "overall_score"),
        *("compliance_rate", "half_life", "s3_artifacts"),
    ]


def test_pretty_prints_the_same_document_on_many_lines():
    outcome = run(*OFFLINE, "--turns", "1", "--pretty")

    assert outcome.stdout.count(b"\n") > 50
    assert_valid("run", json.loads(outcome.stdout))


def test_progress_has_a_line_per_turn_in_order_and_quiet_has_none():
    lines = run(*OFFLINE, "--turns", "3").stderr.splitlines()
    turns = [line for line in lines if line[5:].startswith("turn ")]

    assert [line.split()[2] for line in turns] == ["0", "1", "2"]
    assert all("form" in line and " in, " in line for line in turns)
    assert run(*OFFLINE, "--turns", "2", "--quiet").stderr == ""


def test_the_users_own_credentials_never_go_to_the_embedded_endpoint():
    """Planted keys, tokens, proxies and endpoints have no effect on an offline run."""
    env = environment(
        AWS_ACCESS_KEY_ID="AKIACANARY",
        AWS_SECRET_ACCESS_KEY="canary",
        AWS_BEARER_TOKEN_BEDROCK="canary-token",
        AWS_ENDPOINT_URL="http://127.0.0.1:9",
        HTTP_PROXY="http://127.0.0.1:9",
        BEDROCK_ASSUME_ROLE_ARN="arn:aws:iam::123456789012:role/Canary",
        AWS_PROFILE="canary-profile",
    )
    outcome = run(*OFFLINE, "--turns", "1", env=env)

    assert outcome.exit_code == 0
    assert "canary" not in (outcome.stdout.decode() + outcome.stderr).lower()


@pytest.mark.parametrize(
    ("flag", "word"), [("--help", "--fail-under"), ("--version", "socratic-runner ")]
)
def test_help_and_version_are_plain_text(flag, word):
    """What they import is told in test_startup.py."""
    outcome = run(flag)

    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert word in outcome.stdout.decode()


def test_scenarios_are_listed_as_a_table_and_a_document():
    outcome = run("scenarios")

    assert_valid("scenarios", outcome.document)
    names = [scenario["id"] for scenario in outcome.document["scenarios"]]
    assert "career-change" in names
    assert len(outcome.stderr.splitlines()) >= len(names)


def test_schemas_are_printed_and_valid():
    from jsonschema import Draft202012Validator

    from socratic_bench.benchmarks import BENCHMARKS, RunConfig, load_benchmark
    from socratic_bench.documents.schema import Documents
    from socratic_bench.studies.sweep.settings import SweepSettings
    from tests.schemas import schema

    assert run("schema", "run").document == schema("run")
    for name in BENCHMARKS:
        documents = Documents(load_benchmark(name), RunConfig, SweepSettings)
        for kind in documents.kinds if name == "socratic" else ("run", "turn", "sweep"):
            Draft202012Validator.check_schema(documents.schema(kind))


def test_emulator_serves_alone_until_it_is_told_to_end():
    process = begin("emulator", "--port", "0", "--fault", "throttled:count=2")
    assert process.stdout
    document = json.loads(process.stdout.readline())
    env = account(document["endpoint_url"], CLAUDE)
    outcome = run("--model", CLAUDE, "--prompt", OPENING, "--turns", "1", env=env)
    process.terminate()
    rest, _ = process.communicate()

    assert_valid("emulator", document)
    assert (outcome.exit_code, outcome.document["usage"]["total"]["attempts"]) == (0, 5)
    assert (process.returncode, rest) == (0, b"")


def test_model_text_cannot_drive_the_terminal():
    """Control sequences in a prompt reach neither the progress lines nor the error lines."""
    outcome = run(
        *("--offline", "--model", "emulator.lecturer-v1:0", "--turns", "1"),
        *("--prompt", "\x1b[2J\x1b]0;owned\x07 What is \x9b31mtruth\u202e?"),
    )
    wrong = run("--offline", "--model", "\x1b[31mred", "--prompt", "hi")

    for stderr in (outcome.stderr, wrong.stderr):
        assert "\x1b" not in stderr
        assert "\x07" not in stderr
        assert "\u202e" not in stderr


def test_every_call_of_a_turn_is_in_its_file_and_in_its_usage(tmp_path):
    """Also those whose answer was put aside: an empty reply, and a student out of its part."""
    faults = [
        parse_fault(spec)
        for spec in ("throttled:role=tutor:count=1:ms=1", "empty_reply:role=tutor:count=1")
    ]
    with Emulator(Settings(faults=tuple(faults))) as served:
        outcome = run(
            *("--model", CLAUDE, "--judge-model", CLAUDE, "--scenario", "career-change"),
            *("--student-model", "emulator.student-swap-once-v1:0", "--turns", "6"),
            *("--output-dir", str(tmp_path), "--quiet"),
            env=account(served.url, CLAUDE),
        )
    document = outcome.document
    files = [json.loads(path.read_bytes()) for path in tmp_path.rglob("turn_*.json")]
    for file in files:
        assert_valid("turn", file)
    aside = [one for file in files for one in file["set_aside"]]
    students = [file["student"] for file in files if file["student"]]
    calls = {
        "tutor": [*files, *(one for one in aside if one["role"] == "tutor")],
        "student": [*students, *(one for one in aside if one["role"] == "student")],
    }

    assert {one["role"] for one in aside} == {"tutor", "student"}
    for role, made in calls.items():
        sums = document["usage"][role]
        assert sum(len(call["attempts"]) for call in made) == sums["attempts"]
        for kind in ("input_tokens", "output_tokens", "cache_read_tokens"):
            assert sum(call["usage"][kind] for call in made) == sums[kind]
            told = [turn["usage"][role] for turn in document["turns"]]
            assert sum(usage[kind] for usage in told if usage) == sums[kind]
