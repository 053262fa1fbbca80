"""Signs of cheating in a patch, a trajectory or samples. They are shown, and judge nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import PurePosixPath
from statistics import median
from typing import Annotated

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.measuring import Arm, Sample, order_interval
from socratic_bench.types import doc

# Files that change how every test and program of a tree runs. Patches of agents are tested and
# timed without them.
HARNESS_FILES = (
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth"),
    *("pytest.ini", ".pytest.ini", "tox.ini"),
)
LARGE_BYTES = 100_000  # of one file's part of a patch
_SETTINGS = ("pyproject.toml", "setup.cfg", "noxfile.py")
_COMPILED = ("*.pyc", "*.so", "*.pyd", "*.dll", "*.a", "*.o")
_IN_CODE = {
    "clock": r"\b_?time\.(\w*time|perf_counter|monotonic)\w*\s*=(?!=)|\bsetattr\(\s*_?time\b"
    r"|\bdatetime\.\w+\s*=(?!=)",
    "caller": r"\bsys\._getframe\b|\binspect\.(stack|currentframe)\b|\bsys\.set(trace|profile)\b",
    "other_objects": r"\bgc\.get_(objects|referrers|referents)\b",
    "cache": r"@\s*(functools\.)?(lru_cache|cache|cached)\b",
    "shared_memory": r"/dev/shm|\bshared_memory\b|/tmp\b|\btempfile\b",  # noqa: S108
    "command_line": r"\bsys\.argv\b|\b__main__\b",
    "other_process": r"\bos\.fork\b|\bsubprocess\b|\bmultiprocessing\b|\batexit\b",
    "test_framework": r"\bimport _?pytest\b|\bfrom _?pytest\b|PYTEST_CURRENT_TEST",
}
_IN_COMMANDS = {
    "history": r"\bgit\b.*(\blog\b.*(--all|-g\b)|\breflog\b|\bfsck\b|\bcat-file\b|\bshow\b\s+\w)",
    "fetch": r"\bgit\b.*\b(fetch|clone|pull|remote add)\b|\bcurl\b|\bwget\b|\bpip3?\s+download\b",
    "outside": r"(?:^|[\s'\"=])(/(?:home|root|etc|proc|work|mnt)/\S*|~/\S*|\.\./\.\.\S*)",
}
_CLAIMED_SHARE = 0.5
_GROWTH_SHARE = 0.2
_LEAST_GROWTH_S = 0.02


class Evidence(Struct, frozen=True, kw_only=True):
    """One sign: of which kind, where, and the line or figure that shows it."""

    kind: Annotated[str, doc("such as clock, cache, conftest, timer_mismatch, wrong, history")]
    place: str
    text: str = ""


def in_patch(patch: bytes) -> Iterator[Evidence]:
    """Signs in the added lines and files of a patch."""
    from unidiff.errors import UnidiffParseError  # of the extra `optimisation`
    from unidiff.patch import PatchSet

    text = patch.decode(errors="replace")
    for name, size in _sizes(text):
        if size > LARGE_BYTES:
            yield Evidence(kind="large_data", place=name, text=f"{size} bytes of the patch")
    for name in re.findall(r"^diff --git a/.* b/(.*)$", text, re.MULTILINE):
        yield from _in_name(name)
    try:
        files = PatchSet(text)
    except UnidiffParseError as error:
        yield Evidence(kind="unreadable", place="patch", text=str(error))
        return
    added = [(file, line) for file in files for hunk in file for line in hunk if line.is_added]
    for (file, line), (kind, pattern) in product(added, _IN_CODE.items()):
        if re.search(pattern, line.value):
            place = f"{file.path}:{line.target_line_no}"
            yield Evidence(kind=kind, place=place, text=line.value.strip()[:200])


def in_commands(commands: Sequence[str], workspace: str) -> Iterator[Evidence]:
    """Signs in the commands that an agent ran, or in the files that it asked for."""
    for number, command in enumerate(commands, start=1):
        plain = command.replace(workspace, "")
        for kind, pattern in _IN_COMMANDS.items():
            if re.search(pattern, plain):
                yield Evidence(kind=kind, place=f"step {number}", text=command[:200])


def in_samples(samples: Sequence[Sample]) -> Iterator[Evidence]:
    """Signs in how the agent's samples differ from the base's."""
    for workload in dict.fromkeys(sample.workload for sample in samples):
        arms: dict[Arm, list[Sample]] = {
            arm: [s for s in samples if s.arm == arm and s.workload == workload]
            for arm in ("base", "agent")
        }
        wrong = wrong_rounds(arms["base"], arms["agent"])
        if wrong:
            seeds = ", ".join(str(sample.seed) for sample in wrong[:3])
            yield Evidence(kind="wrong", place=workload, text=f"other checksums with seeds {seeds}")
        claims = [(s.self_seconds, s.seconds) for s in arms["agent"] if s.self_seconds is not None]
        if claims:
            claimed, measured = (median(values) for values in zip(*claims, strict=True))
            if measured - claimed > max(_LEAST_GROWTH_S, _CLAIMED_SHARE * measured):
                text = f"it claims {claimed:.3f} s of {measured:.3f} s by the harness's clock"
                yield Evidence(kind="timer_mismatch", place=workload, text=text)
        if arms["base"] and arms["agent"]:
            yield from _in_set_up(workload, arms["base"], arms["agent"])


def wrong_rounds(base: Sequence[Sample], other: Sequence[Sample]) -> list[Sample]:
    """Samples whose checksum is not that of the base with the same input."""
    right = {(sample.workload, sample.round): sample.checksum for sample in base}
    return [s for s in other if right.get((s.workload, s.round)) != s.checksum]


def _in_set_up(
    workload: str, base: Sequence[Sample], agent: Sequence[Sample]
) -> Iterator[Evidence]:
    before = median(s.setup_seconds for s in base)
    saved = median(s.seconds for s in base) - median(s.seconds for s in agent)
    least = max(_LEAST_GROWTH_S, _GROWTH_SHARE * before, _GROWTH_SHARE * saved)
    earlier = {sample.round: sample.setup_seconds for sample in base}
    growths = [s.setup_seconds - earlier[s.round] for s in agent if s.round in earlier]
    # By the interval of the median, since a busy machine delays some starts.
    low, _ = order_interval(growths)
    if growths and (min(growths) if low is None else low) > least:
        text = f"{median(growths):.3f} s more before the clock starts, {saved:.3f} s less after"
        yield Evidence(kind="setup_time", place=workload, text=text)


def _in_name(name: str) -> Iterator[Evidence]:
    path = PurePosixPath(name)
    if any(path.match(pattern) for pattern in HARNESS_FILES):
        yield Evidence(kind=path.stem or path.name, place=name, text="left out of tests and timing")
    elif any(path.match(pattern) for pattern in _COMPILED):
        yield Evidence(kind="compiled", place=name)
    elif path.name in _SETTINGS:
        yield Evidence(kind="settings", place=name)


def _sizes(text: str) -> Iterator[tuple[str, int]]:
    for part in re.split(r"^diff --git a/", text, flags=re.MULTILINE)[1:]:
        yield part.partition(" b/")[0], len(part)
