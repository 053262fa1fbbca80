"""Watch: a sweep as a grid that fills in, and each of its dialogues as it grows."""

import asyncio
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from itertools import product

from msgspec import Struct
from nicegui import ui

from socratic_bench.dashboard.dialogue import read_dialogue
from socratic_bench.dashboard.jobs import Job
from socratic_bench.dashboard.page import Action, View, number, render
from socratic_bench.dashboard.page_queue import job_state, perform_on_job
from socratic_bench.dashboard.workspace import Workspace
from socratic_bench.documents.sweep import Value
from socratic_bench.studies.sweep.status import CellStatus, SweepStatus

# A run without a record for so long may have lost its process.
SILENT_S = 120.0
SILENT = "The runs in progress have written nothing for minutes: their process may have ended."


class GridRow(Struct, frozen=True, kw_only=True):
    """One row of the grid: what is played, and by column its runs and how many are missing."""

    name: str
    columns: Sequence[tuple[Sequence[CellStatus], int]]


def register(workspace: Workspace) -> None:
    """Serve the pages."""

    @ui.page("/sweeps/{sweep_id}")
    async def watch(sweep_id: str) -> None:
        title = await asyncio.to_thread(sweep_title, workspace, sweep_id)
        content = render("watch.html", id=sweep_id)
        view = View(title, content, store=workspace.place)

        async def show() -> None:
            status = await workspace.status(sweep_id)
            if status is None:
                view.say(f"There is no {sweep_id} in this store.")
                return
            job = await asyncio.to_thread(workspace.jobs.of_sweep, sweep_id)
            log = await asyncio.to_thread(workspace.jobs.log, job) if job else ""
            view.update(_parts(status, job, log))

        async def perform(action: Action) -> None:
            await perform_on_job(workspace, action)
            await show()

        view.on_action(perform)
        view.poll(workspace.poll_s, show)

    @ui.page("/sweeps/{sweep_id}/runs/{run_id}")
    async def dialogue(sweep_id: str, run_id: str) -> None:
        title = await asyncio.to_thread(sweep_title, workspace, sweep_id)
        content = render("dialogue_page.html", id=sweep_id, run_id=run_id)
        view = View(f"A dialogue of {title}", content, store=workspace.place)

        async def show() -> None:
            status = await workspace.status(sweep_id)
            cells = status.cells if status else ()
            cell = next((cell for cell in cells if cell.run_id == run_id), None)
            if cell is None:
                view.say("There is no such run in this sweep.")
                return
            shown = await asyncio.to_thread(read_dialogue, workspace.store, run_id)
            view.update(
                {
                    "state": render("cell.html", cell=cell, text=_state_text(cell)),
                    "dialogue": render("dialogue.html", dialogue=shown),
                }
            )

        view.poll(workspace.poll_s, show)


def sweep_title(workspace: Workspace, sweep_id: str) -> str:
    """The name that people see of a sweep."""
    return workspace.names().get(sweep_id) or f"Sweep {sweep_id[-4:]}"


def _parts(status: SweepStatus, job: Job | None, log: str) -> dict[str, str]:
    columns, rows = grid_of(status)
    now = datetime.now(UTC)
    ages = [cell.age_s(now) for cell in status.cells if cell.state in ("running", "judging")]
    is_silent = bool(ages) and all(age is not None and age > SILENT_S for age in ages)
    settings = job.settings if job else {}
    facts = render(
        "facts.html",
        status=status,
        budget_usd=settings.get("max_cost_usd"),
        target_rpm=settings.get("target_rpm"),
        n_refused=sum(cell.n_refused for cell in status.cells),
    )
    return {
        "facts": facts,
        "silent": SILENT if is_silent else "",
        "job": render("job_buttons.html", job=job, state=job_state(job)) if job else "",
        "grid": render(
            "grid.html", id=status.sweep.sweep_id, columns=columns, rows=rows, text=_cell_text
        ),
        "log": render("text.html", text=log or "The command's log is where it was started."),
    }


def grid_of(status: SweepStatus) -> tuple[Sequence[str], Sequence[GridRow]]:
    """Models across; down, what they play: the values of all other axes."""
    models = [*status.axes.get("model", ())]
    others = {name: values for name, values in status.axes.items() if name != "model"}
    by_place: dict[Hashable, list[CellStatus]] = {}
    for cell in status.cells:
        played = tuple(cell.axes.get(name) for name in others)
        by_place.setdefault((cell.axes.get("model"), played), []).append(cell)
    repeats = status.sweep.repeats or 1
    rows = []
    for played in product(*others.values()):
        placed = [by_place.get((model, played), []) for model in models]
        columns = [(cells, max(0, repeats - len(cells))) for cells in placed]
        rows.append(GridRow(name=", ".join(map(_value_text, played)) or "all", columns=columns))
    return [*map(str, models)], rows


def _value_text(value: Value) -> str:
    return "default" if value is None else str(value)


def _cell_text(cell: CellStatus) -> str:
    if cell.state == "completed":
        return number(cell.score)
    if cell.state == "failed":
        return "failed"
    turns = f"/{cell.n_turns}" if cell.n_turns else ""
    return "judging" if cell.state == "judging" else f"turn {cell.turn}{turns}"


def _state_text(cell: CellStatus) -> str:
    if cell.state == "completed":
        return f"complete, score {number(cell.score)}, {number(cell.cost_usd, 4)} USD"
    return _cell_text(cell)
