"""Results: the report's figures of a sweep; two models or sweeps side by side, down to two
dialogues next to each other.
"""

import asyncio
from urllib.parse import urlencode

from nicegui import ui

from socratic_bench.dashboard.dialogue import Dialogue, ShownTurn, read_dialogue
from socratic_bench.dashboard.figures import Figures, Side, figures_of, in_process, side_by_side
from socratic_bench.dashboard.page import Action, View, render
from socratic_bench.dashboard.page_watch import sweep_title
from socratic_bench.dashboard.workspace import Workspace
from socratic_bench.errors import BenchError

SIDES = ("first_sweep", "first_model", "second_sweep", "second_model")


def register(workspace: Workspace) -> None:
    """Serve the pages."""

    @ui.page("/sweeps/{sweep_id}/results")
    async def results(sweep_id: str) -> None:
        await _Results(workspace, sweep_id).show()

    @ui.page("/compare")
    async def compare(
        first_sweep: str = "", first_model: str = "", second_sweep: str = "", second_model: str = ""
    ) -> None:
        first, second = (
            Side(place=workspace.sweep_place(sweep), sweep_id=sweep, model=model)
            for sweep, model in ((first_sweep, first_model), (second_sweep, second_model))
        )
        view = View("Side by side", render("compare.html"), store=workspace.place)

        async def show() -> None:
            region = workspace.command.region()
            compared = await in_process(side_by_side, first, second, region)
            view.update({"compared": render("compared.html", compared=compared)})

        view.soon(show)

    @ui.page("/pair")
    async def pair(
        first_sweep: str = "", first: str = "", second_sweep: str = "", second: str = ""
    ) -> None:
        dialogues = [
            await asyncio.to_thread(read_dialogue, workspace.store, run) for run in (first, second)
        ]
        heads = []
        for sweep, run in ((first_sweep, first), (second_sweep, second)):
            status = await workspace.status(sweep)
            cells = status.cells if status else ()
            cell = next((cell for cell in cells if cell.run_id == run), None)
            axes = cell.axes.values() if cell else ()
            heads.append((", ".join(map(str, axes)) or run, f"/sweeps/{sweep}/runs/{run}"))
        content = render("pair.html", heads=heads, turns=_side_by_side(*dialogues))
        View("Two dialogues", content, store=workspace.place)


class _Results:
    """The results of one sweep in one browser."""

    def __init__(self, workspace: Workspace, sweep_id: str) -> None:
        self._workspace = workspace
        self._sweep_id = sweep_id
        self._figures: Figures | None = None
        self._n_computed = 0

    async def show(self) -> None:
        workspace = self._workspace
        title = await asyncio.to_thread(sweep_title, workspace, self._sweep_id)
        content = render("results.html", id=self._sweep_id)
        self._view = View(f"{title}: results", content, store=workspace.place)
        self._view.on_action(self._perform)
        self._view.soon(self._first)

    async def _first(self) -> None:
        try:
            await self._compute({})
        except BenchError:
            self._view.update({"results": ""})
            raise
        assert self._figures  # noqa: S101 -- just computed
        sweeps = [
            (status.sweep.sweep_id, [*map(str, status.axes.get("model", ()))])
            for status in await self._workspace.sweeps()
        ]
        names = await asyncio.to_thread(self._workspace.names)
        models = self._figures.filters.get("model") or [run.model for run in self._figures.runs[:1]]
        self._view.update(
            {
                "filters": render("filters.html", filters=self._figures.filters),
                "sides": render(
                    "sides.html", id=self._sweep_id, models=models, sweeps=sweeps, names=names
                ),
            }
        )

    async def _compute(self, chosen: dict[str, list[str]]) -> None:
        """Show the figures of what is chosen, unless something else has been chosen meanwhile."""
        self._n_computed += 1
        number = self._n_computed
        place, region = self._workspace.place, self._workspace.command.region()
        try:
            figures = await in_process(figures_of, place, self._sweep_id, region, chosen)
        except BenchError:
            if number == self._n_computed and self._figures:  # no figures of another choice
                self._view.update({"results": ""})
            raise
        if number != self._n_computed:
            return
        self._figures = figures
        most_usd = max((run.cost_usd or 0.0 for run in figures.runs), default=0.0) or 1.0
        models = [*dict.fromkeys(run.model for run in figures.runs)]
        self._view.update(
            {"results": render("figures.html", figures=figures, most_usd=most_usd, models=models)}
        )

    async def _perform(self, action: Action) -> None:
        form = action.form
        if action.action == "changed" and action.value.startswith("filter-"):
            chosen = {
                key.removeprefix("filter-"): [str(value)]
                for key, value in form.items()
                if key.startswith("filter-") and value
            }
            await self._compute(chosen)
        elif action.action == "compare":
            first = str(form["first_model"])
            sweep, _, second = str(form["second_side"]).partition(" ")
            query = dict(zip(SIDES, (self._sweep_id, first, sweep, second), strict=True))
            self._view.go(f"/compare?{urlencode(query)}")


def _side_by_side(
    first: Dialogue, second: Dialogue
) -> list[tuple[ShownTurn | None, ShownTurn | None]]:
    """The turns of two dialogues by their numbers."""
    by_turn = [{turn.turn: turn for turn in dialogue.turns} for dialogue in (first, second)]
    numbers = sorted({*by_turn[0], *by_turn[1]})
    return [(by_turn[0].get(number), by_turn[1].get(number)) for number in numbers]
