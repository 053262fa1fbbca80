"""Which parts of a patch matter: the patch is evaluated without each of its hunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.evaluating import Venue, evaluate
from socratic_bench.benchmarks.optimisation.measuring import Ratio
from socratic_bench.benchmarks.optimisation.outcomes import Correctness, PatchStatus
from socratic_bench.benchmarks.optimisation.task import ItemSpec
from socratic_bench.types import doc


class HunkResult(Struct, frozen=True, kw_only=True):
    """A patch without one hunk, against the whole patch."""

    file: str
    hunk: Annotated[int, doc("its number in the file, from 1")]
    patch: PatchStatus
    correctness: Correctness | None
    speed: Annotated[Ratio | None, doc("time with all hunks / time without this one")]
    matters: Annotated[
        bool | None, doc("without it, the patch is wrong or slower; null: undecided")
    ]


def ablate(
    item: ItemSpec, patch: bytes, venue: Venue, *, expected_tests: Sequence[str]
) -> list[HunkResult]:
    """Evaluate a patch without each of its hunks."""
    results: list[HunkResult] = []
    for file, number, rest in without_each_hunk(patch):
        evaluation = evaluate(item, rest, venue, expected_tests=expected_tests, reference=patch)
        verdict = evaluation.verdict
        is_wrong = evaluation.correctness not in ("pass", None)
        slower = {"worse": True, "inconclusive": None}
        is_slower = slower.get(verdict.performance, False) if verdict else None
        results.append(
            HunkResult(
                file=file,
                hunk=number,
                patch=evaluation.patch,
                correctness=evaluation.correctness,
                speed=verdict.over_human if verdict else None,
                matters=True if is_wrong or evaluation.patch != "patched" else is_slower,
            )
        )
    return results


def without_each_hunk(patch: bytes) -> Iterator[tuple[str, int, bytes]]:
    """For each hunk of text its file, its number there, and the patch without it."""
    lines = patch.splitlines(keepends=True)
    starts = [n for n, line in enumerate(lines) if line.startswith((b"diff --git ", b"@@ "))]
    for position, start in enumerate(starts):
        if not lines[start].startswith(b"@@ "):
            continue
        heads = [n for n in starts[:position] if lines[n].startswith(b"diff --git ")]
        head = heads[-1]
        end = starts[position + 1] if position + 1 < len(starts) else len(lines)
        of_file = [n for n in starts if n > head and n < _file_end(lines, head)]
        # A file without hunks would be a header alone, which git refuses.
        first, last = (head, _file_end(lines, head)) if len(of_file) == 1 else (start, end)
        name = lines[head].decode(errors="replace").strip().rpartition(" b/")[2]
        yield name, of_file.index(start) + 1, b"".join([*lines[:first], *lines[last:]])


def _file_end(lines: Sequence[bytes], head: int) -> int:
    later = (n for n in range(head + 1, len(lines)) if lines[n].startswith(b"diff --git "))
    return next(later, len(lines))
