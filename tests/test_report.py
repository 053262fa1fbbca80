"""`report`: stored runs as one HTML file, through the command."""

import base64
import json
import re
import zlib
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from statistics import fmean

import pytest

from tests.command import account, assert_valid, run
from tests.test_sweep import curated, sweep

STEADY, DRIFT, LECTURER = (
    *("emulator.socratic-v1:0", "emulator.drift-5-v1:0"),
    "emulator.lecturer-v1:0",
)
SCENARIOS = ("ai-ethics", "career-change", "ethical-dilemma", "giraffe-necks", "honest-friend")
GRID = ("--scenarios", *SCENARIOS, "time-management", "--turns", "10")


class Page(HTMLParser):
    """What a test wants to know of a page: its elements, ids, tables and blocks."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.text = path.read_text(encoding="utf-8")
        self.elements, self.tables, self.data = [], [], {}
        self._open = None
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag != "span":  # stands in a cell
            self._open = (tag, dict(attrs))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        self._open = self._open if tag == "span" else None

    def handle_data(self, data):
        tag, attrs = self._open or ("", {})
        if tag in ("td", "th"):
            self.tables[-1][-1][-1] += data
        if tag in ("script", "style"):
            self.data.setdefault((tag, attrs.get("id") or attrs.get("class")), []).append(data)

    @property
    def index(self):
        return json.loads(self.data["script", "index"][0])

    @property
    def runs(self):
        """The turns of each run by its id, as the page's script finds them."""
        blocks = [
            json.loads(zlib.decompress(base64.b64decode(one), -zlib.MAX_WBITS))
            for one in self.data.get(("script", "block"), ())
        ]
        return {
            one[0]: None if one[-2] is None else blocks[one[-2]][one[-1]]
            for one in self.index["runs"]
        }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three models of known behaviour in six scenarios."""
    folder = tmp_path_factory.mktemp("reported") / "runs"
    sweep("--models", LECTURER, DRIFT, STEADY, *GRID, "--seed", "7", "-q", folder=folder)
    return folder


@pytest.fixture(scope="module")
def reported(folder):
    return run("report", str(folder), "--html", str(folder.parent / "report.html"))


@pytest.fixture(scope="module")
def page(folder, reported):
    assert reported.exit_code == 0, reported.stderr
    return Page(folder.parent / "report.html")


class TestDocument:
    def test_it_says_what_was_written(self, folder, reported):
        document, path = reported.document, folder.parent / "report.html"
        assert_valid("report", document)
        assert document["models"] == [STEADY, DRIFT, LECTURER]
        assert (document["n_runs"], document["n_failed"], document["left_out"]) == (18, 0, [])
        (file,) = document["files"]
        assert file == {"form": "html", "path": str(path), "bytes": path.stat().st_size}

    def test_the_sentences_are_the_result_and_the_document_has_it(self, reported):
        document = reported.document
        first, second, third = document["sentences"]
        assert first.startswith(
            f"{STEADY} held 5.0 turns longer than {DRIFT}, but not significant: "
        )
        assert first.endswith(
            "with 6 scenarios and 3 models p is at best 0.0938; at least 7 scenarios are needed."
        )
        assert second.startswith(f"{STEADY} held 10.0 turns longer than {LECTURER}, but ")
        assert f"{STEADY} 0 of 6; {DRIFT} 6 of 6, from turn 5 on" in third
        assert (document["winner"], document["differences"][0]["difference"]) == (None, 5.0)
        assert first.endswith(f", but {document['undecided_because']}.")
        assert first in unescape(reported.stderr)

    def test_without_a_format_it_writes_one_page_here(self, folder, tmp_path):
        path = folder / f"curated/runs/{min(curated(folder))}.json"
        document = run("report", str(path), cwd=tmp_path).document
        (file,) = document["files"]
        assert file["path"] == "report.html"
        assert (tmp_path / "report.html").stat().st_size == file["bytes"]


def test_two_models_are_decided_by_six_scenarios(folder, tmp_path):
    paths = [
        str(folder / f"curated/runs/{run_id}.json")
        for run_id, document in curated(folder).items()
        if document["model"] != LECTURER
    ]
    told = run("report", *paths, "--markdown", str(tmp_path / "report.md")).document
    (difference,) = told["differences"]
    assert (told["winner"], told["undecided_because"]) == (STEADY, None)
    assert (difference["winner"], difference["p"]) == (STEADY, 0.03125)
    assert "p 0.031; 6 scenarios" in told["sentences"][0]


def test_low_turns_at_the_end_and_a_single_model_are_noticed(tmp_path):
    """The fifth turn and all after it fall short, which are three."""
    played = ("--offline", "--model", DRIFT, "--scenario", "career-change", "--turns", "8")
    run(*played, "--seed", "7", "--output-dir", str(tmp_path / "runs"))
    path = tmp_path / "report.html"
    told = run("report", str(tmp_path / "runs"), "--html", str(path)).document
    assert told["sentences"][0].startswith(f"{DRIFT} held 5.0 of 8 turns on average")
    assert told["undecided_because"] == "there is one model"
    text = path.read_text()
    assert "There is only one scenario: the result may not hold for others." in text
    assert "1 run of 8 turns or so are short. A lasting lapse takes at least 5 turns" in text
    assert "1 run ends in low turns, too few to be a lasting lapse" in text


class TestPage:
    def test_it_asks_nothing_of_any_network(self, page):
        asked = [
            (tag, name, value)
            for tag, attrs in page.elements
            for name, value in attrs.items()
            if name in {"src", "href", "data", "poster", "action", "srcset", "xlink:href"}
        ]
        assert {value[0] for *_, value in asked} == {"#"}
        assert not re.search(r"url\(|@import", "".join(page.data["style", None]))

    def test_its_policy_names_script_and_style_by_hash_and_nothing_unsafe(self, page):
        (policy,) = [
            attrs["content"]
            for tag, attrs in page.elements
            if attrs.get("http-equiv") == "Content-Security-Policy"
        ]
        (script,), (style,) = page.data["script", None], page.data["style", None]
        hashes = [
            base64.b64encode(sha256(one.encode()).digest()).decode() for one in (script, style)
        ]
        assert f"script-src 'sha256-{hashes[0]}'" in policy
        assert f"style-src 'sha256-{hashes[1]}'" in policy
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert len(script.encode()) < 40_000
        named = {name for _, attrs in page.elements for name in attrs}
        assert not [name for name in named if name.startswith("on") or name == "style"]

    def test_what_a_lapse_is_stands_among_the_facts(self, page):
        facts = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page.text))
        assert facts["Lapse threshold"] == "8 points"
        assert facts["Lasting lapse"] == "5 turns or more"

    def test_each_chart_is_drawn_for_a_page_and_for_a_phone(self, page):
        widths = {"broad": {}, "narrow": {}}
        for tag, attrs in page.elements:
            if tag == "svg":
                name = attrs["aria-labelledby"].partition("-title ")[0]
                widths[attrs["class"]][name.removesuffix("-narrow")] = float(attrs["width"])
        assert [*widths["broad"]] == [*widths["narrow"]]
        assert {*widths["broad"]} == {"axes", "turns", "samples"}
        assert max(widths["broad"].values()) <= 960
        assert max(widths["narrow"].values()) <= 375

    def test_every_chart_has_a_title_a_description_and_a_table(self, page):
        charts = [attrs for tag, attrs in page.elements if tag == "svg"]
        ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(ids) == len({*ids})
        assert len(charts) == 2 * 3
        for chart in charts:
            assert chart["role"] == "img"
            assert {*chart["aria-labelledby"].split()} <= {*ids}
        names = {attrs["aria-labelledby"].split("-title ")[0] for attrs in charts}
        assert len(page.tables) >= len({one.removesuffix("-narrow") for one in names})

    def test_every_mark_has_a_tooltip_and_no_colour_of_its_own(self, page):
        drawings = re.findall(r"<svg .*?</svg>", page.text, re.DOTALL)
        for drawing in drawings:
            marks = re.findall(r"<path [^>]*?(/>|>)(<title>)?", drawing)
            assert marks
            assert not [one for one in marks if one != (">", "<title>")]
            assert not re.search(r"#[0-9a-f]{6}", drawing)
            assert not re.search(r'(?:d|transform|x|y)="[^"]*\d\.\d{2,}', drawing)

    def test_the_leaderboard_has_the_runs_figures(self, folder, page):
        (board,) = (table for table in page.tables if table[0][1].startswith("Turns held"))
        assert board[0][1] == "Turns held (max 10)"
        assert [row[:1] + row[1].split(" ")[:1] for row in board[1:]] == [
            [STEADY, "10.0"],
            [DRIFT, "5.0"],
            [LECTURER, "0.0"],
        ]
        score = board[0].index("Mean score of the turns")
        for row in board[1:]:
            scores = [
                one["overall_score"] for one in curated(folder).values() if one["model"] == row[0]
            ]
            assert row[score].startswith(f"{round(fmean(scores), 6):.1f} (")

    def test_each_model_is_quoted_where_its_worst_run_breaks(self, folder, page):
        text = unescape(page.text)
        for model, turn in ((DRIFT, 5), (LECTURER, 0)):
            quote = text.partition(f"<h3>{model}</h3>")[2].partition("</article>")[0]
            run_id = re.search(r"#run=(run-\w+)&turn=(\d+)", quote)
            document = curated(folder)[run_id[1]]
            assert (document["model"], int(run_id[2])) == (model, turn)
            assert f"turn {turn}: lasting lapse" in quote
            assert document["turns"][turn]["question"] in quote
            assert document["turns"][turn]["student"] in quote

    def test_transcripts_begin_with_the_worst_and_open_at_the_first_lapse(self, folder, page):
        index, documents = page.index, curated(folder)
        assert index["speakers"] == ["student", "tutor"]
        assert [entry[5] for entry in index["runs"]] == sorted(entry[5] for entry in index["runs"])
        for entry in index["runs"]:
            turns = documents[entry[0]]["turns"]
            low = [turn["turn"] for turn in turns if turn["score"] < 8]
            assert entry[7] == (low[0] if low else None)

    def test_transcripts_are_those_of_the_runs(self, folder, page):
        runs = page.runs
        for run_id, document in curated(folder).items():
            told = [(one["n"], one["s"], one["r"], one["p"]) for one in runs[run_id]]
            assert told == [
                (one["turn"], one["student"], one["question"], one["score"])
                for one in document["turns"]
            ]
            for one, entry in zip(runs[run_id], document["turns"], strict=True):
                (verdict,) = one["v"]
                marked = {name: one["r"][start:end] for name, start, end in verdict["e"]}
                assert marked == {
                    name: quote
                    for name, quote in {**entry["quotes"], **entry["events"]}.items()
                    if quote
                }
                assert verdict["w"]

    def test_18_runs_of_10_turns_stay_under_400_kilobytes(self, reported):
        (file,) = reported.document["files"]
        assert (reported.document["n_runs"], file["bytes"] < 400_000) == (18, True)

    def test_the_same_runs_give_the_same_file(self, folder, page, tmp_path):
        run("report", str(folder), "--html", str(tmp_path / "again.html"))
        assert (tmp_path / "again.html").read_text() == page.text


def test_a_file_that_would_be_too_large_lacks_transcripts_and_says_whose(folder, page, tmp_path):
    path, size = tmp_path / "small.html", len(page.text.encode())
    blocks = sum(map(len, page.data["script", "block"]))
    bound = size - blocks // 2
    words = (str(folder), "--html", str(path), "--max-size")
    outcome = run("report", *words, f"{bound}B")
    assert path.stat().st_size <= bound
    runs = Page(path).runs
    lacking = [run_id for run_id, turns in runs.items() if turns is None]
    assert sorted(outcome.document["left_out"]) == sorted(lacking)
    assert 0 < len(lacking) < len(runs)
    assert f"The transcripts of {len(lacking)} of 18 runs are left out" in path.read_text()
    assert "the file small (--max-size)." in path.read_text()
    tiny = run("report", *words, "10KB")
    assert tiny.exit_code == 2
    assert "Even without transcripts the report takes" in tiny.document["error"]["message"]
    assert tiny.document["error"]["hint"].startswith("Give it more with --max-size, or")


def test_every_mistake_of_a_command_is_told_at_once(tmp_path):
    outcome = run("report", "--max-size", "huge")
    assert outcome.exit_code == 2
    assert outcome.document["error"]["message"].count("\n") or all(
        one in outcome.stderr for one in ("Missing argument RUNS", "takes a size such as")
    )


def test_a_size_may_be_larger_than_any_file():
    outcome = run("report", "--max-size", f"{'9' * 400}MB")
    assert outcome.document["error"]["message"].startswith("Missing argument RUNS")


def test_a_form_of_several_files_takes_no_files_name(tmp_path):
    outcome = run("report", "--csv", str(tmp_path / "rows.csv"), "--png", str(tmp_path / "a.PNG"))
    assert outcome.exit_code == 2
    told = outcome.document["error"]["message"]
    assert "A report as csv is several files in a folder: " in told
    assert "a.PNG names a file. Name a folder, such as a." in told
    assert not [*tmp_path.iterdir()]


def test_a_prefix_of_a_bucket_gives_the_same_report(tmp_path, client, bucket, moto_url):
    folder, here, there = (tmp_path / name for name in ("runs", "here.html", "there.html"))
    sweep("--models", STEADY, DRIFT, *GRID[:3], "--turns", "4", "-q", folder=folder)
    run("report", str(folder), "--html", str(here))
    for place in ("curated", "sweeps", "raw"):
        for path in (folder / place).rglob("*.json*"):
            key = f"some/where/{path.relative_to(folder)}"
            client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())
    env = account(moto_url, AWS_ENDPOINT_URL_S3=moto_url)
    outcome = run("report", f"s3://{bucket}/some/where", "--html", str(there), env=env)
    assert (outcome.exit_code, outcome.document["n_runs"]) == (0, 4)
    assert there.read_text() == here.read_text()


def luminance(code):
    """Relative luminance, WCAG 2.2."""
    code = "".join(2 * one for one in code) if len(code) == 3 else code
    parts = [int(code[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_words_and_marks_stand_out_in_every_theme(page):
    """Words by 4.5 to 1, marks by 3 to 1 (WCAG 2.2, 1.4.3 and 1.4.11)."""
    (style,) = page.data["style", None]
    themes = [
        dict(re.findall(r"--(\w+): #(\w+);", one))
        for one in re.findall(r":root {(.*?)}", style, re.DOTALL)
    ]
    assert len(themes) == 3
    for theme in themes:
        for name in ("ink", "muted", "link", "bad"):
            assert contrast(theme[name], theme["paper"]) >= 4.5, (name, theme)
        for n in range(8):
            assert contrast(theme[f"c{n}"], theme["paper"]) >= 3, (n, theme)
        for n in range(7):
            words = theme["paper"] if n >= 5 else theme["ink"]
            assert contrast(theme[f"h{n}"], words) >= 4.5, (n, theme)
