"""Evaluates a patch of one item: applies it strictly, tests it, times it beside base and human."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.optimisation import evidence as signs
from socratic_bench.benchmarks.optimisation.evidence import HARNESS_FILES, Evidence
from socratic_bench.benchmarks.optimisation.isolation import Isolation
from socratic_bench.benchmarks.optimisation.measuring import (
    LOOKS,
    Arm,
    Sample,
    Verdict,
    is_decided,
    judge,
    measure,
)
from socratic_bench.benchmarks.optimisation.outcomes import Correctness, PatchStatus
from socratic_bench.benchmarks.optimisation.repository import (
    PatchRefusedError,
    Source,
    Workbench,
    matches,
)
from socratic_bench.benchmarks.optimisation.task import ItemSpec, hash_of
from socratic_bench.benchmarks.optimisation.trials import Arena, TestReport, TrialError
from socratic_bench.types import doc

ARMS: tuple[Arm, ...] = ("base", "human", "agent")
DEFAULT_PROTECTED = ("tests", "test", "test_*.py", "*_test.py")


class Evaluation(Struct, frozen=True, kw_only=True):
    """What became of a patch, with all samples, so that verdicts can be computed again."""

    item_id: str
    patch: PatchStatus
    patch_reason: Annotated[str, doc("the rule by which it was refused, and why")] = ""
    correctness: Annotated[Correctness | None, doc("null: nothing was tested")] = None
    correctness_reason: str = ""
    verdict: Annotated[Verdict | None, doc("null: nothing was measured")] = None
    tests: TestReport | None = None
    evidence: tuple[Evidence, ...] = ()
    samples: tuple[Sample, ...] = ()
    deciding: Annotated[tuple[str, ...], doc("the workloads that decide")] = ()
    metric: str = "seconds"
    min_effect: float = 0.0
    isolation: str = ""
    fault: Annotated[str, doc("why base or human failed, which is no fault of the patch")] = ""


class _ArmError(TrialError):
    def __init__(self, arm: Arm, message: str) -> None:
        super().__init__(message)
        self.arm = arm


class Venue(Struct, frozen=True, kw_only=True):
    """Where items are evaluated: `folder` has a folder for each item, hidden from its commands.

    `key` makes the inputs of samples; whoever knows it can make them, too. `check` raises what ends
    the run.
    """

    source: Source
    isolation: Isolation
    folder: Path
    key: str
    check: Callable[[], None] = lambda: None

    def workbench(self, item: ItemSpec) -> Workbench:
        place = self.folder / item.item_id
        place.mkdir(parents=True, exist_ok=True)
        return Workbench(place / "evaluation.git", self.source.git_dir)

    def arena(self, item: ItemSpec, bench: Workbench, arm: Arm, tree: str) -> Arena:
        """A tree, exported and set up in a workspace of its own; that of base and human is used
        again. Raises `TrialError`.
        """
        workspace = self.folder / item.item_id / f"{arm}-{tree[:16]}"
        arena = Arena(workspace=workspace, isolation=self.isolation, item=item, check=self.check)
        mark = workspace.with_suffix(".ready")
        setup = hash_of((item.setup_cmds, self.isolation.level, self.isolation.environment))
        if arm != "agent" and mark.exists() and mark.read_text("ascii") == setup:
            arena.place_workloads()  # the task's files may be others than last time
            return arena
        mark.unlink(missing_ok=True)
        shutil.rmtree(workspace, ignore_errors=True)
        bench.export(tree, workspace / "repo")
        bench.begin_history(workspace / "repo", self.source.version_tag(item.pre))
        arena.set_up()
        arena.place_workloads()
        mark.write_text(setup, encoding="ascii")
        return arena

    def discard(self, arena: Arena) -> None:
        arena.workspace.with_suffix(".ready").unlink(missing_ok=True)
        shutil.rmtree(arena.workspace, ignore_errors=True)


def evaluate(
    item: ItemSpec,
    patch: bytes,
    venue: Venue,
    *,
    expected_tests: Sequence[str],
    looks: Sequence[int] = LOOKS,
    reference: bytes | None = None,
) -> Evaluation:
    """Evaluate a patch against the base and the human's commit, or a reference patch instead."""
    bench = venue.workbench(item)
    base = bench.tree_of(item.pre)
    blank = Evaluation(
        item_id=item.item_id,
        patch="patched",
        evidence=tuple(signs.in_patch(patch)),
        deciding=tuple(workload.id for workload in item.deciding),
        metric=item.metric,
        min_effect=item.min_effect,
        isolation=venue.isolation.level,
    )
    if not patch.strip() and reference is None:
        return replace(blank, patch="empty")
    try:
        tree = bench.apply(base, patch)
    except PatchRefusedError as error:
        reason = f"{error.name}: {error}"
        return replace(blank, patch="does_not_apply", patch_reason=reason)
    changed = bench.changed(base, tree)
    outside = [name for name in changed if not matches(name, item.target_files)]
    if item.strict_targets and outside:
        return replace(blank, patch="target_violation", patch_reason=", ".join(outside[:5]))
    protected = item.protected_paths or DEFAULT_PROTECTED
    if touched := [name for name in changed if matches(name, protected)]:
        reason = f"it changes {', '.join(touched[:5])}"
        return replace(blank, correctness="tampered", correctness_reason=reason)
    human = bench.tree_of(item.human) if reference is None else bench.apply(base, reference)
    trees: Mapping[Arm, str] = {
        "base": base,
        "human": bench.with_paths_of(human, base, protected),
        "agent": bench.with_paths_of(tree, base, HARNESS_FILES),
    }
    try:
        return _race(blank, item, venue, bench, trees, expected_tests=expected_tests, looks=looks)
    except TrialError as error:
        return replace(blank, fault=str(error))


def regrade(evaluation: Evaluation) -> Evaluation:
    """The evaluation with its verdict computed again from its samples; nothing is run."""
    if evaluation.verdict is None:
        return evaluation
    return replace(evaluation, verdict=_judge(evaluation, evaluation.samples))


def _race(  # noqa: PLR0913 -- the arms, and what they are tested and timed by
    blank: Evaluation,
    item: ItemSpec,
    venue: Venue,
    bench: Workbench,
    trees: Mapping[Arm, str],
    *,
    expected_tests: Sequence[str],
    looks: Sequence[int],
) -> Evaluation:
    """Test the agent's tree and time all three. Raises `TrialError` if base or human fail."""
    arenas: dict[Arm, Arena] = {}
    for arm in ("base", "human"):
        arenas[arm] = venue.arena(item, bench, arm, trees[arm])
    try:
        arenas["agent"] = venue.arena(item, bench, "agent", trees["agent"])
    except TrialError as error:
        return replace(blank, correctness="build_fail", correctness_reason=str(error))
    tests = arenas["agent"].test()
    try:
        if mistake := tests.mistake(expected_tests):
            return replace(blank, correctness="fail", correctness_reason=mistake, tests=tests)
        samples = take_samples(arenas, item, blank, venue.key, looks=looks)
    except _ArmError as error:
        if error.arm != "agent":
            raise TrialError(f"{error.arm}: {error}") from error
        return replace(blank, correctness="fail", correctness_reason=str(error), tests=tests)
    finally:
        venue.discard(arenas["agent"])
    found = (*blank.evidence, *signs.in_samples(samples))
    wrong = signs.wrong_rounds(
        [s for s in samples if s.arm == "base"], [s for s in samples if s.arm == "agent"]
    )
    return replace(
        blank,
        correctness="fail" if wrong else "pass",
        correctness_reason=f"other results than the base: {wrong[0].workload}" if wrong else "",
        verdict=_judge(blank, samples),
        tests=tests,
        evidence=found,
        samples=tuple(samples),
    )


def take_samples(
    arenas: Mapping[Arm, Arena],
    item: ItemSpec,
    evaluation: Evaluation,
    key: str,
    *,
    looks: Sequence[int] = LOOKS,
) -> list[Sample]:
    """Interleaved samples of all arms, until they decide or the looks are used up."""
    workloads = {workload.id: workload for workload in item.workloads}

    def take(arm: Arm, workload: str, number: int, seed: int) -> Sample:
        try:
            return arenas[arm].sample(arm, workloads[workload], number, seed)
        except TrialError as error:
            raise _ArmError(arm, str(error)) from error

    def decides(samples: Sequence[Sample]) -> bool:
        return is_decided(_judge(evaluation, samples))

    key = f"{key}/{item.item_id}"
    return measure(ARMS, list(workloads), take, decides, key=key, looks=looks)


def _judge(evaluation: Evaluation, samples: Sequence[Sample]) -> Verdict:
    return judge(
        samples,
        deciding=evaluation.deciding,
        metric=evaluation.metric,
        min_effect=evaluation.min_effect,
    )
