"""New: the form of a sweep, and beside it what the sweep takes, what is wrong, and its command."""

import asyncio
import os
import shlex
import time
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import randrange
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import quote

import orjson
from msgspec import Struct, to_builtins
from nicegui import ui

from socratic_bench.benchmarks import BENCHMARKS
from socratic_bench.benchmarks.data_files import read_source
from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.dashboard.jobs import Job, store_flags
from socratic_bench.dashboard.page import Action, View, render
from socratic_bench.dashboard.plan_form import (
    OTHERS,
    form_of_plan,
    keys_of,
    mistakes_by_key,
    plan_of_form,
    sections,
    to_toml,
)
from socratic_bench.dashboard.workspace import Workspace
from socratic_bench.documents.dry_run import SweepDryRun
from socratic_bench.documents.sweep_plan import MODELS
from socratic_bench.errors import UsageError
from socratic_bench.studies.sweep.estimate import forecast_sweep
from socratic_bench.studies.sweep.profiles import SUFFIX, read_profiles

MAX_DRAWN_SEED = 10**9
ITEM_FIELDS = ("id", "prompt", "golden_answer", "task_type", "task_criteria", "image")
PREVIEW_ROWS, PREVIEW_CHARS = 4, 80


def register(workspace: Workspace) -> None:
    """Serve the page."""

    @ui.page("/new")
    async def new(benchmark: str = "socratic", plan: str = "") -> None:
        await _NewPage(workspace, benchmark, plan).show()


class ModelChoice(Struct, frozen=True, kw_only=True):
    """A model to choose; `reason` says why it cannot be."""

    id: str
    text: str
    reason: str = ""
    is_chosen: bool = False


class _NewPage:
    """The form in one browser."""

    def __init__(self, workspace: Workspace, benchmark: str, plan: str) -> None:
        self._workspace = workspace
        self._benchmark = benchmark if benchmark in BENCHMARKS else "socratic"
        self._plan_text = ""
        self._earlier: Mapping[str, Any] = {}
        self._source = plan
        self._name = ""
        self._models: Sequence[Mapping[str, Any]] = ()
        self._denied: dict[str, str] = {}  # why the doctor found no access, by model
        self._n_estimates = 0
        self._has_mistakes = True

    async def show(self) -> None:
        jobs = await asyncio.to_thread(self._workspace.jobs.all)
        problem = ""
        try:
            self._name, self._earlier = await asyncio.to_thread(self._read_earlier)
        except UsageError as error:
            problem = error.message
        benchmark = str(self._earlier.get("benchmark") or self._benchmark)
        self._benchmark = benchmark if benchmark in BENCHMARKS else "socratic"
        values = {"name": self._name, **form_of_plan(self._earlier)}
        values.setdefault("seed", str(randrange(MAX_DRAWN_SEED)))
        if not (self._earlier or os.environ.get("BEDROCK_MODEL_IDS")):
            values["offline"] = True
        scenarios = {}
        if self._benchmark == "socratic":
            scenarios = {name: load_builtin(name).topic for name in builtin_ids()}
            scenarios |= {n: "" for n in values.get("scenarios", ()) if n not in scenarios}
        content = render(
            "new.html",
            values=values,
            benchmark=self._benchmark,
            benchmarks=sorted(BENCHMARKS, reverse=True),
            sections=sections(self._benchmark),
            others=OTHERS,
            scenarios=scenarios,
            jobs=jobs[::-1],
            models="",
        )
        self._view = View("New sweep", content, store=self._workspace.place, current="/new")
        self._view.on_action(self._perform)
        if problem:
            self._view.say(problem)
        self._view.soon(partial(self._load, values))

    def _read_earlier(self) -> tuple[str, Mapping[str, Any]]:
        """Name and keys of the plan that fills the form: of a job, or of an uploaded file."""
        folder, is_file, name = self._source.partition("/")
        if is_file and folder.isalnum():
            path = self._workspace.files / "uploads" / folder / Path(name).name
            return path.stem, _read_plan(path)
        job = self._workspace.jobs.get(self._source) if self._source.isalnum() else None
        return (job.name, job.settings) if job else ("", {})

    async def _load(self, values: Mapping[str, Any]) -> None:
        """Show the models: the command that lists them takes a moment."""
        output = await self._workspace.run("models", "--all")
        self._models = output.document.get("models", ())
        if not self._models:
            self._view.say(output.error)
        listed = {entry["model_id"] for entry in self._models}
        others = ", ".join(model for model in values.get(MODELS, ()) if model not in listed)
        self._view.fill("more_models", others)
        self._show_models(values)
        await self._estimate({**values, "benchmark": self._benchmark})

    async def _perform(self, action: Action) -> None:
        form = action.form
        if action.action == "changed" and action.value == "benchmark":
            self._view.go(f"/new?benchmark={form['benchmark']}")
        elif action.action == "changed" and action.value == "earlier":
            self._view.go(f"/new?plan={form['earlier']}")
        elif action.action == "changed":
            if action.value in ("offline", "service_tier"):
                self._show_models(form)
            await self._estimate(form)
        elif action.action == "uploaded":
            await self._take_file(orjson.loads(action.value), form)
        elif action.action == "doctor":
            await self._check_access(form)
        elif action.action in ("start", "queue"):
            await self._submit(form, starts_now=action.action == "start")

    def _show_models(self, form: Mapping[str, Any]) -> None:
        tiers = [word.strip() for word in str(form.get("service_tier") or "").split(",")]
        chosen = {*form.get(MODELS, ())}
        models = [
            ModelChoice(
                id=entry["model_id"],
                text=_model_text(entry),
                reason=self._reason(entry, tiers, is_offline=bool(form.get("offline"))),
                is_chosen=entry["model_id"] in chosen,
            )
            for entry in self._models
        ]
        models.sort(key=lambda model: (bool(model.reason), model.id))
        self._view.update({"models": render("models.html", models=models)})

    def _reason(self, entry: Mapping[str, Any], tiers: Sequence[str], *, is_offline: bool) -> str:
        """Why a model cannot be chosen; empty if it can."""
        name, prices = entry["model_id"], entry.get("prices") or {}
        if is_offline and not entry["embedded"]:
            return "not simulated"
        if not (is_offline or entry["allowed"]):
            return "only with offline" if entry["embedded"] else "not in BEDROCK_MODEL_IDS"
        lacking = [tier for tier in tiers if tier not in ("", "default") and tier not in prices]
        if lacking and not is_offline:
            return f"no service tier {lacking[0]}"
        return self._denied.get(name, "")

    async def _estimate(self, form: Mapping[str, Any]) -> None:
        """Show what the plan takes, unless the form has changed meanwhile."""
        self._n_estimates += 1
        number = self._n_estimates
        self._plan_text = to_toml(plan_of_form(form, self._earlier))
        with NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
            file.write(self._plan_text)
            file.flush()
            dry_run, sentences = await asyncio.to_thread(self._dry_run, file.name)
            keys = keys_of(self._benchmark)
            call = self._workspace.command.call
            mistakes = mistakes_by_key(sentences, call, file.name, keys)
        if number != self._n_estimates:
            return
        self._has_mistakes = bool(mistakes)
        fields = (*keys, MODELS)
        texts = [text for group in mistakes.values() for text in group]
        command = ["socratic-runner", "sweep", "plan.toml", *store_flags(self._workspace.place)]
        self._view.update(
            {
                **{f"m-{key}": _escaped(" ".join(mistakes.get(key, ()))) for key in fields},
                "estimate": render(
                    "estimate.html",
                    mistakes=texts,
                    dry_run=dry_run,
                    total=dry_run.usage["total"] if dry_run else None,
                ),
                "plan": _escaped(self._plan_text),
                "command": _escaped(shlex.join([*command, "--resume"])),
            }
        )

    def _dry_run(self, path: str) -> tuple[SweepDryRun | None, Sequence[Any]]:
        command = self._workspace.command
        try:
            return forecast_sweep(command.read_plan(path), command.call, time.sleep), ()
        except UsageError as error:
            error.call_settings(command.call)
            return None, error.sentences

    async def _check_access(self, form: Mapping[str, Any]) -> None:
        await self._estimate(form)
        if self._has_mistakes:
            self._view.say("Mend the mistakes first.")
            return
        self._view.update({"doctor": _escaped("Asking the models ...")})
        with NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
            file.write(self._plan_text)
            file.flush()
            flags = store_flags(self._workspace.place)
            output = await self._workspace.run("doctor", file.name, *flags)
        document = output.document
        failures = {
            model["model_id"]: check["message"]
            for model in document.get("models", ())
            for check in model["checks"]
            if check["status"] == "failed"
        }
        self._denied = {model: f"no access: {message}" for model, message in failures.items()}
        groups = [document, *document.get("models", ())]
        checks = [check for group in groups for check in group.get("checks", ())]
        error = "" if checks else output.error
        self._view.update({"doctor": render("doctor.html", checks=checks, error=error)})
        self._show_models(form)

    async def _submit(self, form: Mapping[str, Any], *, starts_now: bool) -> None:
        await self._estimate(form)
        if self._has_mistakes:
            self._view.say("Mend the mistakes first: each is beside its field.")
            return
        name = str(form.get("name") or "").strip() or "sweep"
        jobs = self._workspace.jobs
        job: Job = await asyncio.to_thread(jobs.add, name, self._plan_text)
        if starts_now:
            await asyncio.to_thread(jobs.start, job)
        self._view.go(f"/jobs/{job.id}" if starts_now else "/queue")

    async def _take_file(self, answer: Mapping[str, Any], form: Mapping[str, Any]) -> None:
        """Use an uploaded file: its path in a field, or a plan in place of the form."""
        if not answer["ok"]:
            self._view.say(str(answer["text"]))
            return
        path, field = str(answer["text"]), str(answer["field"])
        if field == "plan":
            self._view.go(f"/new?plan={Path(path).parent.name}/{quote(Path(path).name)}")
            return
        self._view.fill(field, path)
        if field == "dataset":
            preview = await asyncio.to_thread(_preview, path)
            self._view.update({"preview": render("preview.html", **preview)})
        await self._estimate({**form, field: path})


def _model_text(entry: Mapping[str, Any]) -> str:
    rates = (entry.get("prices") or {}).get("default")
    price = f"{rates['input']:g} in, {rates['output']:g} out USD/M" if rates else "price unknown"
    thinks = ", reasoning" if (entry.get("capabilities") or {}).get("thinking") else ""
    return f"{price}{thinks}"


def _escaped(text: str) -> str:
    return render("text.html", text=text)


def _read_plan(path: Path) -> dict[str, Any]:
    """The plan in a file of TOML, or of 360-Eval's profiles. Raises `UsageError`."""
    if path.name.lower().endswith(SUFFIX):
        profiles = read_profiles(str(path), None)
        if profiles.mistakes:
            raise UsageError(profiles.mistakes)
        if profiles.ways:
            command = f"socratic-runner sweep {path.name}"
            raise UsageError([f"{path.name} has a model in several regions or tiers: {command}"])
        plan: dict[str, Any] = {key.replace("-", "_"): v for key, v in profiles.flags.items()}
        prices = profiles.endpoint_prices
        plan[MODELS] = [
            {
                **{name: value for name, value in to_builtins(model).items() if value is not None},
                "prices": prices.get(f"{model.region}/{model.id}") or prices.get(model.id),
            }
            for model in profiles.models
        ]
        return plan
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError([f"{path.name} is no plan: {error}."]) from error


def _preview(path: str) -> dict[str, Any]:
    """The first rows of a data set, and its columns. Raises `UsageError`."""
    source = read_source(path, "train", Path(path))
    rows = [row for row in source.rows[:PREVIEW_ROWS] if isinstance(row, Mapping)]
    columns = [*dict.fromkeys(name for row in rows for name in row)]
    cells = [[str(row.get(name, ""))[:PREVIEW_CHARS] for name in columns] for row in rows]
    return {"columns": columns, "rows": cells, "fields": ITEM_FIELDS}
