"""Sweeps: every sweep of the store, whoever plays it; rename and delete."""

import asyncio

from nicegui import ui

from socratic_bench.dashboard.page import Action, View, render
from socratic_bench.dashboard.workspace import Workspace

LIST_POLL_S = 2.0


def register(workspace: Workspace) -> None:
    """Serve the page."""

    @ui.page("/")
    def sweeps() -> None:
        view = View("Sweeps", render("sweeps.html"), store=workspace.place, current="/")
        asked: dict[str, str] = {}  # the sweep that is about to be renamed or deleted

        async def show() -> None:
            statuses = await workspace.sweeps()
            names = await asyncio.to_thread(workspace.names)
            rows = render("sweep_rows.html", sweeps=statuses, names=names, asked=asked)
            view.update({"sweeps": rows})

        async def perform(action: Action) -> None:
            sweep_id = action.value
            if action.action in ("ask-rename", "ask-delete"):
                asked.clear()
                asked[sweep_id] = action.action
            elif action.action == "cancel":
                asked.clear()
            elif action.action == "rename" and sweep_id in asked:
                asked.clear()
                name = str(action.form.get("name") or "").strip()
                await asyncio.to_thread(workspace.rename, sweep_id, name)
            elif action.action == "delete" and asked.get(sweep_id) == "ask-delete":
                asked.clear()
                await asyncio.to_thread(workspace.delete, sweep_id)
            await show()

        async def show_unless_asked() -> None:
            if not asked:  # what a person types would be replaced
                await show()

        view.on_action(perform)
        view.poll(max(LIST_POLL_S, workspace.poll_s), show_unless_asked)
