"""Runs what an item is measured by: its set-up, its tests, and timed samples of its workloads."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Annotated
from xml.etree import ElementTree as ET

from msgspec import Struct

from socratic_bench.benchmarks.optimisation.isolation import CommandResult, Isolation
from socratic_bench.benchmarks.optimisation.measuring import Arm, Sample
from socratic_bench.benchmarks.optimisation.task import ItemSpec, Workload
from socratic_bench.settings import MAX_STORED_BYTES, read_bounded
from socratic_bench.types import doc

_SHOWN_CHARS = 2000  # of a command's output, at its end
_MAX_LINE_BYTES = 10_000
_DONE = re.compile(r"done (\S+)(?: seconds=(\S+))?(?: operations=(\d+))?")


class TrialError(Exception):
    """A set-up command or a workload failed; the message says which and how."""


class TestReport(Struct, frozen=True, kw_only=True):
    """What the tests said, by their JUnit file."""

    __test__ = False  # pytest: this is no class of tests

    exit_code: int
    passed: tuple[str, ...]
    failed: Annotated[tuple[str, ...], doc("failed, in error, or skipped")] = ()
    message: str = ""

    def mistake(self, expected: Sequence[str]) -> str | None:
        """Why the tests do not count as passed; `None` if exactly the expected ones passed."""
        want, have = {normal_id(name) for name in expected}, set(self.passed)
        if self.failed:
            return f"not passed: {_some(self.failed)}"
        if self.exit_code != 0:
            return self.message
        if missing := want - have:
            return f"expected, but not run: {_some(sorted(missing))}"
        if extra := have - want:
            return f"run, but not expected: {_some(sorted(extra))}"
        return None if want else "no tests were run"


class Arena(Struct, frozen=True, kw_only=True):
    """A workspace with one exported tree, in which an item's commands run."""

    workspace: Path
    isolation: Isolation
    item: ItemSpec
    check: Callable[[], None] = lambda: None  # raises what ends the run

    def place_workloads(self) -> None:
        """Copy the files of all workloads beside the tree. Set-up commands run code of the tree,
        which must not have changed them.
        """
        folder = self.workspace / "task"
        _remove(folder)
        for workload in self.item.workloads:
            for name in workload.files:
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(self.item.folder) / name, target)

    def set_up(self) -> None:
        """Run the set-up commands. Raises `TrialError`."""
        for command in self.item.setup_cmds:
            result = self._run(command)
            if result.exit_code != 0 or result.stopped:
                raise TrialError(f"{command}: {_ending(result)}")

    def test(self) -> TestReport:
        """Run the tests; only their JUnit file says which ones passed. Whatever they, or the code
        that they test, have written is undone.
        """
        before = self.workspace.with_suffix(".before")
        _remove(before)
        subprocess.run(  # noqa: S603 -- it copies pipes and links as they are
            ["cp", "-a", str(self.workspace), str(before)],  # noqa: S607
            check=True,
        )
        try:
            return self._test()
        finally:
            _remove(self.workspace)
            before.rename(self.workspace)

    def _test(self) -> TestReport:
        folder = self.workspace / "out"
        _remove(folder)
        folder.mkdir()
        junit = folder / "junit.xml"
        result = self._run(self.item.test_cmd.replace("{junit}", shlex.quote(str(junit))))
        message = _ending(result)
        try:
            passed, failed = _read_junit(junit)
        except (OSError, ET.ParseError) as error:
            code = result.exit_code or 1
            return TestReport(exit_code=code, passed=(), message=f"{message}; no JUnit: {error}")
        return TestReport(exit_code=result.exit_code, passed=passed, failed=failed, message=message)

    def sample(self, arm: Arm, workload: Workload, number: int, seed: int) -> Sample:
        """One run of a workload in a process of its own. Raises `TrialError`."""
        self.check()
        values = {"seed": str(seed), "size": str(workload.size), "task": f"{self.workspace}/task"}
        command = re.sub(r"\{(\w+)\}", lambda match: shlex.quote(values[match[1]]),
                         workload.command)  # fmt: skip
        start = time.perf_counter()
        with (
            tempfile.TemporaryFile() as errors,
            self.isolation.start(
                command, self.workspace, writable=False, stdin=subprocess.PIPE, stderr=errors
            ) as process,
        ):
            read = partial(_read_line, process, errors, start + self.item.timeout_s)
            if (line := read()) != "ready":
                raise _unexpected(workload, line, "ready")
            ready = time.perf_counter()
            if process.stdin is None:
                raise TrialError(f"{workload.id}: it has no standard input")
            process.stdin.write(b"go\n")
            process.stdin.flush()
            line = read()
            end = time.perf_counter()
        done = _DONE.fullmatch(line)
        if not done:
            raise _unexpected(workload, line, "done CHECKSUM")
        _, claimed, operations = done.groups()
        if self.item.metric == "operations" and operations is None:
            raise _unexpected(workload, line, "done CHECKSUM operations=N")
        return Sample(
            arm=arm,
            workload=workload.id,
            round=number,
            seed=seed,
            seconds=end - ready,
            setup_seconds=ready - start,
            checksum=done[1],
            operations=int(operations) if operations else None,
            self_seconds=_to_number(claimed),
        )

    def _run(self, command: str) -> CommandResult:
        return self.isolation.run(
            command, self.workspace, timeout_s=self.item.timeout_s, should_stop=self.check
        )


def normal_id(name: str) -> str:
    """A test's id as JUnit has it, `tests.test_a.TestB::test_c`, also of pytest's own form."""
    *places, test = name.split("::")
    return "::".join((".".join(p.removesuffix(".py").replace("/", ".") for p in places), test))


def _read_junit(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    passed: list[str] = []
    failed: list[str] = []
    root = ET.fromstring(read_bounded(path, bound=MAX_STORED_BYTES))  # noqa: S314 -- expat is bounded
    for case in root.iter("testcase"):
        name = normal_id(f"{case.get('classname', '')}::{case.get('name', '')}")
        is_bad = any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))
        (failed if is_bad else passed).append(name)
    return tuple(passed), tuple(failed)


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def _read_line(process: subprocess.Popen[bytes], errors: IO[bytes], deadline: float) -> str:
    """The next line of the process; its end, or what it said of an error, if there is none."""
    if process.stdout is None:
        return ""
    content = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not content.endswith(b"\n") and len(content) < _MAX_LINE_BYTES:
            if not selector.select(max(0.0, deadline - time.perf_counter())):
                return "[timeout]"
            piece = os.read(process.stdout.fileno(), _MAX_LINE_BYTES)
            if not piece:
                errors.seek(max(0, errors.seek(0, os.SEEK_END) - _MAX_LINE_BYTES))
                said = errors.read()
                return f"{content.decode(errors='replace')} [ended] {_last(said)}".strip()
            content += piece
    return content.decode(errors="replace").removesuffix("\n")


def _unexpected(workload: Workload, line: str, want: str) -> TrialError:
    return TrialError(f"the workload {workload.id} printed {line[-300:]!r}, and not {want!r}")


def _to_number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _ending(result: CommandResult) -> str:
    how = result.stopped or f"exit code {result.exit_code}"
    return f"{how}: {_last((result.stdout + result.stderr).encode())}"


def _last(said: bytes) -> str:
    return said.decode(errors="replace").strip()[-_SHOWN_CHARS:]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if names[5:] else "")
