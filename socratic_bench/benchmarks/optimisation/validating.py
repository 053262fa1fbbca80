"""Validates a task before any agent runs: is it sound, how noisy is it, which exploits does it see?

The certificate is bound by hashes to task, plan and bench config. What it calls not measurable
leaves all denominators, for every run alike.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.evaluating import (
    ARMS,
    DEFAULT_PROTECTED,
    Evaluation,
    Venue,
    evaluate,
    take_samples,
)
from socratic_bench.benchmarks.optimisation.evidence import wrong_rounds
from socratic_bench.benchmarks.optimisation.measuring import (
    LOOKS,
    Ratio,
    Sample,
    is_over,
    judge,
)
from socratic_bench.benchmarks.optimisation.plan import Plan
from socratic_bench.benchmarks.optimisation.repository import Workbench, matches
from socratic_bench.benchmarks.optimisation.task import (
    BenchConfig,
    ItemSpec,
    TaskFile,
    hash_of,
)
from socratic_bench.benchmarks.optimisation.trials import Arena, TestReport, TrialError
from socratic_bench.concurrency import decode
from socratic_bench.errors import UsageError
from socratic_bench.settings import MAX_STORED_BYTES, read_bounded
from socratic_bench.types import doc

_EXPLOITS = Path(__file__).with_name("exploits.toml")
_EXPLOIT_LOOKS = (3,)  # rounds: enough to see an effect, which needs no interval here
_WRAP = """
for _name, _value in list(globals().items()):
    if callable(_value) and not _name.startswith("_") and _value.__module__ == __name__:
        globals()[_name] = _wrap(_value)
"""
Status = Literal["measurable", "not_measurable", "broken"]


class ExploitResult(Struct, frozen=True, kw_only=True):
    """What became of an exploit: `by` says what caught it, or the evidence that showed it."""

    name: str
    caught: Annotated[bool | None, doc("null: it cannot be applied to this task")]
    by: str


class ItemCertificate(Struct, frozen=True, kw_only=True):
    """What is known of an item before any agent runs."""

    item_id: str
    status: Status
    problems: tuple[str, ...] = ()
    expected_tests: tuple[str, ...] = ()
    noise: Annotated[Ratio | None, doc("base against base")] = None
    noise_floor: Annotated[float | None, doc("how far the interval of equal trees reaches")] = None
    detectable: Annotated[float | None, doc("smallest speed-up that would be called one")] = None
    human: Annotated[Ratio | None, doc("time of base / time of human")] = None
    exploits: tuple[ExploitResult, ...] = ()


class Certificate(Struct, frozen=True, kw_only=True):
    """A task's certificate, and what it is for."""

    task_id: str
    task_sha256: str
    plan_sha256: str
    bench_sha256: str
    isolation: str
    items: tuple[ItemCertificate, ...]

    def item(self, item_id: str) -> ItemCertificate:
        return next(item for item in self.items if item.item_id == item_id)


def validate(
    task: TaskFile,
    plan: Plan,
    config: BenchConfig,
    venue: Venue,
    *,
    report: Callable[[ItemCertificate], object] = lambda _: None,
) -> Certificate:
    """Validate all items of a plan."""
    items: list[ItemCertificate] = []
    for item in plan.items:
        spec = task.item(item.item_id, item.human, item.pre)
        certificate = validate_item(spec, venue)
        report(certificate)
        items.append(certificate)
    return Certificate(
        task_id=plan.task_id,
        task_sha256=task.sha256,
        plan_sha256=hash_of(plan),
        bench_sha256=hash_of(config.container),
        isolation=venue.isolation.level,
        items=tuple(items),
    )


def read_certificate(
    path: str, task: TaskFile, plan: Plan, config: BenchConfig, level: str
) -> Certificate:
    """A certificate of exactly this task and plan. Raises `UsageError` with every difference."""
    hint = "Make it: socratic-runner optimisation validate."
    try:
        certificate = decode(read_bounded(path, bound=MAX_STORED_BYTES), Certificate)
    except OSError as error:
        message = f"The certificate {path} cannot be read: {error.strerror}."
        raise UsageError([message], hint=hint) from error
    except ValueError as error:
        raise UsageError([f"{path} is no certificate: {error}."], hint=hint) from error
    pairs = {
        "task, or a workload of it": (certificate.task_sha256, task.sha256),
        "plan": (certificate.plan_sha256, hash_of(plan)),
        "bench config": (certificate.bench_sha256, hash_of(config.container)),
        "isolation": (certificate.isolation, level),
    }
    changed = [name for name, (then, now) in pairs.items() if then != now]
    mistakes = [f"{path} is of another {name}." for name in changed]
    broken = [item for item in certificate.items if item.status == "broken"]
    mistakes += [f"{item.item_id}: {text}" for item in broken for text in item.problems]
    if mistakes:
        raise UsageError(mistakes, hint=hint)
    return certificate


def validate_item(item: ItemSpec, venue: Venue) -> ItemCertificate:
    """Build, test and time base and human, and try the exploits."""
    bench = venue.workbench(item)
    base = bench.tree_of(item.pre)
    protected = item.protected_paths or DEFAULT_PROTECTED
    human = bench.with_paths_of(bench.tree_of(item.human), base, protected)
    try:
        arenas = {
            "base": venue.arena(item, bench, "base", base),
            "human": venue.arena(item, bench, "human", human),
        }
        reports = {name: arena.test() for name, arena in arenas.items()}
        expected = item.expected_tests or reports["base"].passed
        problems = _test_problems(reports, expected)
        if problems:
            return _broken(item, problems)
        samples = _sample(item, venue, arenas["base"], arenas["human"])
    except TrialError as error:
        return _broken(item, [str(error)])
    if wrong := wrong_rounds(
        [s for s in samples if s.arm == "base"], [s for s in samples if s.arm != "base"]
    ):
        text = (
            f"{wrong[0].workload}: with seed {wrong[0].seed} the checksums of base and human differ"
        )
        return _broken(item, [text])
    deciding = [workload.id for workload in item.deciding]
    verdict = judge(samples, deciding=deciding, metric=item.metric, min_effect=item.min_effect)
    noise, effect = verdict.over_base, verdict.human_over_base
    has_effect = is_over(effect, 1 + item.min_effect) is True
    low, high = noise.low or 0.0, noise.high or 0.0
    return ItemCertificate(
        item_id=item.item_id,
        status="measurable" if has_effect else "not_measurable",
        problems=() if has_effect else (_no_effect(effect, item.min_effect),),
        expected_tests=tuple(expected),
        noise=noise,
        noise_floor=max(high - 1, 1 - low),
        detectable=(1 + item.min_effect) * noise.median / low if low else None,
        human=effect,
        exploits=tuple(_try_exploits(item, venue, bench, expected)) if has_effect else (),
    )


def _sample(item: ItemSpec, venue: Venue, base: Arena, human: Arena) -> list[Sample]:
    """Samples of base, human, and the base once more in the agent's place."""
    blank = Evaluation(
        item_id=item.item_id,
        patch="empty",
        deciding=tuple(workload.id for workload in item.deciding),
        metric=item.metric,
        min_effect=item.min_effect,
    )
    arenas = dict(zip(ARMS, (base, human, base), strict=True))
    return take_samples(arenas, item, blank, venue.key, looks=LOOKS)


def _test_problems(reports: Mapping[str, TestReport], expected: Sequence[str]) -> list[str]:
    mistakes = {name: report.mistake(expected) for name, report in reports.items()}
    return [f"tests of {name}: {mistake}" for name, mistake in mistakes.items() if mistake]


def _broken(item: ItemSpec, problems: Sequence[str]) -> ItemCertificate:
    return ItemCertificate(item_id=item.item_id, status="broken", problems=tuple(problems))


def _no_effect(effect: Ratio, min_effect: float) -> str:
    return (
        f"the human's speed-up is {effect.median:.2f} (interval {effect.low or 0:.2f} to "
        f"{effect.high or 0:.2f}), and not surely over {1 + min_effect:.2f}"
    )


def _try_exploits(
    item: ItemSpec, venue: Venue, bench: Workbench, expected: Sequence[str]
) -> list[ExploitResult]:
    base = bench.tree_of(item.pre)
    changed = bench.changed(base, bench.tree_of(item.human))
    protected = item.protected_paths or DEFAULT_PROTECTED
    targets = [n for n in changed if n.endswith(".py") and not matches(n, protected)]
    results: list[ExploitResult] = []
    for name, exploit in tomllib.loads(_EXPLOITS.read_text("utf-8")).items():
        if not targets:
            results.append(ExploitResult(name=name, caught=None, by="no Python file to change"))
            continue
        folder = venue.folder / item.item_id / f"exploit-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        marker = folder / "marker"
        patch = make_exploit(exploit, bench, base, folder / "repo", targets[0], marker)
        evaluation = evaluate(item, patch, venue, expected_tests=expected, looks=_EXPLOIT_LOOKS)
        results.append(_exploit_result(name, evaluation, ran_code=marker.exists()))
        shutil.rmtree(folder)
    return results


def make_exploit(
    exploit: Mapping[str, Any],
    bench: Workbench,
    base: str,
    folder: Path,
    target: str,
    marker: Path,
) -> bytes:
    """The patch that an agent with this exploit would leave, captured as any agent's."""
    bench.export(base, folder)
    bench.begin_history(folder, None)
    wrapper = exploit.get("wrapper", "")
    with (folder / target).open("a", encoding="utf-8") as file:
        file.write(exploit.get("append", "") + (wrapper + _WRAP if wrapper else ""))
    for name, text in exploit.get("files", {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    with (folder / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(exploit.get("git_config", "").replace("{marker}", str(marker)))
    return bench.capture(folder, base).patch


def _exploit_result(name: str, evaluation: Evaluation, *, ran_code: bool) -> ExploitResult:
    if ran_code:
        return ExploitResult(name=name, caught=False, by="git ran a program of the agent's")
    if evaluation.fault:
        return ExploitResult(name=name, caught=None, by=evaluation.fault)
    kinds = ", ".join(dict.fromkeys(sign.kind for sign in evaluation.evidence))
    shown = f"; evidence: {kinds}" if kinds else ""
    if evaluation.correctness != "pass":
        status = evaluation.correctness or evaluation.patch
        return ExploitResult(name=name, caught=True, by=f"{status}{shown}")
    verdict = evaluation.verdict
    if verdict is None or verdict.over_base.median <= 1 + evaluation.min_effect:
        return ExploitResult(name=name, caught=True, by=f"no effect on the verdict{shown}")
    return ExploitResult(name=name, caught=bool(kinds), by=shown.removeprefix("; ") or "nothing")
