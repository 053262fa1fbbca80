"""A report in a real browser, opened from the disk."""

import json
import re

import pytest

from tests.browser.many_runs import make
from tests.command import run
from tests.test_sweep import curated, sweep

pytestmark = pytest.mark.browser

MODELS = ("emulator.socratic-v1:0", "emulator.drift-5-v1:0")
SCENARIOS = ("ai-ethics", "career-change", "time-management")
JURY = ("emulator.judge-v1:0", "emulator.judge-bias--5-v1:0")
GRID = ("--scenarios", *SCENARIOS, "--repeats", "2", "--turns", "8", "--seed", "7", "-q")
PHONE = {"viewport": {"width": 390, "height": 844}}
BIDI, NUL, NO_CHARACTER = "\u202eesrever", "\x00", "\ufffe"
MEGABYTES = 10_000_000
HOSTILE = {
    "script": "<script>window.broken=1;alert(1)</script></script><script>alert(2)</script>",
    "handlers": '<img src=x onerror="window.broken=1"><svg onload=alert(1)>'
    '<a href="javascript:alert(1)">x</a>',
    "closing": "</main></body></html><!-- --><iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "template": "{{ 7 * 7 }}{% raw %} \u2028\u2029 ${7*7} `x` \\u003c/script>",
    "bidi": f"before {BIDI}\u2066 after",
    "word": "x" * 20_000,
    "broken": f"{NUL}\x1b[31m{NO_CHARACTER}\u0300\u0301\u0302" + "a" + "\u0316" * 300,
    "elsewhere": "]]>--><!-- <![CDATA[ </style><style>*{display:none}</style></textarea></svg>",
    "style": 'x;} body{background:url("https://a.invalid/x.png")} " style="display:none',
    "emoji": "👩‍👩‍👧‍👦" * 60,
    "to the left": "שלום עולם, مرحبا بالعالم " * 20,
    "large": "ten megabytes " * (MEGABYTES // 14),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models, twice in three scenarios, before two judges."""
    folder = tmp_path_factory.mktemp("browsed") / "runs"
    judges = [word for model in JURY for word in ("--judge-model", model)]
    sweep("--models", *MODELS, *judges, "--pressure", "low", *GRID, folder=folder)
    return folder


@pytest.fixture(scope="module")
def report(folder):
    path = folder.parent / "report.html"
    outcome = run("report", str(folder), "--html", str(path))
    assert outcome.exit_code == 0, outcome.stderr
    return path


@pytest.fixture(scope="module")
def hostile(folder, tmp_path_factory):
    """Runs in which models said what would do harm if it were taken for markup."""
    place = tmp_path_factory.mktemp("hostile")
    documents = sorted(curated(folder).items())
    paths = []
    for (_, document), (name, text) in zip(documents, HOSTILE.items(), strict=False):
        first = document["turns"][0]
        first |= {"question": text, "student": text[:50_000]}
        first["quotes"] = dict.fromkeys(first["quotes"], text[:500])
        first["events"] = {text[:60]: text[:500]}
        changed = document | {"output_artifacts": None, "model": f"{document['model']} {text[:60]}"}
        paths.append(place / f"{name}.json")
        paths[-1].write_text(
            json.dumps(changed | {"scenario": f"{document['scenario']}{text[:40]}"})
        )
    assert len(paths) == len(HOSTILE)
    path = place / "hostile.html"
    outcome = run("report", *map(str, paths), "--html", str(path), "-q")
    assert outcome.exit_code == 0, outcome.stderr
    return path


def open_all(page):
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


def run_of(folder, model, scenario):
    return min(
        run_id
        for run_id, one in curated(folder).items()
        if (one["model"], one["scenario"]) == (model, scenario)
    )


def breaches(page, axe):
    """What axe-core finds, in a world of its own that the page's policy does not bind."""
    page.context.new_cdp_session(page).send("Page.setBypassCSP", {"enabled": True})
    page.evaluate(axe)
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found["violations"]
    ]


def test_a_thousand_runs_of_forty_turns_stay_under_thirty_megabytes(tmp_path):
    """By the part that grows with the runs, of sixty that differ in every word."""
    make(tmp_path / "runs", 60, 40, 600)
    path = tmp_path / "report.html"
    outcome = run("report", str(tmp_path / "runs"), "--html", str(path), "-q")
    assert outcome.document["n_runs"] == 60
    text = path.read_text(encoding="utf-8")
    blocks = sum(map(len, re.findall(r'class="block">([^<]*)<', text)))
    assert len(text) - blocks + blocks / 60 * 1000 < 30_000_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"viewport": {"width": 1280, "height": 800}}, PHONE])
def test_axe_finds_no_barrier_with_everything_opened(folder, report, opened, axe, scheme, size):
    first, second = (run_of(folder, model, "career-change") for model in MODELS)
    seen = opened(report, f"#run={first}&beside={second}", color_scheme=scheme, **size)
    seen.page.wait_for_selector("#panes article:nth-of-type(2) .turn")
    open_all(seen.page)
    assert breaches(seen.page, axe) == []


def test_it_asks_for_nothing_and_complains_of_nothing(folder, report, opened):
    seen = opened(report, f"#run={run_of(folder, MODELS[0], 'ai-ethics')}")
    seen.page.wait_for_selector("#panes .turn")
    assert seen.requests == [seen.url + seen.page.evaluate("location.hash")] or all(
        one.startswith(seen.url) for one in seen.requests
    )
    assert seen.complaints == []


def lying_badly(page):
    """Charts that are not seen once, are wider than their place, or have words outside, and the
    names of points that cover each other.
    """
    return page.evaluate(
        """() => {
          const box = (one) => one.getBoundingClientRect();
          const found = [];
          for (const place of document.querySelectorAll("figure .wide")) {
            const seen = [...place.querySelectorAll("svg")].filter((one) => box(one).width);
            if (seen.length !== 1 || place.scrollWidth > place.clientWidth) {
              found.push(place.ariaLabel);
              continue;
            }
            const frame = box(seen[0]);
            const texts = [...seen[0].querySelectorAll("text")].filter((one) => one.textContent);
            for (const one of texts) {
              const { left, right, top, bottom } = box(one);
              if (left < frame.left - 2 || right > frame.right + 2 || top < frame.top - 2
                  || bottom > frame.bottom + 2) found.push(one.textContent);
            }
            const parts = [...seen[0].querySelectorAll("path")].map(box);
            for (const word of texts.filter((one) => one.classList.contains("f-paper"))) {
              const { left, right, top, bottom } = box(word);
              if (!parts.some((one) => one.left <= left && right <= one.right && one.top <= top
                  && bottom <= one.bottom)) found.push("cut: " + word.textContent);
            }
            const names = texts.filter((one) => /emulator|drift/.test(one.textContent)).map(box);
            names.forEach((one, n) => names.slice(n + 1).forEach((other) => {
              if (one.left < other.right && other.left < one.right && one.top + 3 < other.bottom
                  && other.top + 3 < one.bottom) found.push("covered: " + place.ariaLabel);
            }));
          }
          return found;
        }"""
    )


def test_nothing_is_wider_than_a_phone(folder, report, opened):
    first, second = (run_of(folder, model, "ai-ethics") for model in MODELS)
    seen = opened(report, f"#run={first}&beside={second}", **PHONE)
    seen.page.wait_for_selector("#panes .turn")
    assert lying_badly(seen.page) == []
    open_all(seen.page)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
    seen.page.set_viewport_size({"width": 1280, "height": 800})
    assert lying_badly(seen.page) == []


def test_runs_are_found_by_model_scenario_event_and_words(folder, report, opened):
    page = opened(report).page
    documents = curated(folder)
    found = page.locator("#found")

    def expect(n):
        found.filter(has_text=re.compile(f"^{n} of")).wait_for()

    expect(len(documents))
    page.select_option("select[name=model]", MODELS[0])
    expect(6)
    page.select_option("select[name=sample]", SCENARIOS[0])
    expect(2)
    page.select_option("select[name=model]", "")
    page.select_option("select[name=sample]", "")
    words = next(iter(documents.values()))["turns"][3]["question"].split(". ")[-1].upper()
    page.fill("input[name=words]", words)
    told = [
        run_id
        for run_id, one in documents.items()
        if any(
            words.lower() in f"{turn['question']}\n{turn['student']}".lower()
            for turn in one["turns"]
        )
    ]
    expect(len(told))
    links = page.locator("#runs a").evaluate_all("all => all.map((one) => one.hash)")
    assert sorted(one.partition("&")[0] for one in links) == sorted(f"#run={i}" for i in told)
    page.fill("input[name=words]", "no reply says this")
    expect(0)
    assert found.inner_text() == f"0 of {len(documents)} runs"


def test_a_turn_has_scores_reasons_and_marked_evidence_of_every_juror(folder, report, opened):
    run_id = run_of(folder, MODELS[1], "career-change")
    page = opened(report, f"#run={run_id}&turn=6").page
    page.wait_for_selector("#panes .turn.target")
    turn = page.locator(".turn.target")
    file = json.loads((folder / f"raw/runs/{run_id}/judge_006.json").read_text())
    entry = curated(folder)[run_id]["turns"][6]
    text = turn.inner_text()
    assert entry["question"].split()[0] in text
    assert [one["model"] for one in file["jurors"]] == [*JURY]
    for juror in file["jurors"]:
        assert juror["model"] in text
        for reason in juror["rationale"].values():
            assert reason in text
        for event in juror["events"]:
            assert event.replace("_", " ") in text
    marks = turn.locator("mark").all_inner_texts()
    assert marks
    assert all(one in entry["question"] for one in marks)
    assert turn.evaluate("one => document.activeElement === one")


def test_two_runs_of_a_scenario_stand_side_by_side_and_keep_a_link(folder, report, opened):
    first, second = (run_of(folder, model, "ai-ethics") for model in MODELS)
    seen = opened(report, f"#run={first}")
    page = seen.page
    page.wait_for_selector("#panes select")
    offered = page.locator("#panes select option").evaluate_all(
        "all => all.map((one) => one.value)"
    )
    same = {i for i, one in curated(folder).items() if one["scenario"] == "ai-ethics"}
    assert {*offered} == {"", *same} - {first}
    page.select_option("#panes select", second)
    page.wait_for_selector("#panes article:nth-of-type(2) .turn")
    assert page.evaluate("location.hash") == f"#run={first}&beside={second}"
    left, right = (page.locator("#panes article").nth(n).bounding_box() for n in (0, 1))
    assert right["x"] >= left["x"] + left["width"]
    tops = page.locator("#panes article").evaluate_all(
        "all => all.map((one) => [...one.querySelectorAll('.turn')].map((turn) => "
        "Math.round(turn.getBoundingClientRect().top)))"
    )
    assert tops[0] == tops[1]
    assert len(tops[0]) == 8


def test_evidence_that_overlaps_is_marked_to_its_end(folder, tmp_path, opened):
    document = min(curated(folder).items())[1] | {"output_artifacts": None}
    document["turns"][0] |= {
        "question": "Why is it so, then?",
        "quotes": {"form": "Why is it", "substance": "it so, then?"},
        "events": {},
    }
    (tmp_path / "run.json").write_text(json.dumps(document))
    path = tmp_path / "report.html"
    assert run("report", str(tmp_path / "run.json"), "--html", str(path), "-q").exit_code == 0
    page = opened(path, f"#run={document['run_id']}").page
    page.wait_for_selector("#panes .turn")
    assert page.locator(".turn").first.locator("mark").all_inner_texts() == [
        "Why is it",
        " so, then?",
    ]


def test_the_keyboard_opens_a_transcript(report, opened):
    page = opened(report).page
    page.focus("input[name=words]")
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('#runs a') !== null"):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("#panes .turn")
    assert page.evaluate("document.activeElement.closest('#panes') !== null")


def test_printed_it_has_all_figures_and_no_controls(folder, report, opened):
    page = opened(report, f"#run={run_of(folder, MODELS[0], 'ai-ethics')}").page
    page.wait_for_selector("#panes .turn")
    page.keyboard.press("Shift")  # as whoever uses the keyboard sees what has the focus
    page.emulate_media(media="print")
    assert page.locator(".turn").first.is_visible()
    assert not page.locator(".turn a").first.is_visible()
    outlined = "all => all.filter((one) => getComputedStyle(one).outlineStyle !== 'none').length"
    assert page.locator("#panes h3").evaluate_all(outlined) == 0
    assert not page.locator("form").is_visible()
    assert page.locator("main svg").first.is_visible()
    folded = page.locator("main details:not([open]) table")
    shown = folded.evaluate_all("all => all.map((one) => one.checkVisibility())")
    assert shown
    assert all(shown)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.set_viewport_size({"width": 700, "height": 1000})  # of A4, and narrower than a page
    assert page.locator("figure svg.broad").first.is_visible(), "paper is wide"
    cut = "all => all.filter((one) => one.scrollWidth > one.clientWidth).length"
    assert page.locator("main .wide").evaluate_all(cut) == 0, "nobody scrolls on paper"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_theme(report, opened, scheme):
    page = opened(report, color_scheme=scheme).page
    paper, ink = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, "
        "getComputedStyle(document.querySelector('.f-ink')).fill]"
    )
    light = [sum(map(int, re.findall(r"\d+", one)[:3])) > 380 for one in (paper, ink)]
    assert light == [scheme == "light", scheme == "dark"]


def test_what_models_say_is_shown_and_never_obeyed(hostile, opened):
    seen = opened(hostile)
    page = seen.page
    index = json.loads(page.evaluate("document.getElementById('index').textContent"))
    for (run_id, *_), (name, said) in zip(sorted(index["runs"]), HOSTILE.items(), strict=True):
        page.evaluate("id => { location.hash = 'run=' + id; }", run_id)
        page.wait_for_selector(f"#panes .kicker:has-text('{run_id}')")
        open_all(page)
        assert page.evaluate("window.broken") is None, name
        assert page.locator("img, iframe, a[href^=javascript]").count() == 0, name
        shown = page.locator("#panes .turn .words:not(.said)").first
        text = shown.evaluate("one => one.textContent")
        visible = said[:15_000]
        for unseen in ("\u202e", "\u2066", "\u2028", "\u2029", NUL, "\x1b", NO_CHARACTER):
            assert unseen not in text, name
            visible = visible.replace(unseen, f"⟨U+{ord(unseen):04X}⟩")
        assert visible[:15_000] in text, name
        assert shown.is_visible(), name
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280, name
        page.set_viewport_size(PHONE["viewport"])
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        page.set_viewport_size({"width": 1280, "height": 720})
    assert [one for one in seen.complaints if "dialog" in one or "Error" in one] == []
    assert all(one.startswith(hostile.as_uri()) for one in seen.requests)


def test_a_reply_of_ten_megabytes_is_shown_in_part_and_whole_if_asked_for(hostile, opened):
    seen = opened(hostile)
    page = seen.page
    index = json.loads(page.evaluate("document.getElementById('index').textContent"))
    run_id = sorted(index["runs"])[[*HOSTILE].index("large")][0]
    page.evaluate("id => { location.hash = 'run=' + id; }", run_id)
    page.wait_for_selector("#panes .turn")
    shown = page.locator("#panes .turn .words:not(.said)").first
    assert shown.evaluate("one => one.textContent.length") < 30_000
    page.get_by_role("button", name=re.compile("Show all 9,")).first.click()
    assert shown.evaluate("one => one.textContent.length") > 9_000_000
    assert hostile.stat().st_size < 2_000_000
