"""Failed and unprocessed: what has no result, why, what to do about it, and playing it again."""

import asyncio
from collections.abc import Sequence

import orjson
from msgspec import to_builtins
from nicegui import ui

from socratic_bench.dashboard.figures import Lacking, in_process, unjudged_turns
from socratic_bench.dashboard.page import Action, View, render
from socratic_bench.dashboard.page_queue import perform_on_job
from socratic_bench.dashboard.page_watch import sweep_title
from socratic_bench.dashboard.workspace import Workspace
from socratic_bench.studies.sweep.status import CellStatus


def register(workspace: Workspace) -> None:
    """Serve the page."""

    @ui.page("/sweeps/{sweep_id}/failed")
    async def show_failures(sweep_id: str) -> None:
        title = await asyncio.to_thread(sweep_title, workspace, sweep_id)
        content = render("failed.html", id=sweep_id)
        view = View(f"{title}: failed and unprocessed", content, store=workspace.place)
        unjudged: list[Lacking] = []

        async def show() -> None:
            status = await workspace.status(sweep_id)
            if status is None:
                view.say(f"There is no {sweep_id} in this store.")
                return
            job = await asyncio.to_thread(workspace.jobs.of_sweep, sweep_id)
            is_idle = job is not None and job.state != "running"
            rows = _rows(status.cells, unjudged, is_idle=is_idle or job is None)
            lines = "\n".join(orjson.dumps(to_builtins(row)).decode() for row in rows)
            n_waiting = status.n_runs - len(status.cells)
            view.update(
                {
                    "failed": render(
                        "failed_rows.html", id=sweep_id, rows=rows, n_waiting=n_waiting, job=job
                    ),
                    "lines": render("text.html", text=lines),
                }
            )

        async def read_verdicts() -> None:
            place, region = workspace.sweep_place(sweep_id), workspace.command.region()
            unjudged.extend(await in_process(unjudged_turns, place, region))
            await show()

        async def perform(action: Action) -> None:
            await perform_on_job(workspace, action)
            await show()

        view.on_action(perform)
        view.soon(read_verdicts)
        view.poll(max(1.0, workspace.poll_s), show)


def _rows(
    cells: Sequence[CellStatus], unjudged: Sequence[Lacking], *, is_idle: bool
) -> list[Lacking]:
    """Failed runs, runs that nobody plays on, and turns without a verdict."""
    rows = []
    for cell in cells:
        played = ", ".join(map(str, cell.axes.values()))
        if cell.state == "failed":
            reason = cell.error.message if cell.error else f"It ended by {cell.end_reason}."
            hint = cell.error.hint if cell.error else None
            to_do = hint or "Play it again."
        elif cell.state in ("running", "judging") and is_idle:
            reason, to_do = f"It was interrupted after {cell.turn} turns.", "Go on with the sweep."
        else:
            continue
        rows.append(Lacking(run_id=cell.run_id, played=played, reason=reason, to_do=to_do))
    return [*rows, *unjudged]
