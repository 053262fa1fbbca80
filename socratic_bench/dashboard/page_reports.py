"""Reports: make one of sweeps, see it, download it as HTML, CSV or Parquet, delete it."""

import asyncio
import re
import shutil
from datetime import datetime
from pathlib import Path, PurePath

from nicegui import ui

from socratic_bench.dashboard.guard import REPORTS
from socratic_bench.dashboard.page import Action, View, render
from socratic_bench.dashboard.workspace import Workspace

FORMS = ("html", "csv", "parquet")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def register(workspace: Workspace) -> None:
    """Serve the pages."""

    @ui.page("/reports")
    def reports() -> None:
        _serve_list(workspace)

    @ui.page("/reports/view/{name}")
    def report(name: str) -> None:
        content = render("report_view.html", path=f"{REPORTS}{PurePath(name).name}")
        View(f"Report {name}", content, store=workspace.place, current="/reports")


def _serve_list(workspace: Workspace) -> None:
    view = View("Reports", render("reports.html"), store=workspace.place, current="/reports")
    asked: set[str] = set()  # files about to be deleted

    async def show() -> None:
        names = await asyncio.to_thread(workspace.names)
        sweeps = [status.sweep.sweep_id for status in await workspace.sweeps()]
        form = render("report_form.html", sweeps=sweeps, names=names, forms=FORMS)
        view.update({"form": form})
        await list_files()

    async def list_files() -> None:
        files = await asyncio.to_thread(_files, workspace)
        view.update({"files": render("report_files.html", files=files, asked=asked)})

    async def perform(action: Action) -> None:
        asked.discard("")
        if action.action == "make":
            view.say("Making the report ...")
            view.say(await _make(workspace, action))
        elif action.action == "ask-delete":
            asked.add(action.value)
        elif action.action == "delete" and action.value in asked:
            path = workspace.files / "reports" / PurePath(action.value).name
            await asyncio.to_thread(path.unlink, missing_ok=True)
        await list_files()

    view.on_action(perform)
    view.soon(show)


async def _make(workspace: Workspace, action: Action) -> str:
    """Make a report in each chosen form; returns what to tell."""
    form = action.form
    sweeps = [str(sweep) for sweep in form.get("sweeps", ())]
    forms = [name for name in FORMS if form.get(f"as-{name}")]
    if not (sweeps and forms):
        return "Choose a sweep and a form."
    name = _UNSAFE.sub("-", str(form.get("name") or "").strip()) or "report"
    stem = f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    folder = workspace.files / "reports"
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    endings = {form: ".html" if form == "html" else f"-{form}" for form in forms}
    paths = {form: folder / f"{stem}{ending}" for form, ending in endings.items()}
    flags = [word for form, path in paths.items() for word in (f"--{form}", str(path))]
    places = [workspace.sweep_place(sweep) for sweep in sweeps]
    output = await workspace.run("report", *places, *flags, "--json")
    for path in paths.values():
        if path.is_dir():
            await asyncio.to_thread(_pack, path)
    return output.error if output.exit_code else ""


def _pack(folder: Path) -> None:
    """Replace a folder by an archive of it."""
    shutil.make_archive(str(folder), "zip", folder)
    shutil.rmtree(folder)


def _files(workspace: Workspace) -> list[tuple[str, int]]:
    """Names and kilobytes of the reports, the newest first."""
    folder = workspace.files / "reports"
    paths = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    paths.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    return [(path.name, path.stat().st_size // 1000) for path in paths]
