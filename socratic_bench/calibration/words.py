"""The words of turns of stored runs, for labels that name only the turn."""

from collections.abc import Sequence

from msgspec.structs import replace

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.calibration.judged_runs import JudgedRun
from socratic_bench.documents.label import Label, SaidBefore


def words_of(run: JudgedRun, turn: int) -> tuple[tuple[SaidBefore, ...], str, str]:
    """What was said before, what is answered, and the reply."""
    key = load_benchmark(run.benchmark).parts.prompt_key
    entries = run.document["turns"]
    place = next(n for n, one in enumerate(run.turns) if one.turn == turn)
    said = [(str(entry.get(key, "")), str(entry["question"])) for entry in entries[: place + 1]]
    *before, (prompt, reply) = said
    history = tuple(
        line
        for asked, answered in before
        for line in (
            SaidBefore(role="user", text=asked),
            SaidBefore(role="assistant", text=answered),
        )
    )
    return history, prompt, reply


def with_words(labels: Sequence[Label], runs: Sequence[JudgedRun]) -> list[Label]:
    """Labels that lack the words get those of their turn, where it is of one of the runs."""
    known = {run.run_id: run for run in runs}
    return [_with_words(label, known.get(label.run_id or "")) for label in labels]


def _with_words(label: Label, run: JudgedRun | None) -> Label:
    if label.reply is not None or run is None or label.turn is None:
        return label
    if all(one.turn != label.turn for one in run.turns):
        return label
    history, prompt, reply = words_of(run, label.turn)
    author = label.author or run.model
    return replace(label, history=history, prompt=prompt, reply=reply, author=author)
