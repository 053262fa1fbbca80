"""What somebody types who does not know the command yet, and what it answers."""

import json
import os
import pty
import re
import shutil
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from cli.commands import COMMANDS as MODULES
from socratic_bench.emulator import MODEL_IDS
from socratic_bench.runs.stores import is_mounted
from tests.command import CLAUDE, OFFLINE, ROOT, assert_valid, begin, environment, run

COMMANDS = (
    *("run", "resume", "show", "sweep", "compare", "judge", "label", "calibrate"),
    *("report", "doctor", "validate", "scenarios", "dataset", "models"),
    *("schema", "emulator", "completion"),
)
SHELL_WORDS = f'eval "$({sys.executable} -m cli completion %s)"; %s'
BASH = (
    "COMP_WORDS=(socratic-runner %s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _socratic_runner; "
    'printf "%%s\\n" "${COMPREPLY[@]}"'
)


@pytest.fixture(scope="module")
def told():
    return {words: run(*words).stdout.decode() for words in (("help",), ("help", "models"))}


def test_help_is_a_command_too(told):
    assert told["help",] == run("--help").stdout.decode()
    assert told["help", "models"] == run("models", "--help").stdout.decode()


def test_the_help_fits_a_screen_and_has_examples(told):
    lines = run("--help", env=environment(COLUMNS="80")).stdout.decode().splitlines()
    commands = told["help",].partition("commands ")[2].partition("\n\n")[0]

    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80 + len("usage: ")
    assert sum(line.startswith("  socratic-runner ") for line in lines) == 2
    assert [name for name in MODULES if not re.search(rf"\b{name}\b", commands)] == []


def test_help_of_a_topic_lists_its_flags(told):
    every, socratic = (run("--help", topic).stdout.decode() for topic in ("all", "socratic"))
    flags = re.compile(r"^  (?:-\w, )?(--[a-z][a-z0-9-]*)", re.MULTILINE)

    assert "--pressure LEVEL" in socratic
    assert "--pressure" not in told["help",]
    assert "--dataset" not in socratic
    assert {*flags.findall(socratic), *flags.findall(told["help",])} < {*flags.findall(every)}
    assert "RUNNER_JUDGE_MODEL" in every
    assert (
        "topics: all, execution, golden, optimisation, socratic" in run("--help", "socratc").stderr
    )


@pytest.mark.parametrize("command", [name for name in MODULES if name != "help"])
def test_each_command_has_an_example(command):
    assert f"\n  {'eval' if command == 'completion' else 'socratic-runner'} " in (
        run(command, "--help").stdout.decode().partition("example")[2]
    ).replace("socratic-runner --offline", "socratic-runner")


def test_several_values_come_after_one_flag_or_after_each(tmp_path):
    models = MODEL_IDS[:3]
    words = ("--scenarios", "milk-price", "--turns", "1", "--offline", "--no-judge", "--dry-run")
    outcome = run("sweep", "--models", *models[:2], "--models", models[2], *words)
    config = tmp_path / "plan.toml"
    config.write_text('scenarios = ["milk-price"]\n')

    assert outcome.document["axes"]["model"] == [*models]
    swallowed = run("sweep", "--models", *models, str(config), *words)
    assert f"{config} is read as a value of --models: write -- before it" in swallowed.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_no_help_sends_to_a_page_that_only_a_checkout_has(command):
    parser = import_module(MODULES[command][0], "cli").build_parser()

    assert ".md" not in parser.format_help()


def test_short_flags_are_those_that_everybody_tries(tmp_path):
    outcome = run(*OFFLINE, "--turns", "1", "-q", "-o", str(tmp_path))

    assert run("-V").stdout == run("--version").stdout
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert Path(outcome.document["output_artifacts"]["curated"]).is_relative_to(tmp_path)
    assert run("scenarios", "-q").stderr == ""


@pytest.mark.parametrize("words", [("scenarois", "--check", "x"), ("help", "scenarois")])
def test_an_unknown_command_is_one_mistake(words):
    outcome = run(*words)

    assert (outcome.exit_code, outcome.document["end_reason"]) == (2, "usage")
    assert_valid("run", outcome.document)
    assert outcome.document["error"]["message"] == (
        f"Unknown command 'scenarois'; did you mean scenarios? Commands: {', '.join(MODULES)}."
    )
    assert len(outcome.stderr.splitlines()) == 2


def test_a_second_command_is_not_taken_for_an_unknown_one():
    message = run("help", "run", "resume").document["error"]["message"]

    assert message == "More than one command: 'resume' is one too many."


def test_a_misspelt_flag_is_one_mistake_with_its_word():
    outcome = run("--offline", "--model", MODEL_IDS[0], "--promt", "Hi", "--turns", "1")
    other = run("scenarios", "--chek", "mine.toml")

    assert outcome.document["error"]["message"].split(". ")[0] == (
        "Unknown flag '--promt'; did you mean --prompt? --prompt or --scenario is required."
    )
    assert other.document["error"]["message"] == "Unknown flag '--chek'; did you mean --check?"


def test_an_unknown_scenario_is_answered_with_a_similar_name():
    outcome = run("--offline", "--model", MODEL_IDS[0], "--scenario", "carer-change")

    assert outcome.exit_code == 2
    assert outcome.document["error"]["message"] == (
        "No scenario 'carer-change'; did you mean career-change?"
    )


# --- models ---------------------------------------------------------------------------------------


def test_models_lists_what_may_be_tested_without_a_call():
    ids = [CLAUDE, "eu.anthropic.claude-3-5-sonnet-20240620-v1:0", "somebody.new-v1:0"]
    outcome = run("models", env=environment(BEDROCK_MODEL_IDS=str(ids).replace("'", '"')))
    document = outcome.document
    first, profile, new = document["models"]

    assert_valid("models", document)
    assert outcome.exit_code == 0
    assert [one["model_id"] for one in document["models"]] == ids
    assert all(one["allowed"] and not one["embedded"] for one in document["models"])
    assert (first["prices"]["default"]["input"], first["prices"]["default"]["output"]) == (3, 15)
    assert profile["capabilities"]["prompt_cache"] is False
    assert (new["family"], new["prices"]) == (None, None)
    assert [line.split()[0] for line in outcome.stderr.splitlines()] == ["model", *ids]


def test_models_says_what_is_to_be_had_where_nothing_is_set(tmp_path):
    alone, offline, whole = run("models"), run("models", "--offline"), run("models", "--all", "-q")
    wrong = run("models", env=environment(BEDROCK_MODEL_IDS="["))

    assert [one["model_id"] for one in alone.document["models"]] == [*MODEL_IDS]
    assert {one["allowed"] for one in alone.document["models"]} == {False}
    assert {one["allowed"] for one in offline.document["models"]} == {True}
    assert "set BEDROCK_MODEL_IDS, or use --offline" in alone.stderr
    assert len(whole.document["models"]) > 200
    assert (wrong.exit_code, wrong.document["kind"]) == (2, "error")
    assert wrong.document["error"]["message"].startswith("BEDROCK_MODEL_IDS is not valid JSON")


def test_models_calls_a_flag_by_its_name(tmp_path):
    message = run("models", "--prices", str(tmp_path / "no.json")).document["error"]["message"]

    assert message == f"--prices {tmp_path}/no.json cannot be read: No such file or directory."


def test_offline_says_in_its_own_terms_what_is_wrong_with_a_model():
    words = ("--offline", "--prompt", "Hi", "--model")
    real = run(*words, CLAUDE)
    other = run(*words, MODEL_IDS[0], env=environment(BEDROCK_MODEL_IDS=f'["{CLAUDE}"]'))

    assert real.document["error"]["message"].startswith(
        f"--offline runs mock models only, and '{CLAUDE}' is none"
    )
    assert other.document["error"]["message"].startswith(
        f"Model not found in BEDROCK_MODEL_IDS, which counts with --offline, too: '{MODEL_IDS[0]}'"
    )


# --- completion -----------------------------------------------------------------------------------


def completed(shell: str, script: str) -> list[str]:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    done = subprocess.run(
        [shell, "-c", script],
        cwd=ROOT,
        env={**environment(BEDROCK_MODEL_IDS=json.dumps(IDS)), "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [line.split("\t")[0] for line in done.stdout.splitlines() if line]


IDS = ("mine.one-v1:0", "mine.two-v1:0")
TYPED = {
    "--pressure ''": {"none", "low", "high"},
    "--latency-profile ''": {"standard", "optimized"},
    "--scenario care": {"career-change"},
    "resume --student ''": {"scripted", "model"},
    "schema jo": {"journal", "journal_entry"},
    "completion ''": {"bash", "zsh", "fish", "-h", "--help", "--debug"},
    "sc": {"scenarios", "schema"},
    "emulator --any": {"--any-model"},
    "--output-d": {"--output-dir"},
    "--benchmark so": {"socratic"},
    "--seed ''": set(),
    "--model ''": {*IDS},
    "--model mine.o": {IDS[0]},
    "--student-model mine.t": {IDS[1]},
    "--judge-model emulator.ju": {"emulator.judge-v1:0"},
    "resume --judge-model mistral.mistral-large-2402": {"mistral.mistral-large-2402-v1:0"},
}
# bash ends words at = and at colons.
IN_BASH = {
    "--model = mine.o": {IDS[0]},
    "--model mine.one-v1 :": {"0"},
    "--model mine.one-v1 : 0": {"0"},
}


def test_bash_completes_commands_flags_and_their_words():
    cases = {**TYPED, **IN_BASH}
    script = "; ".join(BASH % typed + "; echo =" for typed in cases)
    found = "\n".join(completed("bash", SHELL_WORDS % ("bash", script))).split("=")

    for (typed, words), block in zip(cases.items(), found, strict=False):
        assert set(block.split()) == words, typed


def test_zsh_reads_the_same():
    """It leaves out by itself what does not begin as what is typed."""
    script = "emulate -R sh; " + "; ".join(BASH % typed + "; echo =" for typed in TYPED)
    found = "\n".join(completed("zsh", SHELL_WORDS % ("zsh", script))).split("=")

    for (typed, words), block in zip(TYPED.items(), found, strict=False):
        assert words <= set(block.split()), typed
        assert words or not block.strip()


def test_fish_completes_commands_flags_and_their_words():
    lines = [f'complete -C "socratic-runner {typed}"; echo =' for typed in TYPED]
    load = f"{sys.executable} -m cli completion fish | source; "
    found = "\n".join(completed("fish", load + "; ".join(lines))).split("=")

    for (typed, words), block in zip(TYPED.items(), found, strict=False):
        wanted = {word for word in words if not word.startswith("-") or "-" in typed}
        assert wanted <= set(block.split()), typed


def test_models_are_completed_where_none_is_allowed_yet():
    script = f"unset BEDROCK_MODEL_IDS; {BASH % '--model emulator.drift-5'}"

    assert completed("bash", SHELL_WORDS % ("bash", script)) == ["emulator.drift-5-v1:0"]


def test_every_flag_of_the_help_is_completed():
    script = run("completion", "bash").stdout.decode()
    offered = re.search(r"^    'run '\*\) words='(.*)'", script, re.MULTILINE)[1].split()
    text = run("--help", "all").stdout.decode()
    flags = re.findall(r"^  (?:-\w, )?(--[a-z][a-z0-9-]*)", text, re.MULTILINE)

    assert len(flags) > 40
    assert [flag for flag in flags if flag not in offered] == []
    assert (run("completion", "tcsh").exit_code, run("completion").document["kind"]) == (2, "error")


# --- words ----------------------------------------------------------------------------------------


def test_a_prompt_from_a_terminal_says_that_it_waits():
    mine, theirs = pty.openpty()
    words = ("--offline", "--model", MODEL_IDS[0], "--prompt", "-", "--turns", "1", "--brief")
    process = begin(*words, stdin=theirs, stdout=subprocess.DEVNULL)
    first = process.stderr.readline().decode()
    os.write(mine, b"What is truth?\n\x04")
    rest = process.communicate()[1].decode()
    os.close(mine)
    os.close(theirs)

    assert "from this terminal" in first
    assert "Ctrl-D" in first
    assert (process.returncode, "turn   0" in rest) == (0, True)
    assert "terminal" not in run(*words, stdin=b"Hi").stderr


def test_one_thing_is_counted_as_one():
    played = run(*OFFLINE, "--turns", "1").stderr
    foretold = run(*OFFLINE, "--turns", "1", "--dry-run").stderr

    assert "up to 1 turn," in played
    assert re.search(r"1 call  ", foretold)
    assert re.findall(r"\b1 (?:\w+s)\b(?<! s)", played + foretold) == []


def test_a_budget_adds_up():
    message = run(*OFFLINE, "--max-cost-usd", "0.05", "-q").document["error"]["message"]
    limit, left, spent, asked = map(float, re.findall(r"([\d.]+) USD", message))

    assert limit == pytest.approx(left + spent)
    assert asked > left > 0


def test_a_dry_run_counts_the_turns_that_a_budget_buys():
    outcome = run(*OFFLINE, "--max-cost-usd", "0.05", "--dry-run")
    n_turns = outcome.document["n_turns"]

    assert n_turns > 1
    assert f"the budget covers only {n_turns} turns\n" in outcome.stderr


def test_no_amount_has_an_exponent():
    spent = run(*OFFLINE, "--max-cost-usd", "0.00001").document["error"]["message"]
    wrong = run(*OFFLINE, "--max-cost-usd", "0").document["error"]["message"]

    assert spent.startswith("The budget of 0.00001 USD has 0.000010 USD left")
    assert wrong.endswith("must lie in 0.000001..1000000.")


@pytest.mark.parametrize(
    ("words", "flag"), [(("--host", "192.0.2.1"), "--host"), (("--port", "taken"), "--port")]
)
def test_an_emulator_that_cannot_listen_says_what_to_choose_instead(words, flag):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = run("emulator", *(port if word == "taken" else word for word in words))

    assert outcome.exit_code == 2
    assert outcome.document["error"]["hint"].startswith(f"Choose another {flag}")


# --- a container ----------------------------------------------------------------------------------

MOUNTINFO = r"""
27 1 0:25 / / rw - overlay overlay rw
28 27 0:5 / /run rw - tmpfs tmpfs rw
29 27 8:1 /home/me/my\040runs /work/my\040runs rw shared:1 - ext4 /dev/sda1 rw
""".strip()


@pytest.mark.parametrize(
    ("path", "is_kept"),
    [("/work/my runs/a", True), ("/work/my runs", True), ("/work", False), ("/run/x", False)],
)
def test_a_mount_keeps_what_a_container_does_not(path, is_kept):
    """The image itself is looked at in tests/image."""
    assert is_mounted(Path(path), MOUNTINFO) is is_kept


def test_nobody_is_told_of_containers_outside_of_the_image(tmp_path):
    told = [
        run(*OFFLINE, "--turns", "1", "-o", str(tmp_path / name), env=environment(**variables))
        for name, variables in (("a", {}), ("b", {"RUNNER_IN_IMAGE": "1"}))
    ]
    expected = not is_mounted(tmp_path, Path("/proc/self/mountinfo").read_text())

    assert "this container" not in told[0].stderr
    assert ("lies in this container alone" in told[1].stderr) is expected
    assert len(told[1].document["notices"]) == expected
