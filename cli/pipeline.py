"""What a command leaves for a pipeline: a JUnit file, GitHub's summary and annotations."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from socratic_bench.errors import ArtifactError

from .output import say, say_error
from .process import EXIT_UNWRITTEN

if TYPE_CHECKING:  # studies, which only few runs need
    from socratic_bench.studies.formats.checks import Checks

SUMMARY_FILE = "GITHUB_STEP_SUMMARY"


def pipeline_problems(flags: Mapping[str, object]) -> Iterator[str]:
    """Mistakes that would be noticed only after everything is paid for."""
    path = flags.get("junit")
    if isinstance(path, str) and (Path(path).is_dir() or not Path(path).absolute().parent.is_dir()):
        yield f"--junit {path} names no file in an existing folder."
    if _has_summary(flags) and not os.environ.get(SUMMARY_FILE):
        yield f"--github-summary writes to the file that {SUMMARY_FILE} names, which is not set."


def write_checks(flags: Mapping[str, object], checks_of: "Callable[[], Checks]") -> int:
    """Write what the flags ask for; returns 0, or the exit code of a file that is not written."""
    path, has_summary = flags.get("junit"), _has_summary(flags)
    if not (path or has_summary) or any(pipeline_problems(flags)):
        return 0
    from socratic_bench.studies.formats.github import annotations_of, append_summary
    from socratic_bench.studies.formats.junit import write_junit

    checks, code = checks_of(), 0
    try:
        if isinstance(path, str):
            write_junit(checks, path)
        if has_summary:
            append_summary(checks, os.environ[SUMMARY_FILE])
    except ArtifactError as error:
        say_error(error)
        code = EXIT_UNWRITTEN
    for line in annotations_of(checks) if has_summary else ():
        say(line)
    return code


def _has_summary(flags: Mapping[str, object]) -> bool:
    return bool(flags.get("github-summary") or flags.get("github_summary"))
