"""`report`: rows as CSV and Parquet, words as Markdown, charts as pictures, through the command."""

import csv
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4
from xml.etree import ElementTree as ET

import duckdb
import pytest

from tests.command import ROOT, Outcome, account, assert_valid, environment, run
from tests.test_report_sections import JURY
from tests.test_sweep import curated, sweep

MODELS = ("emulator.socratic-v1:0", "emulator.lecturer-v1:0")
GRID = ("--scenarios", "ai-ethics", "career-change", "--turns", "3", "--seed", "7", "-q")
FORMS = ("html", "markdown", "csv", "parquet", "png", "svg")
TABLES = ("runs", "turns", "verdicts")
# A leading sign that a spreadsheet computes behind, as it is and hidden.
FORMULAS = (
    *("=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "'=1", "''+1"),
    *("\ufeff=1", "\u200b@x", "＝1", '=HYPERLINK("http://x","y")'),  # noqa: RUF001 -- wide
)
PLAIN = ("'Twas", "a=b", "", "NULL", "1", 'say "x", and\r\nmore', "🙂 ß")
DANGEROUS = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 -- wide


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models before three judges."""
    folder = tmp_path_factory.mktemp("exported") / "runs"
    judges = [word for model in JURY for word in ("--judge-model", model)]
    sweep("--models", *MODELS, *judges, *GRID, folder=folder)
    return folder


def places(folder):
    ends = {"html": "report.html", "markdown": "report.md"}
    return {form: str(folder / ends.get(form, form)) for form in FORMS}


def asked(folder, *forms):
    return [word for form in forms for word in (f"--{form}", places(folder)[form])]


@pytest.fixture(scope="module")
def exported(folder):
    outcome = run("report", str(folder), *asked(folder.parent, *FORMS))
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.document


def read_csv(path):
    """Null is what has no quotes and nothing in it, which Python's reader does not tell apart."""
    with path.open(newline="") as file:
        names = ", ".join(f"'{name}': 'VARCHAR'" for name in next(csv.reader(file)))
    found = duckdb.execute(
        f"from read_csv(?, header=true, columns={{{names}}}, allow_quoted_nulls=false, "
        "nullstr='', max_line_size=20000000, quote='\"', escape='\"', delim=',')",
        [str(path)],
    )
    return rows_of(found)


def rows_of(found):
    names = [one[0] for one in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def parquet(path):
    """Rows with times as texts, which need a package more to be Python's."""
    kinds = {
        one[0]: one[1]
        for one in duckdb.execute("describe from read_parquet(?)", [str(path)]).fetchall()
    }
    times = [name for name, kind in kinds.items() if "TIME" in kind]
    chosen = (
        f"* replace ({', '.join(f'epoch_ms({one}) as {one}' for one in times)})" if times else "*"
    )
    query = f"select {chosen} from read_parquet(?)"  # noqa: S608 -- columns of the test's own
    return kinds, rows_of(duckdb.execute(query, [str(path)]))


def ms(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_the_document_lists_every_file_with_its_form_and_size(folder, exported):
    assert_valid("report", exported)
    by_form = {form: [one for one in exported["files"] if one["form"] == form] for form in FORMS}
    for form in ("csv", "parquet"):
        assert [Path(one["path"]).name for one in by_form[form]] == [
            f"{name}.{form}" for name in TABLES
        ]
    assert len(by_form["png"]) == len(by_form["svg"]) >= 3
    for one in exported["files"]:
        assert Path(one["path"]).stat().st_size == one["bytes"] > 0
    drawn = {one["path"] for one in exported["files"]}
    there = {str(one) for one in folder.parent.rglob("*") if one.is_file()}
    assert {one for one in there if not one.startswith(f"{folder}/")} == drawn


class TestRows:
    def test_a_row_per_run_has_the_runs_figures_in_their_types(self, folder, exported):
        kinds, rows = parquet(folder.parent / "parquet" / "runs.parquet")
        assert (kinds["n_turns"], kinds["cost_usd"], kinds["is_stand_in_cost"]) == (
            *("BIGINT", "DOUBLE", "BOOLEAN"),
        )
        assert (kinds["started_at"], kinds["metric_half_life"], kinds["metric_discipline"]) == (
            *("TIMESTAMP WITH TIME ZONE", "BIGINT", "DOUBLE"),
        )
        documents = curated(folder)
        assert [row["run_id"] for row in rows] == sorted(documents)
        for row in rows:
            one = documents[row["run_id"]]
            assert (row["model"], row["scenario"]) == (one["model"], one["scenario"])
            assert row["started_at"] == ms(one["timestamps"]["started_at"])
            assert row["cost_usd"] == one["cost"]["total"]["total_usd"]
            assert row["is_stand_in_cost"] is True
            assert row["temperature"] is None
            assert row["judges"] == ", ".join(JURY)
            for name in ("discipline", "half_life", "mean_form", "recovery_rate"):
                assert row[f"metric_{name}"] == one["metrics"][name]
            rates = one["metrics"]["event_rates"]
            assert row["metric_event_rates.off_topic"] == rates["off_topic"]

    def test_a_row_per_turn_and_per_verdict_of_each_juror(self, folder, exported):
        kinds, turns = parquet(folder.parent / "parquet" / "turns.parquet")
        assert (kinds["turn"], kinds["score_form"], kinds["own_cut"]) == (
            "BIGINT",
            "DOUBLE",
            "BOOLEAN",
        )
        _, verdicts = parquet(folder.parent / "parquet" / "verdicts.parquet")
        said = {(one["run_id"], one["turn"], one["juror"]): one for one in verdicts}
        documents = curated(folder)
        n_turns = sum(len(one["turns"]) for one in documents.values())
        assert (len(turns), len(verdicts), len(said)) == (n_turns, 3 * n_turns, 3 * n_turns)
        for row in turns:
            entry = documents[row["run_id"]]["turns"][row["turn"]]
            assert (row["said"], row["reply"]) == (entry["student"], entry["question"])
            assert (row["score"], row["score_form"]) == (entry["score"], entry["scores"]["form"])
            assert row["heuristic_has_question"] is entry["heuristics"]["has_question"]
            assert row["own_pressure"] == entry["pressure"]
            assert row["event_answer_disclosed"] is ("answer_disclosed" in entry["events"])
            name = f"raw/runs/{row['run_id']}/judge_{row['turn']:03d}.json"
            for juror in json.loads((folder / name).read_text())["jurors"]:
                verdict = said[row["run_id"], row["turn"], juror["model"]]
                assert verdict["score"] == juror["overall_score"]
                assert verdict["score_purity"] == juror["scores"]["purity"]
                assert verdict["rationale_form"] == juror["rationale"]["form"]
                assert verdict["evidence_off_topic"] == juror["events"].get("off_topic")

    @pytest.mark.parametrize("name", TABLES)
    def test_csv_has_the_cells_of_parquet_and_nothing_for_null(self, name, folder, exported):
        kinds, typed = parquet(folder.parent / "parquet" / f"{name}.parquet")
        plain = read_csv(folder.parent / "csv" / f"{name}.csv")
        assert len(plain) == len(typed) > 0
        assert any(value is None for row in typed for value in row.values())
        for row, cells in zip(typed, plain, strict=True):
            assert [*cells] == [*row]
            for key, value in row.items():
                assert cell_value(cells[key], kinds[key]) == value

    def test_every_column_is_documented(self, folder, exported):
        page = (ROOT / "docs/output.md").read_text()
        line = r"^\| ([\w, ]+) \| `([^`]+)` \| ([\w ]+) \| (.+) \|$"
        documented = re.findall(line, page, re.MULTILINE)
        kinds_told = {
            "text": "VARCHAR",
            "integer": "BIGINT",
            "number": "DOUBLE",
            "boolean": "BOOLEAN",
        }
        for name in TABLES:
            kinds, _ = parquet(folder.parent / "parquet" / f"{name}.parquet")
            own = {
                column: kind for tables, column, kind, _ in documented if name in tables.split(", ")
            }
            starts = tuple(one[:-1] for one in own if one.endswith("…"))
            fixed = {one: kind for one, kind in own.items() if not one.endswith("…")}
            assert [one for one in kinds if not one.startswith(starts)] == [*fixed]
            for column, kind in fixed.items():
                assert kinds[column] == kinds_told.get(kind, "TIMESTAMP WITH TIME ZONE")


def cell_value(text, kind):
    if text is None:
        return None
    if kind == "BOOLEAN":
        return {"true": True, "false": False}[text]
    if "TIME" in kind:
        return ms(text)
    return {"BIGINT": int, "DOUBLE": float}.get(kind, str)(text)


@pytest.fixture(scope="module")
def hostile(folder, tmp_path_factory):
    """The runs' documents alone, whose replies are what spreadsheets and readers stumble over."""
    place = tmp_path_factory.mktemp("hostile")
    replies = [*FORMULAS, *PLAIN, "x" * 10_000_000]
    told, paths = [], []
    for n, (run_id, one) in enumerate(sorted(curated(folder).items())):
        turns = [
            {
                **one["turns"][0],
                "turn": turn,
                "question": reply,
                "events": {"off_topic": reply[:99]},
            }
            for turn, reply in enumerate(replies if n == 0 else ())
        ]
        told += [(run_id, turn["turn"], turn["question"]) for turn in turns]
        changed = {**one, "turns": turns or one["turns"], "output_artifacts": None}
        if n < 2:
            changed["scenario"] = [
                "a|b <script>alert(1)</script>",
                "*x* [l](http://x) www.x.y\n# h",
            ][n]
        paths.append(place / f"{run_id}.json")
        paths[-1].write_text(json.dumps(changed))
    outcome = run("report", *map(str, paths), *asked(place, "markdown", "csv", "parquet"), "-q")
    assert outcome.exit_code == 0, outcome.stderr
    return place, told


def test_no_cell_of_a_spreadsheet_is_a_formula_and_each_text_can_be_had_back(hostile):
    place, told = hostile
    rows = read_csv(place / "csv" / "turns.csv")
    cells = {(one["run_id"], int(one["turn"])): one["reply"] for one in rows}
    for run_id, turn, reply in told:
        cell = cells[run_id, turn]
        if reply in FORMULAS:
            assert not cell.lstrip(" \ufeff\u200b").startswith(DANGEROUS)
            assert cell == f"'{reply}"
        else:
            assert cell == reply
    for name in TABLES:
        with (place / "csv" / f"{name}.csv").open(newline="") as file:
            csv.field_size_limit(20_000_000)
            for row in csv.DictReader(file):
                for key, cell in row.items():
                    is_number = re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell)
                    assert is_number or not cell.startswith(DANGEROUS), (key, cell)


def test_parquet_has_texts_as_they_were(hostile):
    place, told = hostile
    _, rows = parquet(place / "parquet" / "turns.parquet")
    cells = {(one["run_id"], one["turn"]): one["reply"] for one in rows}
    assert [cells[run_id, turn] for run_id, turn, _ in told] == [reply for *_, reply in told]


def test_markdown_has_the_sentences_and_tables_and_nobodys_markup(folder, exported, hostile):
    text = (folder.parent / "report.md").read_text()
    for sentence in exported["sentences"]:
        assert f"\n{sentence}\n" in text
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads[:2] == ["What was tested", "Differences between models"]
    assert len(heads) == len(exported["sections"])  # the transcripts' place is taken by the facts
    assert f"\n| {MODELS[0]} minus {MODELS[1]} | 3.0" in text
    changed = (hostile[0] / "report.md").read_text()
    assert "a\\|b &lt;script&gt;alert(1)&lt;/script&gt;" in changed
    assert "\\*x\\* \\[l\\](http\\://x) www\\.x.y \\# h" in changed
    for table in re.findall(r"(?:^\|.*\|\n)+", changed, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1


def pixels(path):
    """Size, and the rows of a PNG as they are filtered, from its own bytes."""
    body = path.read_bytes()
    assert body.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", body[16:24])


def test_each_chart_is_a_picture_in_print_size_and_a_drawing_with_words(folder, exported):
    for one in exported["files"]:
        path = Path(one["path"])
        if one["form"] == "svg":
            root = ET.fromstring(path.read_text())  # noqa: S314 -- our own
            spaces = {"s": "http://www.w3.org/2000/svg"}
            assert root.find("s:title", spaces).text
            assert root.find("s:desc", spaces).text
            assert root.findall(".//s:text", spaces)
            assert "Arial" in root.get("font-family")
            assert not re.search(r'class="|#0000[12]|var\(|href|<style|<script', path.read_text())
            width = float(root.get("width"))
            assert pixels(folder.parent / "png" / f"{path.stem}.png")[0] == pytest.approx(
                width * 300 / 72, rel=0.02
            )


def test_pictures_have_the_light_colours_of_the_page(folder, exported):
    page = (folder.parent / "report.html").read_text()
    light = re.findall(r"--\w+: #(\w+)", page[: page.index("@media")])
    known = {"".join(2 * sign for sign in one) if len(one) == 3 else one for one in light}
    for path in (folder.parent / "svg").glob("*.svg"):
        assert {*re.findall(r'"#(\w{6})"', path.read_text())} <= known, path.name


def test_the_axis_of_short_runs_counts_each_turn_once(folder, exported):
    """Three turns have three ticks, and not 0, 0, 1, 1, 2, 2."""
    root = ET.parse(folder.parent / "svg" / "turns.svg")  # noqa: S314 -- our own
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    across = [one.text for one in texts if one.get("text-anchor") == "middle" and one.text]
    assert [one for one in across if one.isdecimal()] == ["0", "1", "2"] * len(MODELS)


def test_pictures_have_their_words(folder, exported):
    """Where a font is missing, vl-convert draws no text at all: a column of labels is no blank."""
    import vl_convert

    drawing = (folder.parent / "svg" / "samples.svg").read_text()
    bare = re.sub(r"<text.*?</text>", "", drawing, flags=re.DOTALL)
    assert bare != drawing
    without = vl_convert.svg_to_png(bare, ppi=300)
    picture = (folder.parent / "png" / "samples.png").read_bytes()
    assert len(picture) > 1.3 * len(without)
    assert zlib.crc32(picture) != zlib.crc32(without)


def test_runs_without_a_judge_and_of_other_words_have_their_rows(tmp_path):
    folder = tmp_path / "runs"
    models = ("emulator.executes-v1:0", "emulator.recalls-v1:0")
    run(
        *("sweep", "--benchmark", "execution", "--offline", "--output-dir", str(folder)),
        *("--models", *models, "--seed", "7", "--pred-num-problems", "4", "-q"),
    )
    outcome = run("report", str(folder), *asked(tmp_path, *FORMS[1:]))
    assert outcome.exit_code == 0, outcome
    kinds, turns = parquet(tmp_path / "parquet" / "turns.parquet")
    documents = curated(folder)
    assert len(turns) == sum(len(one["turns"]) for one in documents.values())
    assert (kinds["own_case"], kinds["own_can_revert"]) == ("BIGINT", "BOOLEAN")
    for row in turns:
        entry = documents[row["run_id"]]["turns"][row["turn"]]
        assert (row["own_expected_output"], row["score"]) == (entry["expected_output"], None)
        assert row["said"]
    _, runs = parquet(tmp_path / "parquet" / "runs.parquet")
    assert [row["metric_oc"] for row in runs] == [documents[row["run_id"]]["oc"] for row in runs]
    assert {row["judges"] for row in runs} == {None}
    for path in (tmp_path / "parquet" / "verdicts.parquet", tmp_path / "csv" / "verdicts.csv"):
        assert path.stat().st_size > 50
    assert parquet(tmp_path / "parquet" / "verdicts.parquet")[1] == []
    text = (tmp_path / "report.md").read_text()
    assert "| emulator.executes-v1:0 minus emulator.recalls-v1:0 |" in text
    assert "high on the first and low on the second (lower right)" in text


def test_a_prefix_of_a_bucket_gives_the_same_rows(folder, exported, tmp_path, client, moto_url):
    bucket = f"bucket-{uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    for place in ("curated", "sweeps", "raw"):
        for path in (folder / place).rglob("*.json*"):
            client.put_object(
                Bucket=bucket, Key=f"a/{path.relative_to(folder)}", Body=path.read_bytes()
            )
    env = account(moto_url, AWS_ENDPOINT_URL_S3=moto_url)
    outcome = run(
        "report", f"s3://{bucket}/a", *asked(tmp_path, "markdown", "csv", "parquet"), env=env
    )
    assert outcome.exit_code == 0, outcome.stderr
    for one in outcome.document["files"]:
        here = Path(one["path"])
        assert here.read_bytes() == (folder.parent / here.relative_to(tmp_path)).read_bytes()


def without(packages, *words):
    """The command where packages are not installed."""
    shut = "".join(f"sys.modules[{name!r}] = None\n" for name in packages)
    code = f"import sys\n{shut}from cli.runner import main\nsys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr.decode())


def test_what_a_form_lacks_is_told_with_all_else_before_anything_is_written(folder, tmp_path):
    words = ("report", str(folder), *asked(tmp_path, *FORMS), "--max-size", "huge")
    (tmp_path / "csv").write_text("a file")
    pipe = Path(places(tmp_path)["html"])
    os.mkfifo(pipe)
    outcome = without(("duckdb", "vl_convert", "scipy"), *words)
    assert outcome.exit_code == 2, outcome.stderr
    told = outcome.document["error"]["message"]
    for form, package, extra in (
        *(("html", "vl_convert", "report"), ("png", "vl_convert", "report")),
        ("svg", "vl_convert", "report"),
        ("parquet", "duckdb", "tables"),
    ):
        assert f"A report as {form} needs the package {package}" in told
        assert f"pip install 'socratic-runner[{extra}]'" in told
    assert f"{tmp_path}/csv is a file: name a folder." in told
    assert f"{pipe} is not a regular file, and is left as it is" in told
    assert "huge" in told
    assert {one.name for one in tmp_path.iterdir()} == {"csv", pipe.name}
    assert pipe.is_fifo()


def test_csv_needs_no_extra(folder, exported, tmp_path):
    packages = ("duckdb", "vl_convert", "scipy", "jinja2", "krippendorff", "numpy")
    outcome = without(packages, "report", str(folder), *asked(tmp_path, "csv"), "-q")
    assert outcome.exit_code == 0, outcome.stderr
    assert (outcome.document["sentences"], outcome.document["models"]) == ([], exported["models"])
    for name in TABLES:
        path = Path("csv", f"{name}.csv")
        assert (tmp_path / path).read_bytes() == (folder.parent / path).read_bytes()


def test_markdown_without_stats_has_the_sentences_and_says_what_intervals_need(folder, tmp_path):
    packages = ("vl_convert", "scipy", "jinja2", "krippendorff", "numpy")
    outcome = without(packages, "report", str(folder), *asked(tmp_path, "markdown"), "-q")
    assert outcome.exit_code == 0, outcome.stderr
    with_stats = run("report", str(folder), "--markdown", str(tmp_path / "other.md"), "-q").document
    assert outcome.document["sentences"] == with_stats["sentences"]
    assert "install stats for intervals" in Path(places(tmp_path)["markdown"]).read_text()


def test_where_one_file_cannot_be_written_none_is(folder, tmp_path):
    (tmp_path / "csv" / "verdicts.csv").mkdir(parents=True)
    outcome = run("report", str(folder), *asked(tmp_path, "csv", "markdown"), "-q")
    assert outcome.exit_code != 0
    assert "verdicts.csv" in outcome.document["error"]["message"]
    assert [str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")] == [
        "csv",
        "csv/verdicts.csv",
    ]
