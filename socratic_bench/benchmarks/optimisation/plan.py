"""Plans: which commits of humans are items. They are made from a list of commits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct, ValidationError

from socratic_bench.benchmarks.optimisation.repository import Commit, Source
from socratic_bench.benchmarks.optimisation.task import Pair, TaskFile
from socratic_bench.concurrency import decode
from socratic_bench.errors import UsageError
from socratic_bench.settings import read_bounded

ITEM_ID = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,120}"  # it names folders
_SHORT = 8  # characters of a commit in an item's id
_PARENT = re.compile(r"parent=([1-9]\d?)")


class PlanItem(Struct, frozen=True, kw_only=True):
    """One item: a human's commit, and the one that the agent starts from."""

    item_id: str
    human: str
    pre: str = ""
    pre_parent_index: int = 1


class Plan(Struct, frozen=True, kw_only=True):
    """A plan file."""

    repo: str
    task_id: str
    items: tuple[PlanItem, ...]


def make_plan(task_file: TaskFile, source: Source, commits: str = "") -> Plan:
    """The plan of a file of commits, or else of the task's own. Raises `UsageError`."""
    task = task_file.task
    if commits:
        pairs = read_commits(commits)
    else:
        pairs = [(f"repo.pairs {n}", pair) for n, pair in enumerate(task.repo.all_pairs, start=1)]
    if not pairs:
        raise UsageError(
            ["There are no commits: make a plan of a list of them, or give repo.pairs in the task."]
        )
    items = [
        PlanItem(
            item_id=f"{task.id}_{number:03}_{pair.human[:_SHORT]}",
            human=pair.human,
            pre=pair.pre,
            pre_parent_index=pair.pre_parent_index,
        )
        for number, (_, pair) in enumerate(pairs)
    ]
    plan = Plan(repo=task.repo.url, task_id=task.id, items=tuple(items))
    return resolve(plan, source, [place for place, _ in pairs])


def resolve(plan: Plan, source: Source, places: Sequence[str] = ()) -> Plan:
    """The plan with whole ids of its commits. Raises `UsageError` with every mistake."""
    places = places or [item.item_id for item in plan.items]
    mistakes = [*_dirt(source)]
    resolved: list[PlanItem] = []
    for place, item in zip(places, plan.items, strict=True):
        human = source.find(item.human)
        if human is None:
            mistakes.append(f"{place}: there is no commit {item.human!r}.")
            continue
        pre = _find_pre(source, human, item)
        if isinstance(pre, str):
            mistakes.append(f"{place}: {pre}")
            continue
        prefix = item.item_id.removesuffix(item.human[:_SHORT])
        item_id = f"{prefix}{human.sha[:_SHORT]}" if prefix != item.item_id else item.item_id
        resolved.append(PlanItem(item_id=item_id, human=human.sha, pre=pre.sha,
                                 pre_parent_index=item.pre_parent_index))  # fmt: skip
    counts = Counter(item.human for item in resolved)
    mistakes += [f"The commit {sha} is there {n} times." for sha, n in counts.items() if n > 1]
    ids = Counter(item.item_id for item in resolved)
    mistakes += [f"The item {name!r} is there {n} times." for name, n in ids.items() if n > 1]
    mistakes += [
        f"The item_id {name!r} must be letters, digits, '_', '.' and '-'."
        for name in ids
        if not re.fullmatch(ITEM_ID, name)
    ]
    if not plan.items:
        mistakes.append("The plan has no items.")
    if mistakes:
        raise UsageError(mistakes)
    return Plan(repo=plan.repo, task_id=plan.task_id, items=tuple(resolved))


def read_plan(path: str) -> Plan:
    """A plan file. Raises `UsageError`."""
    try:
        return decode(read_bounded(path), Plan)
    except OSError as error:
        raise UsageError([f"{path} cannot be read: {error.strerror}."]) from error
    except (ValidationError, ValueError) as error:
        raise UsageError([f"{path} is no plan: {error}."]) from error


def read_commits(path: str) -> list[tuple[str, Pair]]:
    """The commits of a list, each with its place. Raises `UsageError` with every mistake."""
    try:
        lines = read_bounded(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError([f"{path} cannot be read: {error}."]) from error
    pairs: list[tuple[str, Pair]] = []
    mistakes: list[str] = []
    for number, line in enumerate(lines, start=1):
        place = f"{path}, line {number}"
        # `<sha> | date | subject`, as `git log` prints it, or `<human> [<pre> or parent=N]`
        words = line.partition("|")[0].split() if "|" in line else line.partition("#")[0].split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 2:  # noqa: PLR2004
            mistakes.append(f"{place}: expected HUMAN [PRE or parent=N], not {line.strip()!r}.")
            continue
        human, pre = words[0], words[1] if words[1:] else ""
        parent = _PARENT.fullmatch(pre)
        index = int(parent[1]) if parent else 1
        pairs.append((place, Pair(human=human, pre="" if parent else pre, pre_parent_index=index)))
    if mistakes:
        raise UsageError(mistakes)
    return pairs


def _find_pre(source: Source, human: Commit, item: PlanItem) -> Commit | str:
    """The commit before the human's, or why there is none."""
    if item.pre:
        return source.find(item.pre) or f"there is no commit {item.pre!r}."
    if item.pre_parent_index > len(human.parents):
        return f"{human.sha} has {len(human.parents)} parents, and no {item.pre_parent_index}."
    name = human.parents[item.pre_parent_index - 1]
    return source.find(name) or f"the parent {name} is not in the repository (a shallow clone?)."


def _dirt(source: Source) -> Iterator[str]:
    if files := source.dirty_files():
        shown = ", ".join(files[:5]) + (" ..." if files[5:] else "")
        yield f"The source repository has changes that are not committed: {shown}."
