"""Sweeps: every sweep of the store, whoever plays it; rename and delete."""

import asyncio

from nicegui import ui

from socratic_bench.dashboard.page import Action, View, render
from socratic_bench.dashboard.workspace import Workspace

LIST_POLL_S = 2.0
RENAME, DELETE = "ask-rename", "ask-delete"


def register(workspace: Workspace) -> None:
    """Serve the page."""

    @ui.page("/")
    def sweeps() -> None:
        _SweepsPage(workspace).show()


class _SweepsPage:
    """The list in one browser."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._asked: dict[str, str] = {}  # the sweep that is about to be renamed or deleted
        place = workspace.place
        self._view = View("Sweeps", render("sweeps.html"), store=place, current="/")

    def show(self) -> None:
        self._view.on_action(self._perform)
        self._view.poll(max(LIST_POLL_S, self._workspace.poll_s), self._poll)

    async def _poll(self) -> None:
        if not self._asked:  # what a person types would be replaced
            await self._list()

    async def _list(self) -> None:
        statuses = await self._workspace.sweeps()
        names = await asyncio.to_thread(self._workspace.names)
        rows = render("sweep_rows.html", sweeps=statuses, names=names, asked=self._asked)
        self._view.update({"sweeps": rows})

    async def _perform(self, action: Action) -> None:
        if action.action == "changed":  # the new name is being typed
            return
        sweep_id, asked = action.value, self._asked.get(action.value)
        self._asked.clear()
        if action.action in (RENAME, DELETE):
            self._asked[sweep_id] = action.action
        elif action.action == "rename" and asked == RENAME:
            name = str(action.form.get("name") or "").strip()
            await asyncio.to_thread(self._workspace.rename, sweep_id, name)
        elif action.action == "delete" and asked == DELETE:
            await asyncio.to_thread(self._workspace.delete, sweep_id)
        await self._list()
