"""What people see of a sweep on stderr: at a terminal, with rich and without, and in a log."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from cli.sweep_display import display_for, model_table, status, status_lines
from cli.terminal import count, number, rough_duration
from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.studies.sweep.engine import ModelProgress, Snapshot
from tests.command import ROOT, Outcome, account, run
from tests.terminal import COLOUR, frames, run_in_terminal, width

STEADY, LECTURER = "emulator.socratic-v1:0", "emulator.lecturer-v1:0"
BROKEN = "emulator.leading-v1:0"
MODELS = (BROKEN, LECTURER, STEADY)
WORDS = ("sweep", "--models", *MODELS, "--scenarios", "career-change", "--turns", "3")
WORDS = (*WORDS, "--judge-model", "emulator.judge-v1:0", "--max-connections", "2")
SWEEP_ID = re.compile(r"sweep-[0-9A-Z]{26}")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Each answer takes a while, so that there is something to see; one model does not exist."""
    broken = parse_fault("not_found:model=leading")
    with Emulator(Settings(latency_ms=300, faults=(broken,))) as served:
        yield served.url


@dataclass(frozen=True)
class Played:
    outcome: Outcome
    frames: list[list[str]]

    @property
    def last(self) -> list[str]:
        return [line for line in self.frames[-1] if line]


def in_terminal(url, folder, columns: int, **variables: str) -> Played:
    env = account(url, *MODELS, "emulator.judge-v1:0", **variables)
    words = (*WORDS, "--output-dir", str(folder))
    outcome, _ = run_in_terminal(*words, columns=columns, env=env)
    return Played(outcome, frames(outcome.stderr, columns))


def without_rich(folder) -> str:
    """A path on which rich cannot be imported."""
    package = folder / "rich"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('not installed')\n")
    return f"{folder}:{ROOT}"


@pytest.fixture(scope="module", params=[40, 80, 100])
def columns(request) -> int:
    return request.param


@pytest.fixture(scope="module")
def live(url, columns, tmp_path_factory) -> Played:
    variables = {"NO_COLOR": "1"} if columns == 100 else {}
    return in_terminal(url, tmp_path_factory.mktemp("live"), columns, **variables)


def table_in(frame: list[str]) -> list[str]:
    """The lines from the head of the table on; above it stand others."""
    heads = [n for n, line in enumerate(frame) if line.split()[:2] == ["model", "done"]]
    return frame[heads[-1] :]


def short(model: str, columns: int) -> str:
    return model if columns > 40 else model.removeprefix("emulator.")


class TestLive:
    def test_a_table_of_the_models_and_the_whole_is_drawn_anew(self, live, columns):
        assert live.outcome.exit_code == 4
        *drawn, _ = live.frames
        assert len(drawn) > 1
        shown = [short(model, columns) for model in MODELS]
        for frame in drawn:
            names = [line.split()[0] for line in table_in(frame) if line]
            assert [name for name in names if name in ("model", *shown)] == ["model", *shown]
        told = " ".join(drawn[-1])
        assert re.search(
            r"2 of 3 done, 0 running, 1 failed, [\d.]+ calls/s, [\d.]+k tokens, 0\.\d{4} USD, "
            r"\d+ s so far, 0 s left",
            told,
        ), told

    def test_every_line_fits(self, live, columns):
        for line in {line for frame in live.frames for line in frame}:
            assert width(line) <= columns, line

    def test_other_lines_stay_and_the_table_goes(self, live):
        (begun,) = [line for line in live.last if SWEEP_ID.match(line)]
        assert live.last[0] == begun
        assert " ".join(live.last).count("a run of ") == 1
        assert all(frame[0] == begun for frame in live.frames if frame[0])
        assert "so far" not in " ".join(live.last)

    def test_it_ends_with_the_result_of_each_model_the_best_first(self, live, columns):
        document = live.outcome.document
        groups = document["groups"]["model"]
        names = [short(group["value"], columns) for group in groups]
        rows = {line.split()[0]: line.split() for line in live.last if re.search(r" \d/1 ", line)}

        assert [*rows] == names == [short(one, columns) for one in MODELS[::-1]]
        for group, row in zip(groups, rows.values(), strict=True):
            mean = group["metrics"].get("overall_score", {"mean": None})["mean"]
            assert number(mean) in row
            assert f"{group['n_completed']}/1" in row
        told = " ".join(line.strip() for line in live.last)
        assert f"{document['status']}: 2 of 3 runs done, 1 failed" in told
        assert document["error"]["hint"] in told

    def test_colour_marks_what_failed_where_colour_is_wanted(self, live, columns):
        coloured = {found[2] for found in COLOUR.finditer(live.outcome.stderr)}

        assert coloured == (set() if columns == 100 else {"!1"})
        assert "\x1b[3" not in (live.outcome.stderr if columns == 100 else "")

    def test_the_cursor_is_there_all_the_time(self, live):
        shown = re.split(r"\x1b\[\?25l", live.outcome.stderr)

        assert all(part.startswith("\x1b[?25h") for part in shown[1:])


def test_without_the_extra_one_line_is_drawn_anew_and_nothing_complains(url, tmp_path):
    folder = tmp_path / "blocked"
    folder.mkdir()
    path = without_rich(folder)
    played = in_terminal(url, tmp_path / "out", 80, PYTHONPATH=path)
    drawn = [line for line in played.outcome.stderr.split("\r\x1b[K") if " running" in line]

    assert played.outcome.exit_code == 4
    assert len(drawn) > 1
    assert all(width(line) < 80 for line in drawn)
    assert SWEEP_ID.match(played.last[0])
    assert "so far" not in " ".join(played.last)
    assert ["model", "done"] in [line.split()[:2] for line in played.last]
    assert "rich" not in played.outcome.stderr


def test_in_a_log_there_is_a_line_at_the_start_and_the_result(url, tmp_path):
    env = account(url, *MODELS, "emulator.judge-v1:0")
    outcome = run(*WORDS, "--output-dir", str(tmp_path), env=env)
    begun, *told = outcome.stderr.splitlines()
    # The look at the models beside the cells finds it, too, sooner or later than a cell.
    lines = [line for line in told if f"note: {BROKEN}: " not in line]

    assert begun == f"{outcome.document['sweep_id']}: 3 runs (3 models)"
    assert re.search(rf"a run of {BROKEN} failed: .*ResourceNotFoundException", lines[0])
    assert [line.split()[0] for line in lines[1:5]] == ["model", *MODELS[::-1]]
    assert "\x1b" not in outcome.stderr


def test_quiet_leaves_out_all_but_the_error(url, tmp_path):
    env = account(url, *MODELS, "emulator.judge-v1:0")
    outcome = run(*WORDS, "--output-dir", str(tmp_path), "--quiet", env=env)
    message = outcome.document["error"]["message"]

    assert outcome.stderr.splitlines()[0] == f"error: {message}"


NOW = Snapshot(
    elapsed_s=0,
    n_cells=48,
    models=(
        ModelProgress(
            model="a", n_cells=24, n_done=20, n_running=4, n_calls=900, n_tokens=1_250_000
        ),
        ModelProgress(model="b", n_cells=24, n_done=3, n_failed=2, n_tokens=950, cost_usd=0.25),
    ),
    calls_per_s=3.25,
    left_s=4000,
)


class Moments:
    """A sweep's state that is at the next moment each time that somebody looks."""

    def __init__(self, *elapsed_s: float) -> None:
        self._moments = [*elapsed_s]
        self.seen = threading.Event()

    def snapshot(self) -> Snapshot:
        if len(self._moments) == 1:
            self.seen.set()
            return replace(NOW, elapsed_s=self._moments[0])
        return replace(NOW, elapsed_s=self._moments.pop(0))


SWEEP = "sweep-01M81Y0C0KSMQ9C70W6WZDKM2P"


def test_in_a_log_there_is_a_line_every_half_minute(capsys):
    moments = Moments(0, 10, 29.9, 30.1, 45, 60, 61, 80, 80)
    display = display_for({"model": 2, "scenario": 1, "repeat": 24}, quiet=False, tick_s=0.001)

    display.begin(SWEEP, moments)
    assert moments.seen.wait(60)
    display.notice("b is stopped:\x1b[2J no success\nfor 15 min, AKIAABCDEFGHIJKLMNOP")
    display.end()

    told = "KM2P 23 of 48 done, 4 running, 2 failed, 3.2 calls/s, 1.25M tokens, 0.250 USD"
    assert capsys.readouterr().err.splitlines() == [
        f"{SWEEP}: 48 runs (2 models x 24 repeats); 25 of them ended earlier",
        f"{told}, 30 s so far, 1 h 6 min left",
        f"{told}, 1 min so far, 1 h 6 min left",
        "KM2P note: b is stopped: no success for 15 min, ***",
    ]


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (20, "23 of 48 done"),
        (40, "23 of 48 done, 2 failed, 1 h 6 min left"),
        (60, "23 of 48 done, 4 running, 2 failed, 1 h 6 min left"),
        (80, "23 of 48 done, 4 running, 2 failed, 3.2 calls/s, 0.250 USD, 1 h 6 min left"),
    ],
)
def test_one_line_tells_as_much_as_fits(room, told):
    assert status(NOW, room) == told


@pytest.mark.parametrize("columns", [20, 40, 80, 120])
def test_several_lines_tell_everything(columns):
    lines = status_lines(NOW, columns)

    assert " ".join(lines) == status(NOW)
    assert max(map(len, lines)) <= columns


def test_more_models_than_lines_are_counted():
    many = replace(NOW, models=NOW.models * 20)

    lines = model_table(many, 80, 24)

    assert len(lines) == 24
    assert lines[-1] == "and 18 more"


def test_what_models_are_called_is_plain_text():
    hostile = ModelProgress(model="[red]m[/red]\x1b[2J\n\u202e人生", n_cells=1)
    unknown = ModelProgress(model="m", n_cells=1, cost_usd=None)

    _, first, second = model_table(replace(NOW, models=(hostile, unknown)), 80)

    assert first.startswith("[red]m[/red] 人生   0/1")
    assert second.endswith(" -")
    assert status(replace(NOW, models=(hostile, unknown))).count("cost unknown") == 1


def test_figures_are_short():
    assert [count(n) for n in (0, 999, 1000, 999_499, 999_500, 1_250_000)] == [
        *("0", "999", "1.00k", "999k", "1.00M", "1.25M")
    ]
    assert [rough_duration(s) for s in (0, 59, 60, 3599, 3600, 86_400)] == [
        *("0 s", "59 s", "1 min", "60 min", "1 h 0 min", "1 d 0 h")
    ]
