"""What the steps of `socratic-runner optimisation` do and print beside runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from socratic_bench.benchmarks.optimisation.ablating import HunkResult, ablate
from socratic_bench.benchmarks.optimisation.evaluating import DEFAULT_PROTECTED
from socratic_bench.benchmarks.optimisation.loading import load_items, load_task
from socratic_bench.benchmarks.optimisation.plan import PlanItem, make_plan
from socratic_bench.benchmarks.optimisation.preparing import folder_of
from socratic_bench.benchmarks.optimisation.settings import Settings
from socratic_bench.benchmarks.optimisation.trials import TrialError
from socratic_bench.benchmarks.optimisation.validating import ItemCertificate, validate
from socratic_bench.documents.document import Document, Sha256
from socratic_bench.errors import UsageError
from socratic_bench.types import doc


class PlanDocument(Document, frozen=True, kw_only=True):
    """A plan: the commits of humans, and those before them (`optimisation plan`)."""

    kind: Literal["optimisation_plan"] = "optimisation_plan"
    repo: Annotated[str, doc("path or URL of the repository")]
    task_id: Annotated[str, doc("id of the task")]
    items: Annotated[list[PlanItem], doc("items, with whole ids of commits")]


class CertificateDocument(Document, frozen=True, kw_only=True):
    """What is known of a task before any agent runs (`optimisation validate`)."""

    kind: Literal["optimisation_certificate"] = "optimisation_certificate"
    task_id: Annotated[str, doc("id of the task")]
    task_sha256: Annotated[Sha256, doc("of the task file and its workloads")]
    plan_sha256: Annotated[Sha256, doc("of the plan")]
    bench_sha256: Annotated[Sha256, doc("of how commands are run")]
    isolation: Annotated[str, doc("how commands were kept apart")]
    items: Annotated[list[ItemCertificate], doc("items, in the order of the plan")]

    @property
    def n_measurable(self) -> int:
        return sum(item.status == "measurable" for item in self.items)


class Ablation(Struct, frozen=True, kw_only=True):
    """What each hunk of a patch contributes."""

    item_id: Annotated[str, doc("id of the item")]
    whose: Annotated[Literal["agent", "human"], doc("whose patch it is")]
    hunks: Annotated[list[HunkResult], doc("the patch without each of its hunks")]
    message: Annotated[str | None, doc("why there are none; null: there are")] = None


class AblationDocument(Document, frozen=True, kw_only=True):
    """Which hunks of patches matter (`optimisation ablate`)."""

    kind: Literal["optimisation_ablation"] = "optimisation_ablation"
    run_id: Annotated[str, doc("id of the run")]
    patches: Annotated[list[Ablation], doc("the agent's and the human's, by item")]


DOCUMENTS: Mapping[str, type[Struct]] = {
    "optimisation_plan": PlanDocument,
    "optimisation_certificate": CertificateDocument,
    "optimisation_ablation": AblationDocument,
}


def plan_task(settings: Settings, commits: str | None) -> PlanDocument:
    """The plan of a list of commits, or of the task's own. Raises `UsageError`."""
    loaded = load_task(settings, has_plan=False)
    plan = make_plan(loaded.task, loaded.source, commits or "")
    return PlanDocument(repo=plan.repo, task_id=plan.task_id, items=[*plan.items])


def validate_task(
    settings: Settings, report: Callable[[ItemCertificate], object]
) -> CertificateDocument:
    """Validate all items; each is reported as it is done. Raises `UsageError`."""
    loaded = load_task(settings)
    venue = loaded.venue(loaded.folder / "validation")
    certificate = validate(loaded.task, loaded.plan, loaded.config, venue, report=report)
    return CertificateDocument(**asdict(certificate) | {"items": [*certificate.items]})


def ablate_run(settings: Settings, run_id: str) -> AblationDocument:
    """Leave out each hunk of the patches of a run that lies in the work folder."""
    loaded = load_items(replace(settings, prepare_only=False))
    folder = loaded.folder / run_id
    if not folder.is_dir():
        raise UsageError([f"There is no run {run_id} in {loaded.folder}."])
    venue = loaded.venue(folder / "ablation")
    patches: list[Ablation] = []
    for index, item in enumerate(loaded.items):
        patch = folder_of(folder, index).read("model_patch.diff")
        bench = venue.workbench(item.spec)
        pre = bench.tree_of(item.spec.pre)
        protected = item.spec.protected_paths or DEFAULT_PROTECTED
        # Humans change tests, too, which is no part of what makes code faster.
        human = bench.with_paths_of(bench.tree_of(item.spec.human), pre, protected)
        both: tuple[tuple[Literal["agent", "human"], bytes | None], ...] = (
            ("agent", patch),
            ("human", bench.diff(pre, human)),
        )
        for whose, content in both:
            hunks: list[HunkResult] = []
            message = None if content else "There is no patch."
            try:
                if content:
                    hunks = ablate(item.spec, content, venue, expected_tests=item.expected_tests)
            except TrialError as error:
                message = f"{error}."
            patches.append(
                Ablation(item_id=item.spec.item_id, whose=whose, hunks=hunks, message=message)
            )
    return AblationDocument(run_id=run_id, patches=patches)


def write_file(document: Document, path: str) -> None:
    """Write a document where later steps read it. Raises `UsageError`."""
    try:
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1))
    except OSError as error:
        raise UsageError([f"{path} cannot be written: {error.strerror}."]) from error
