"""Words, prompts and files that are no text, and letters that a terminal would obey."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.command import daily, environment, printed, run
from tests.torture.commands import PLAY, shell

LATIN = b"caf\xe9"
PATHS = (
    *("--output-dir", "--s3-prefix", "--scenario-file", "--transcript", "--system-prompt-file"),
    "--prices",
)


def assert_no_utf8(done: subprocess.CompletedProcess[bytes]) -> None:
    assert done.returncode == 2
    document = printed(done.stdout)
    assert document["end_reason"] == "usage"
    assert "not UTF-8 text" in document["error"]["message"]
    assert b"not UTF-8 text" in done.stderr


def test_a_piped_prompt_that_is_no_utf8_is_a_mistake():
    assert_no_utf8(shell('"$@"', *PLAY, "--prompt", "-", input=b"Hi " + LATIN))


NO_TEXT = [
    (*PLAY, "--prompt", LATIN),
    ("resume", LATIN, "--output-dir", "x"),
    (*PLAY, "--prompt", "x", PATHS[0], LATIN),
    (*PLAY, b"--prompt=" + LATIN),
    (*PLAY, "--prompt", b"half \xed\xa0\x80"),
    (*PLAY, "--prompt", "x", "--request-metadata", b"a=" + LATIN),
    ("scenarios", "--check", LATIN),
    ("emulator", "--host", LATIN),
    *((*PLAY, "--prompt", "x", flag, LATIN) for flag in PATHS[1:]),
    (*PLAY, "--prompt", "x", "--judge-model", LATIN),
    ("resume", "run-1", "--output-dir", LATIN),
]


@pytest.mark.parametrize(
    "words",
    [pytest.param(case, marks=[pytest.mark.torture] * (n > 2)) for n, case in enumerate(NO_TEXT)],
    ids=str,
)
def test_a_word_that_is_no_utf8_is_a_mistake(words):
    assert_no_utf8(shell('"$@"', *words))


@pytest.mark.parametrize(
    "name",
    daily(["RUNNER_JUDGE_MODEL", "RUNNER_OUTPUT_DIR", "AWS_PROFILE", "AWS_REGION"], first=1),
)
def test_a_variable_that_is_no_utf8_is_a_mistake_by_its_name_alone(name):
    env = {**{k.encode(): v.encode() for k, v in environment().items()}, name.encode(): LATIN}
    done = shell('"$@"', *PLAY, "--prompt", "x", env=env)

    assert_no_utf8(done)
    assert f"{name} is not UTF-8 text" in done.stderr.decode()


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
    assert "turns[0]: student: half of a character (a lone surrogate)." in outcome.stderr


@pytest.mark.parametrize(
    ("piped", "prompt"),
    daily(
        [
            (b"Hello\r\n", "Hello"),
            (b" Hello\n\n", " Hello\n"),
            (b"\xef\xbb\xbfHello", "Hello"),
            (b"Hello\n", "Hello"),
            (b"One\nTwo\n", "One\nTwo"),
            (b" Hello \n", " Hello "),
        ],
        first=3,
    ),
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
    assert brief.document["model"] == SAID
