"""Mistakes by the thousand, and files without end or bottom."""

import json
import subprocess

import pytest

from tests.command import assert_valid, daily, printed, run
from tests.torture.commands import PLAY, shell

MANY = 50_000


def keys(count: int) -> dict[str, int]:
    return {f"key-{n}": n for n in range(count)}


def table(count: int) -> str:
    return "".join(f"key-{n} = 1\n" for n in range(count))


TURN = {"student": "Hello", "tutor": "Why?"}
# Written where they are read: most of those who import this look for other tests.
CROWDED = {
    "transcript": ("--transcript", lambda: json.dumps({"turns": [TURN], **keys(MANY)})),
    "its turns": ("--transcript", lambda: json.dumps({"turns": [0] * MANY})),
    "prices": ("--prices", lambda: json.dumps({"models": keys(MANY)})),
    "scenario": ("--scenario-file", lambda: table(MANY)),
    "student": ("--scenario-file", lambda: f"[student]\n{table(MANY)}"),
    "items": ("--scenario-file", lambda: f"openings = [{'1,' * MANY}]"),
}


def bounded(*words: str, cpu_s: int = 20) -> subprocess.CompletedProcess[bytes]:
    """The command with so much of the processor's time, however busy the machine is."""
    return shell(f'ulimit -t {cpu_s}; exec "$@"', *words)


@pytest.mark.parametrize("name", daily(CROWDED, "its turns", "prices", "scenario"))
def test_of_ten_thousands_of_mistakes_twenty_are_shown_and_the_rest_is_counted(name, tmp_path):
    flag, written = CROWDED[name]
    file = tmp_path / "file"
    file.write_text(written())
    opening = () if flag == "--transcript" else ("--prompt", "x")
    done = bounded(*PLAY, *opening, flag, str(file))
    lines = done.stderr.decode().splitlines()
    document = printed(done.stdout)
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
    document = printed(done.stdout)

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
    assert both.stderr.splitlines()[0] == "error: 47 problems; no model was called:"
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
