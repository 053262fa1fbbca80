"""Label: people score turns without seeing model and judge, by keyboard alone; then agreement,
calibration and the corrected leaderboard.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from socratic_bench.benchmarks import RunConfig
from socratic_bench.dashboard.figures import in_process, label_figures
from socratic_bench.dashboard.jobs import store_flags
from socratic_bench.dashboard.page import Action, View, render
from socratic_bench.dashboard.page_watch import sweep_title
from socratic_bench.dashboard.workspace import Workspace
from socratic_bench.errors import BenchError
from socratic_bench.settings import S3, table
from socratic_bench.studies.calibrate.labels import read_labels
from socratic_bench.studies.calibrate.session import (
    Labelling,
    LabellingRequest,
    Question,
    labels_with,
    prepare_labelling,
)
from socratic_bench.studies.sweep.resume import journal_entries

N_TURNS = 100
# The sweep's settings of its judge that `calibrate` has, too.
JUDGING = ("rubric", "judge_context", "judge_samples", "quorum", "jury_rule")
LINES_BEFORE = 6  # messages before the reply, if not all of them


def register(workspace: Workspace) -> None:
    """Serve the page."""

    @ui.page("/sweeps/{sweep_id}/label")
    async def label(sweep_id: str) -> None:
        await _LabelPage(workspace, sweep_id).show()


class _LabelPage:
    """One person's labelling of the turns of a sweep."""

    def __init__(self, workspace: Workspace, sweep_id: str) -> None:
        self._workspace = workspace
        self._sweep_id = sweep_id
        self._labelling: Labelling | None = None
        self._shows_all = False

    async def show(self) -> None:
        workspace = self._workspace
        title = await asyncio.to_thread(sweep_title, workspace, self._sweep_id)
        content = render("label.html", id=self._sweep_id, n_turns=N_TURNS)
        self._view = View(f"{title}: label", content, store=workspace.place)
        self._view.on_action(self._perform)

    @property
    def _key(self) -> str:
        return f"dashboard/labels/{self._sweep_id}.jsonl"

    @property
    def _file(self) -> Path:
        return self._workspace.files / "labels" / f"{self._sweep_id}.jsonl"

    async def _perform(self, action: Action) -> None:
        if action.action == "begin":
            await self._begin(action.form)
        elif action.action == "agreement":
            await self._show_agreement()
        elif action.action == "calibrate":
            await self._calibrate()
        elif self._labelling and self._labelling.session.place is not None:
            await self._follow(self._labelling, action)

    async def _begin(self, form: Mapping[str, Any]) -> None:
        labeller = str(form.get("labeller") or "").strip()
        numbers = [str(form.get(name) or "").strip() for name in ("turns", "seed")]
        if not labeller or not all(word.isascii() and word.isdecimal() for word in numbers):
            self._view.say("Give your name, and whole numbers of turns and seed.")
            return
        self._view.say("")
        await asyncio.to_thread(self._fetch)
        config = await self._config()
        request = LabellingRequest(
            runs=(self._workspace.sweep_place(self._sweep_id),),
            file=str(self._file),
            labeller=labeller,
            n_turns=max(1, int(numbers[0])),
            seed=int(numbers[1]),
            rubric=str(config.get("rubric") or ""),
            whole_dialogues=bool(form.get("whole_dialogues")),
        )
        region = self._workspace.command.region
        self._labelling = await asyncio.to_thread(prepare_labelling, request, region)
        self._show_question()

    def _fetch(self) -> None:
        """Have the labels of a bucket on this host."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if self._workspace.place.startswith(S3) and (body := self._workspace.store.get(self._key)):
            self._file.write_bytes(body)

    async def _follow(self, labelling: Labelling, action: Action) -> None:
        """An answer, or a command of one key."""
        session = labelling.session
        assert session.place is not None  # noqa: S101 -- a question is open
        question = session.questions[session.place[1]]
        word, problem = action.value, ""
        if action.action == "key" and word in "bsa":
            if word == "b":
                session.back()
            elif word == "s":
                session.skip()
            self._shows_all = word == "a" and not self._shows_all
        elif action.action == "answer" or (action.action == "key" and question.field != "reasons"):
            problem = await asyncio.to_thread(session.answer, word.strip())
            await asyncio.to_thread(self._keep)
        self._view.say(problem)
        if not self._show_question():
            await self._show_agreement()

    def _keep(self) -> None:
        if self._workspace.place.startswith(S3) and self._file.exists():
            assert self._labelling  # noqa: S101 -- an answer was given
            merge = partial(labels_with, self._labelling.request.labeller, self._file.read_bytes())
            self._workspace.store.update(self._key, merge)

    def _show_question(self) -> bool:
        """`False` if no question is left."""
        labelling = self._labelling
        assert labelling  # noqa: S101 -- it has begun
        session, n_turns = labelling.session, len(labelling.turns)
        progress = f"{session.n_done} of {n_turns} turns are labelled."
        if session.place is None:
            self._view.update({"question": render("text.html", text=progress)})
            return False
        turn, number = session.place
        label, question = labelling.turns[turn], session.questions[number]
        asking, tested = labelling.rubric.speakers
        names = {"user": asking, "assistant": tested}
        messages = [(names[message.role], message.text) for message in label.history]
        messages.append((asking, label.prompt or ""))
        left_out = 0 if self._shows_all else max(0, len(messages) - LINES_BEFORE)
        content = render(
            "label_question.html",
            progress=progress,
            place=f"{turn}-{number}",
            messages=messages[left_out:],
            left_out=left_out,
            tested=tested,
            reply=label.reply or "",
            question=question,
            answers=_answers(question),
        )
        self._view.update({"question": content})
        return True

    async def _show_agreement(self) -> None:
        self._view.update({"agreement": render("text.html", text="Reading the labels ...")})
        place = self._workspace.sweep_place(self._sweep_id)
        region = self._workspace.command.region()
        try:
            await asyncio.to_thread(self._fetch)
            figures = await in_process(label_figures, place, str(self._file), region)
        except BenchError:
            self._view.update({"agreement": ""})
            raise
        self._view.update({"agreement": render("agreement.html", figures=figures)})

    async def _calibrate(self) -> None:
        """Have the sweep's judge score the labelled turns, as the command does."""
        await asyncio.to_thread(self._fetch)
        await asyncio.to_thread(read_labels, [str(self._file)])  # or says why not
        config = await self._config()
        self._view.update({"calibration": render("text.html", text="The judge is scoring ...")})
        judges = config.get("judge_model") or []
        judges = judges if isinstance(judges, list) else [judges]
        flags = ["--judge-model", *map(str, judges)] if judges else []
        for name in JUDGING:
            if (value := config.get(name)) is not None:
                flags += [f"--{name.replace('_', '-')}", str(value)]
        if config.get("offline"):
            flags.append("--offline")
        place = self._workspace.sweep_place(self._sweep_id)
        output = await self._workspace.run(
            *("calibrate", "--labels", str(self._file), "--runs", place),
            *(*flags, *store_flags(self._workspace.place), "--resume"),
        )
        words = output.error if output.exit_code else output.words
        self._view.update({"calibration": render("calibration.html", words=words)})

    async def _config(self) -> Mapping[str, Any]:
        """The settings of a complete run of the sweep, by its journal."""
        status = await self._workspace.status(self._sweep_id)
        cells = status.cells if status else ()
        run_id = next((cell.run_id for cell in cells if cell.state == "completed"), None)
        store = self._workspace.store
        entries = await asyncio.to_thread(journal_entries, store, run_id) if run_id else []
        config = entries[0].get("config") if entries else None
        if not isinstance(config, dict):
            return {}
        # The default stands in journals of other benchmarks, too, which have rubrics of their own.
        usual = table(RunConfig)["rubric"].default
        return {name: v for name, v in config.items() if (name, v) != ("rubric", usual)}


def _answers(question: Question) -> list[tuple[str, str]]:
    """The answers that have a button: what is sent, and what it means."""
    if question.field == "events":
        meaning = question.levels.get("yes", "")
        return [("y", f"yes: {meaning}" if meaning else "yes"), ("n", "no")]
    return [(str(level), meaning) for level, meaning in question.levels.items()]
