"""`show`: one stored run at the terminal."""

import json
import re
import shlex

import pytest

from tests.command import ROOT, account, environment, run
from tests.execution_runs import fitting
from tests.terminal import COLOUR, run_in_terminal, width

DRIFT = ("--offline", "--model", "emulator.drift-5-v1:0", "--scenario", "career-change")
N_TURNS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shown") / "runs"


@pytest.fixture(scope="module")
def kept(folder):
    outcome = run(*DRIFT, "--turns", str(N_TURNS), "--seed", "7", "--output-dir", str(folder))
    assert outcome.exit_code == 0
    return outcome


@pytest.fixture(scope="module")
def picture(folder, kept):
    return run("show", kept.document["run_id"], "-o", str(folder))


def chart_of(text):
    """The turn, sign, event and length of the bar of each line of the chart."""
    plain = COLOUR.sub(r"\2", text.replace("\r", "").replace("\x1b[K", ""))
    lines = re.finditer(r"^ +(\d+) ([+!?.])([* ]?) ?([█#]*)[ |]*$", plain, re.MULTILINE)
    return [(int(line[1]), line[2], line[3] == "*", len(line[4])) for line in lines]


def changed(document, place, **turns):
    """The document at a place with other words in some turns."""
    for entry in document["turns"]:
        entry.update(turns.get(f"turn_{entry['turn']}", {}))
    place.write_text(json.dumps(document))
    return place


def test_the_last_line_names_the_command_that_shows_the_run(folder, kept, picture):
    _, _, command = kept.stderr.splitlines()[-1].partition(" view: socratic-runner ")
    assert shlex.split(command) == [
        "show", kept.document["run_id"], "--output-dir", str(folder)
    ]  # fmt: skip
    assert run(*shlex.split(command)).stdout == picture.stdout
    assert "view: " not in run(*DRIFT, "--turns", "1").stderr


def test_the_document_has_what_is_drawn(kept, picture):
    found, told = kept.document, picture.document
    assert picture.exit_code == 0
    assert (told["kind"], told["run_id"], told["model"]) == (
        "shown",
        found["run_id"],
        found["model"],
    )
    assert (told["metric"], told["value"]) == ("overall_score", found["overall_score"])
    assert told["threshold"] == found["thresholds"]["half_life"]
    for turn, entry in zip(told["turns"], found["turns"], strict=True):
        assert (turn["turn"], turn["score"]) == (entry["turn"], entry["score"])
        assert turn["falls_short"] == (entry["score"] < told["threshold"])
        assert turn["events"] == [*entry["events"]]


def test_the_chart_has_a_bar_a_sign_and_its_events_for_each_turn(kept, picture):
    assert chart_of(picture.stderr) == [
        (
            turn["turn"],
            "!" if turn["score"] < 8 else "+",
            bool(turn["events"]),
            max(round(turn["score"] * 4), 1),
        )
        for turn in kept.document["turns"]
    ]
    assert "| threshold" in picture.stderr


def test_the_transcript_has_the_words_scores_and_events_of_each_turn(kept, picture):
    text = " ".join(picture.stderr.split())
    assert COLOUR.search(picture.stderr) is None
    for entry in kept.document["turns"]:
        assert f"turn {entry['turn']}: score {entry['score']:g}, form {entry['form']:g}" in text
        assert f"student: {' '.join(entry['student'].split())}" in text
        assert f"tutor: {' '.join(entry['question'].split())}" in text
        for name, quote in entry["events"].items():
            assert f'* {name}: "{" ".join(quote.split())}"' in text
        if entry["purity"] == 0:
            assert re.search(r"substance \S+ purity 0!", text)
    for insight in kept.document["insights"]:
        at = "" if insight["turn"] is None else f" at turn {insight['turn']}"
        assert f"{insight['outcome']}{at}: {insight['insight']}" in text


def test_a_part_of_the_transcript_or_none(folder, kept):
    def turns(*words):
        said = run("show", str(folder), *words).stderr
        return [int(n) for n in re.findall(r"^(?:! )?turn (\d+):", said, re.MULTILINE)]

    assert turns("--turns", "2-4") == [2, 3, 4]
    assert turns("--turns", "6") == [6]
    assert turns("--no-transcript") == []
    assert run("show", str(folder), "-q").stderr == ""


def test_any_place_of_the_run_shows_the_same(folder, kept, picture, tmp_path):
    run_id, document = kept.document["run_id"], tmp_path / "run.json"
    document.write_bytes(kept.stdout)
    for place in (
        folder, folder / f"raw/runs/{run_id}", folder / f"curated/runs/{run_id}.json", document
    ):  # fmt: skip
        told = run("show", str(place))
        assert told.document["turns"] == picture.document["turns"]
    by_variable = run("show", run_id, env=environment(RUNNER_OUTPUT_DIR=str(folder)))
    assert by_variable.stdout == picture.stdout
    flagged = run("show", run_id, "-o", str(folder), env=environment(RUNNER_S3_BUCKET="other"))
    assert flagged.stdout == picture.stdout, "a flag beats the variables of all places"


def test_variables_stand_in_the_table_of_settings_alone():
    told = run("show", "--help").stdout.decode()
    assert re.findall(r"RUNNER_\w+", told) == [
        "RUNNER_OUTPUT_DIR", "RUNNER_S3_BUCKET", "RUNNER_S3_PREFIX"
    ]  # fmt: skip
    sources = (ROOT / "cli").rglob("*.py")
    # The dashboard's token is a secret, which no flag takes.
    assert [path.name for path in sources if "RUNNER_" in path.read_text()] == ["dashboard.py"]


def test_a_run_in_a_bucket_is_found_by_its_id_and_by_its_place(
    folder, kept, picture, bucket, client, moto_url
):
    run_id, env = kept.document["run_id"], account(moto_url, AWS_ENDPOINT_URL_S3=moto_url)
    for path in folder.rglob("*.json"):
        key = f"some/where/{path.relative_to(folder)}"
        client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
    root = f"s3://{bucket}/some/where"
    for words in (
        (root,),
        (f"{root}/raw/runs/{run_id}/",),
        (run_id, "--s3-bucket", bucket, "--s3-prefix", "some/where"),
    ):
        told = run("show", *words, env=env)
        assert told.document["turns"] == picture.document["turns"]
        assert told.document["place"] == f"{root}/curated/runs/{run_id}.json"


def test_a_judging_shows_its_own_verdicts(folder, kept, picture):
    harsh = ("--judge-model", "emulator.judge-bias--5-v1:0")
    name = run("judge", str(folder), "-q", *harsh).document["name"]
    told = run("show", str(folder), "--judging", name)
    assert (told.document["judging"], told.document["run_id"]) == (name, kept.document["run_id"])
    assert f"judging {name}" in " ".join(told.stderr.split())
    assert told.document["value"] < picture.document["value"]
    for turn, first in zip(told.document["turns"], kept.document["turns"], strict=True):
        assert turn["score"] <= first["score"]
        assert f"turn {turn['turn']}: score {turn['score']:g}," in told.stderr


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_it_fits_a_terminal_and_marks_in_colour_what_signs_mark_too(folder, kept, columns):
    outcome, lines = run_in_terminal("show", str(folder), columns=columns)
    assert max(map(width, lines)) <= columns
    assert COLOUR.search(outcome.stderr)
    assert len(chart_of(outcome.stderr)) == N_TURNS
    plain, _ = run_in_terminal("show", str(folder), columns=columns, env=environment(NO_COLOR="1"))
    assert COLOUR.search(plain.stderr) is None


def test_without_blocks_bars_are_of_plain_signs(folder, kept):
    told = run("show", str(folder), env=environment(PYTHONIOENCODING="ascii"))
    assert "#" * 40 in told.stderr
    assert told.stderr.isascii()


def test_what_models_wrote_commands_no_terminal(kept, tmp_path):
    hostile = "\x1b]0;title\x07\x1b[2Jred\u202etxt.exe\r\x9b31m" + "x" * 500 + " 漢字" * 90
    place = changed(
        kept.document | {"output_artifacts": None},
        tmp_path / "run.json",
        turn_1={"question": hostile, "student": hostile, "events": {"a\x1b[31m": hostile}},
        turn_2={"score": None, "unjudged_reason": "un\x1b[31mavailable", "scores": {}},
    )
    _, lines = run_in_terminal("show", str(place), columns=80)
    shown = "\n".join(COLOUR.sub(r"\2", line) for line in lines)
    assert max(map(width, lines)) <= 80
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert "redtxt.exe" in shown
    assert "? turn 2: unjudged: unavailable" in shown
    assert [sign for _, sign, *_ in chart_of(shown)][1:3] == ["+", "?"]


def test_items_have_a_sign_each_and_what_they_came_to(tmp_path):
    words = ("--offline", "--benchmark", "execution", "--model", "emulator.recalls-25-v1:0")
    words = (*words, "--task", "prediction", "--pred-generations", "1")
    run(*words, "--output-dir", str(tmp_path))
    told = run("show", str(tmp_path), "--turns", "0-79")
    found = fitting(json.loads(told.stdout))
    results = [turn["result"] for turn in found["turns"]]
    signs = "".join(re.findall(r"^ +\d+ ([+!]+)$", told.stderr, re.MULTILINE))
    assert signs == "".join("+" if one == "correct" else "!" for one in results)
    assert 0 < results.count("reversion") < len(results)
    assert (
        f"correct {results.count('correct')}, reversion {results.count('reversion')}" in told.stderr
    )
    assert re.search(r"turn 0: \w+\n {2}prompt:\n", told.stderr)
    assert told.stderr.count("\n  expected:\n") == results[:80].count("reversion") > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Missing argument RUN: an id"),
        (("run-01",), "give --output-dir or --s3-bucket"),
        (("run-01", "-o", "{folder}"), "There is no complete run run-01 in {folder}"),
        (("{folder}", "--turns", "4-2"), "a range such as 5-12, not"),
        (("{folder}", "--judging", "none"), "Not every run has a re-scoring none; available: "),
        (("{folder}/curated",), "has no complete run"),
        (("{folder}/curated",), "Complete interrupted runs first: socratic-runner resume"),
        (("{folder}/nothing",), "There is no file or folder"),
        (("{folder}/nothing",), "RUNS are output folders, s3:// prefixes"),
    ],
)
def test_a_mistake_says_what_to_do(folder, kept, words, said):
    told = run("show", *(word.format(folder=folder) for word in words))
    assert (told.exit_code, told.document["kind"]) == (2, "error")
    error = told.document["error"]
    assert said.format(folder=folder) in f"{error['message']} {error['hint']}"


def test_a_folder_of_several_runs_asks_which(kept, tmp_path):
    place = tmp_path / "curated" / "runs"
    place.mkdir(parents=True)
    for name in ("run-01", "run-02"):
        (place / f"{name}.json").write_text("{}")
    told = run("show", str(tmp_path))
    assert told.exit_code == 2
    assert "has 2 runs" in told.document["error"]["message"]
    assert "run-01, run-02" in told.document["error"]["message"]
    assert "with --output-dir or --s3-bucket" in told.document["error"]["hint"]
