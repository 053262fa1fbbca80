"""What people are told of going on with a run that was cut short."""

import shlex

from socratic_bench.errors import ArtifactError, BenchError, Problem, TakenOverError
from socratic_bench.runner.plan import Plan
from socratic_bench.runner.resume import AcquiredRun
from socratic_bench.settings import CoreConfig

NOT_FROM_BRIEF = Problem.of(
    "The short form leaves out what the run could be gone on with: give {output_dir}, or no "
    "{brief}."
)
FROM_DOCUMENT = Problem.of(
    "Go on with this document, kept in a file: socratic-runner {resume_from} FILE."
)
STORED = ("output_dir", "s3_bucket", "s3_prefix", "s3_kms_key_id")


def say_how_to_go_on(
    error: BenchError, acquired: AcquiredRun | None, plan: Plan, *, is_journal_shown: bool
) -> None:
    """Add it to the hints of what ended a run, if there is something to go on with."""
    if acquired is None or error.end_reason in ("usage", "internal"):
        return
    if isinstance(error, TakenOverError):
        return
    if not any(entry.get("kind") == "answered" for entry in acquired.journal.entries):
        return
    is_kept = acquired.journal.is_kept
    from_document = FROM_DOCUMENT if is_journal_shown else NOT_FROM_BRIEF
    stored = stored_words(plan.config, acquired.run_id)
    how = [Problem.of("Go on with it:"), stored] if is_kept else [from_document]
    if not is_kept and (plan.config.output_dir or plan.config.s3_bucket):
        how += [
            Problem.of("Without it, with what was kept, once there is room and access:"),
            stored,
        ]
    if how[0] in error.hints:
        return
    # If the store is what failed, the document holds all of it.
    is_first = isinstance(error, ArtifactError) and not is_kept
    error.hints = (*how, *error.hints) if is_first else (*error.hints, *how)


def stored_words(config: CoreConfig, run_id: str) -> Problem:
    """The command line that goes on with a run of a store; one that is complete is printed."""
    values = {name: getattr(config, name) for name in STORED}
    words = "".join(f" {{{name}}} {{of_{name}}}" for name, value in values.items() if value)
    quoted = {f"of_{name}": shlex.quote(value) for name, value in values.items() if value}
    return Problem.of(f"socratic-runner resume {run_id}{words}", **quoted)
