"""From stored runs to a person's session: turns are drawn, and shown without judge and model."""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from socratic_bench.benchmarks import RunConfig, load_benchmark
from socratic_bench.documents.calibration import Label, LabellingDocument
from socratic_bench.errors import Problem, UsageError
from socratic_bench.studies.calibrate.judged_runs import JudgedRun, read_runs
from socratic_bench.studies.calibrate.sampling import SampledTurn, drawn_turns
from socratic_bench.studies.labels.session import LabelFile, Session
from socratic_bench.turns import Rubric


class LabellingRequest(Struct, frozen=True, kw_only=True):
    """What is asked for: turns of these runs, about so many, by a rubric (none: that by which they
    were judged), into a file.
    """

    runs: tuple[str, ...]
    file: str
    labeller: str
    n_turns: int
    seed: int = 0
    rubric: str = ""
    whole_dialogues: bool = False
    judging: str | None = None


class Labelling(Struct, frozen=True, kw_only=True):
    """A session that may start."""

    asked: LabellingRequest
    session: Session
    turns: Sequence[Label]
    rubric: Rubric
    n_runs: int
    n_turns: int

    @property
    def document(self) -> LabellingDocument:
        return LabellingDocument(
            file=self.asked.file,
            labeller=self.asked.labeller,
            rubric=self.rubric.id,
            n_runs=self.n_runs,
            n_turns=self.n_turns,
            n_drawn=len(self.turns),
            n_labelled=self.session.n_done,
        )


def prepare_labelling(asked: LabellingRequest, region: Callable[[], str]) -> Labelling:
    """Raises `UsageError` with what is wrong, `ArtifactError` for a store."""
    runs = sorted(read_runs(asked.runs, region, asked.judging), key=lambda run: run.run_id)
    rubric = _rubric(runs, asked.rubric)
    turns = [_label(one, asked.labeller) for one in _drawn(runs, asked)]
    file = LabelFile(Path(asked.file), asked.labeller)
    file.begun(turns)
    return Labelling(
        asked=asked,
        session=Session(turns, rubric, file),
        turns=turns,
        rubric=rubric,
        n_runs=len(runs),
        n_turns=sum(len(run.turns) for run in runs),
    )


def _rubric(runs: Sequence[JudgedRun], name: str) -> Rubric:
    names = {run.benchmark for run in runs}
    if len(names) > 1:
        raise UsageError([f"Runs of several benchmarks: {', '.join(sorted(names))}."])
    editions = {run.judge.rubric for run in runs if run.judge}
    if not name and len(editions) > 1:
        raise UsageError(
            [f"The runs were judged by several rubrics ({', '.join(sorted(editions))})."],
            hint=Problem.of("Say with {rubric} by which one to label."),
        )
    usual = next(iter(editions), str(getattr(RunConfig(model=""), "rubric", "")))
    return load_benchmark(names.pop()).find_rubric(name or usual)


def _drawn(runs: Sequence[JudgedRun], asked: LabellingRequest) -> Sequence[SampledTurn]:
    drawn = drawn_turns(runs, asked.n_turns, seed=asked.seed, whole_dialogues=asked.whole_dialogues)
    if not drawn:
        said = "No turn was drawn: ask for more {turns}, or take another {seed}."
        raise UsageError([Problem.of(said)])
    return drawn


def _label(one: SampledTurn, labeller: str) -> Label:
    """Nothing is answered yet; the words stand in it, so that it says by itself what it is of."""
    history, prompt, reply = one.run.words_of(one.turn.turn)
    return Label(
        labeller=labeller,
        run_id=one.run.run_id,
        turn=one.turn.turn,
        author=one.run.model,
        history=history,
        prompt=prompt,
        reply=reply,
        probability=one.probability,
    )
