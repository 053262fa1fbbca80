"""What people are told of going on with a run that was cut short."""

import shlex
from itertools import takewhile

from socratic_bench.errors import ArtifactError, BenchError, InternalError, LeaseLostError, Problem
from socratic_bench.runs.plan import Plan
from socratic_bench.runs.resume import AcquiredRun
from socratic_bench.settings import CoreConfig

NOT_FROM_BRIEF = Problem.of(
    "The short form is not enough to go on with this run: next time give {output_dir}, or no "
    "{brief}."
)
FROM_DOCUMENT = Problem.of(
    "Go on with this document, kept in a file: socratic-runner {resume_from} FILE."
)
GO_ON = Problem.of("Go on with it:")
GO_ON_AS_STORED = Problem.of("Or go on with what the store has:")
GO_ON_MENDED = Problem.of("Once that is mended, go on with the run:")
GIVE_AGAIN = "Give the same command again: it goes on where it was cut short."
STORED = ("output_dir", "s3_bucket", "s3_prefix", "s3_kms_key_id")


def say_how_to_go_on(
    error: BenchError, acquired: AcquiredRun | None, plan: Plan, *, is_journal_shown: bool
) -> None:
    """Add it to the hints of what ended a run, if there is something to go on with."""
    if acquired is None or error.end_reason == "usage":
        return
    if isinstance(error, LeaseLostError):
        return
    if not any(entry.get("kind") == "answered" for entry in acquired.journal.entries):
        return
    if plan.is_rejudged:
        error.hints = tuple(dict.fromkeys((*error.hints, GIVE_AGAIN)))
        return
    is_kept = acquired.journal.is_kept
    first = () if is_kept else (FROM_DOCUMENT if is_journal_shown else NOT_FROM_BRIEF,)
    # A command to copy stands last, so that nothing runs into it.
    said = GO_ON if is_kept else GO_ON_AS_STORED
    if isinstance(error, InternalError):
        said = GO_ON_MENDED
    has_store = bool(plan.config.output_dir or plan.config.s3_bucket)
    last = (said, stored_words(plan.config, acquired.run_id)) if has_store else ()
    if {*first, *last} & {*error.hints}:
        return
    # If the store is what failed, the document holds all of it.
    is_of_store = isinstance(error, ArtifactError)
    told = (*first, *error.hints) if is_of_store else (*error.hints, *first)
    error.hints = (*told, *last)


def of_no_run(error: BenchError) -> BenchError:
    """The same error for those who play many runs: without the hints on going on with this one."""
    told = error.copied()
    told.hints = tuple(
        takewhile(lambda hint: hint not in (GO_ON, GO_ON_MENDED, GO_ON_AS_STORED), error.hints)
    )
    told.hints = tuple(hint for hint in told.hints if hint not in (FROM_DOCUMENT, NOT_FROM_BRIEF))
    return told


def stored_words(config: CoreConfig, run_id: str, command: str = "resume") -> Problem:
    """The command line that goes on with a run of a store; one that is complete is printed. Another
    `command` takes the same words.
    """
    values = {name: getattr(config, name) for name in STORED}
    words = "".join(f" {{{name}}} {{of_{name}}}" for name, value in values.items() if value)
    quoted = {f"of_{name}": shlex.quote(value) for name, value in values.items() if value}
    return Problem.of(f"socratic-runner {command} {run_id}{words}", **quoted)
