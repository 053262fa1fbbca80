"""What people see on stderr: at any width, at a glance, and of several runs at once."""

import re
import shlex
import subprocess

import pytest

from cli.terminal import INTERVAL, number, table
from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import CLAUDE, OFFLINE, PLAIN_RUBRIC, account, begin, daily, environment, run
from tests.fakes import FakeBedrock, Said
from tests.terminal import COLOUR, run_all_in_terminal, run_in_terminal, screen, width

DRIFT = (
    *("--offline", "--model", "emulator.drift-5-v1:0", "--scenario", "career-change"),
    *("--turns", "8", "--seed", "7"),
)
WIDE = "人生の意味とは何でしょうか、先生。どうか教えてください、本当に知りたいのです。"
TO_COPY = "socratic-runner --help"
RED, YELLOW = "31", "33"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (60, ["model-a", "12.0", "11 to 13", "9.4", "9 to 10"]),
        (40, ["model-a", "12.0", "11 to 13", "9.4"]),
        (25, ["model-a", "12.0", "9.4"]),
    ],
)
def test_each_figure_of_a_table_is_beside_its_own_interval(columns, expected):
    heads = ("model", "turns", INTERVAL, "score", INTERVAL)
    head, row = table(heads, [("model-a", "12.0", "11 to 13", "9.4", "9 to 10")], columns)

    assert re.split(" {2,}", row.strip()) == expected
    assert head.count(INTERVAL) == sum("to" in cell for cell in expected)


@pytest.mark.parametrize("columns", daily([40, 80, 100], 40, 100))
def test_every_line_fits_the_terminal(columns):
    words = (*DRIFT, "--pressure", "high", "--fail-under", "half_life=8", "--no-prompt-cache")
    outcome, lines = run_in_terminal(*words, columns=columns)
    wrong, mistakes = run_in_terminal("--model", "m", "--turns", "many", columns=columns)
    _, wide = run_in_terminal(
        *("--offline", "--model", "emulator.leading-v1:0", "--prompt", WIDE, "--turns", "2"),
        columns=columns,
    )
    turns = [line for line in lines if re.match(r".{4} turn +\d+ [!? ] ", COLOUR.sub(r"\2", line))]

    assert (outcome.exit_code, wrong.exit_code) == (5, 2)
    assert len(turns) == 8
    for line in [*lines, *mistakes, *wide]:
        assert width(line) <= columns or " " not in line.strip() or TO_COPY in line, line
    assert any(" completed: score " in line for line in lines)


def test_a_lapse_and_an_unjudged_turn_are_seen_at_a_glance():
    faults = (parse_fault("prose_verdict:role=judge:after=1"),)
    with Emulator(Settings(faults=faults)) as served:
        env = account(served.url, CLAUDE, "emulator.lecturer-v1:0")
        words = ("--model", "emulator.lecturer-v1:0", "--judge-model", CLAUDE, "--turns", "2")
        # A judge's calls are verdicts alone: else the one that is spared may be the closing one.
        more = ("--scenario", "career-change", "--rubric", PLAIN_RUBRIC)
        outcome, lines = run_in_terminal(*words, *more, columns=80, env=env)
    marked = {found[1]: found[2].split()[:2] for line in lines if (found := COLOUR.search(line))}

    assert outcome.document["judge"]["unjudged_turns"] == 1
    # Which of both comes first to the judge is up to the machine.
    (score,) = (turn["score"] for turn in outcome.document["turns"] if turn["score"] is not None)
    assert marked[YELLOW] == ["?", "unjudged:"]
    assert marked[RED] == ["!", f"{score:.1f}"]


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, None], ids=["NO_COLOR", "a log"])
def test_the_marks_are_there_without_colour(variables):
    if variables:
        told, _ = run_in_terminal(*DRIFT, columns=100, env=environment(**variables))
    else:
        told = run(*DRIFT)

    assert COLOUR.search(told.stderr) is None
    marks = re.findall(r"turn {2,3}(\d+) ([!? ]) ", told.stderr)
    assert [int(turn) for turn, mark in marks if mark == "!"] == [5, 6, 7]
    assert [int(turn) for turn, _ in marks] == [*range(8)]


def test_a_bucket_that_takes_nothing_is_not_told_to_have_kept_anything():
    with FakeBedrock({"": [Said(b"", 403)]}) as bucket:
        env = account(
            "http://127.0.0.1:1", "emulator.socratic-v1:0", AWS_ENDPOINT_URL_S3=bucket.url
        )
        outcome = run(*OFFLINE, "--turns", "1", "--s3-bucket", "bucket", env=env)

    assert (outcome.exit_code, outcome.document["s3_artifacts"]["curated"]) == (4, None)
    assert f"incomplete files in {outcome.document['s3_artifacts']['raw']}" in outcome.stderr
    assert "stored in s3://" not in outcome.stderr


def test_a_closing_line_tells_the_result(tmp_path):
    outcome = run(*DRIFT, "--output-dir", str(tmp_path))
    document = outcome.document
    last, command = outcome.stderr.splitlines()[-2:]
    cost, score = document["cost"]["total"]["total_usd"], document["metrics"]["overall_score"]
    trend = document["metrics"]["trend"]

    assert last == (
        f"{document['run_id'][-4:]} completed: score {score:.3g} of 10 (8 of 8 judged), "
        f"discipline {document['metrics']['discipline']:.2f}, "
        f"usefulness {document['metrics']['usefulness']:.2f}, "
        f"student reached {document['metrics']['insights_reached']:.0%} of insights, "
        f"score drops from {trend['before']:.1f} to {trend['after']:.1f} at turn 5, "
        "no lasting lapse, "
        f"{number(cost)} USD (simulated), "
        f"{document['timestamps']['duration_seconds']:.1f} s, "
        f"stored in {document['output_artifacts']['curated']}"
    )
    assert command == (
        f"{document['run_id'][-4:]} view: socratic-runner show {document['run_id']} "
        f"--output-dir {shlex.quote(str(tmp_path))}"
    )
    assert "completed" not in run(*DRIFT, "--quiet").stderr


def test_a_closing_line_says_what_is_not_known():
    steady = run(*OFFLINE, "--turns", "1")
    unjudged = run(*DRIFT, "--no-judge")

    assert re.search(r"score \S+ of 10 \(1 of 1 judged\), .*, no lapse, ", steady.stderr)
    assert "completed: no score, " in unjudged.stderr
    assert " judged" not in unjudged.stderr.splitlines()[-1]


def test_lines_of_parallel_runs_tell_each_other_apart(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as file:
        words = (*DRIFT, "--brief", "--fail-under", "half_life=8")
        running = [begin(*words, stdout=subprocess.DEVNULL, stderr=file.fileno()) for _ in range(2)]
        assert [process.wait() for process in running] == [5, 5]
    first, *others = sorted(log.read_text().splitlines(), key=lambda line: line[:4] != "run-")
    runs = [first, *(line for line in others if line.startswith("run-"))]
    tags = [re.match(r"run-\w{22}(\w{4}): ", line)[1] for line in runs]

    assert len({*tags}) == 2
    for tag in tags:
        own = [line for line in others if line.startswith(f"{tag} ")]
        assert sum(" turn   " in line for line in own) == 8
        assert own[-1].startswith(f"{tag} completed: ")
    assert others.count("error: half_life is 5, but must be at least 8.") == 2
    assert len(others) == 1 + 2 * 10


def test_parallel_runs_on_one_terminal_overwrite_no_line_of_each_other():
    words = (*DRIFT, "--brief", "--fail-under", "half_life=8")
    outcomes = run_all_in_terminal([words] * 3, columns=240)
    lines = screen(outcomes[0].stderr)
    tags = {outcome.document["run_id"][-4:] for outcome in outcomes}
    patterns = (
        r"run-\w{26}: emulator\.drift-5-v1:0, scenario career-change, up to 8 turns, seed 7",
        r"turn {3}\d [! ] [ \d.]+ \(form [^()]*\)  .* \d+ in, \d+ out",
        r"completed: score [\d.]+ of 10 \(8 of 8 judged\), .*, no lasting lapse, .* s",
        r"error: half_life is 5, but must be at least 8\.",
    )
    *shown, last = [line[5:] if line[:4] in tags else line for line in lines]
    counts = [sum(bool(re.fullmatch(pattern, line)) for line in shown) for pattern in patterns]

    assert (len(tags), counts, last) == (3, [3, 24, 3, 3], ""), lines
    assert len(shown) == 33


@pytest.mark.parametrize(
    ("words", "last"),
    [
        ((*OFFLINE, "--turns", "1"), r"\w{4} completed: score .*"),
        ((*OFFLINE, "--turns", "1", "--dry-run"), r"expected .*; nothing was called"),
        (("--offline",), r"  See socratic-runner --help\."),
        (("models",), r"No model may be tested: set BEDROCK_MODEL_IDS, or use --offline\."),
        (("scenarios",), r"wherefore-romeo +puzzlement .*"),
        (("models", "x"), r"  See socratic-runner models --help\."),
    ],
)
def test_on_a_terminal_no_document_scrolls_the_words_away(words, last):
    (outcome,) = run_all_in_terminal([words], columns=200, with_stdout=True)
    *_, shown, end = screen(outcome.stderr)

    assert re.fullmatch(last, shown)
    assert end == ""


@pytest.mark.parametrize("words", [(*OFFLINE, "--turns", "1"), ("sweep", "--modls", "a")])
def test_a_terminal_shows_the_document_only_if_it_is_asked_for(words):
    (table,) = run_all_in_terminal([words], columns=200, with_stdout=True)
    (document,) = run_all_in_terminal([(*words, "--json")], columns=200, with_stdout=True)

    assert '"schema_version"' not in table.stderr
    assert '"schema_version"' in document.stderr


def test_without_words_a_terminal_shows_the_short_help():
    (outcome,) = run_all_in_terminal([()], columns=80, with_stdout=True)

    assert outcome.exit_code == 0
    assert "usage: socratic-runner [run] --model ID" in outcome.stderr
    assert (run().exit_code, run().document["end_reason"]) == (2, "usage")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, "-"), (0, "0"), (7.1875, "7.19"), (10, "10.0"), (0.07961, "0.0796")),
        *((123.4, "123"), (1234.5, "1,234"), (0.00001234, "0.000012"), (-0.0775, "-0.0775")),
    ],
)
def test_numbers_have_three_significant_digits(value, text):
    assert number(value) == text
