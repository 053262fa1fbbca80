"""What a journal holds, entry by entry: the types by which it is read and written.

An entry's `kind` tells its type. Times are of this host's clock, UTC.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from socratic_bench.journal.codec import StoredCompletion
from socratic_bench.settings import MAX_SEED, MAX_TURNS, MOST_TURNS
from socratic_bench.types import (
    AskedModel,
    Attempt,
    CallKey,
    EndReason,
    InputAtMost,
    Moment,
    OutputAtMost,
    doc,
)

Version = Literal[1, 2]
VERSION: Version = 2

Turns = Annotated[int, Meta(ge=1, le=MOST_TURNS, description="turns to play at most")]
RunnerVersion = Annotated[str, doc("version of the program")]
StartedAt = Annotated[Moment, doc("when the process began")]
# Earlier versions wrote what a clock left that was set back, so reading takes negative ones, too.
Seconds = Annotated[float, Meta(extra_json_schema={"minimum": 0})]
Called = Annotated[CallKey, doc("the call that it is of")]
Digest = Annotated[str, doc("sha256 of the request, by which its answer is found")]


class Keyed(Struct, frozen=True):
    """Any entry, read only for its call's key, even if nothing else in it can be read."""

    key: CallKey | None = None


class RunEntry(Struct, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """The first entry: which run this is, and how it was asked for."""

    version: Annotated[Version, doc("1 had a judge's delimiters made of seed and call alone")]
    run_id: Annotated[str, doc("id of the run")]
    digest: Annotated[str, doc("the identity's sha256, 32 digits of it")] = ""
    identity: Annotated[dict[str, Any], doc("what the run cannot change while it goes on, by name")]
    config: Annotated[dict[str, Any], doc("the settings that it began with")]
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED, description="fixes everything left to chance")]
    started_at: StartedAt
    runner_version: RunnerVersion = ""
    max_turns: Annotated[
        int, Meta(ge=1, le=MOST_TURNS, description="turns to which the benchmark bounds a run")
    ] = MAX_TURNS

    @property
    def turns(self) -> int:
        """The turns that the run began with. Raises `ValueError` for none, or too many."""
        found = self.config.get("turns")
        if isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= self.max_turns:
            return found
        raise ValueError(f"config.turns is {found!r}, not from 1 to {self.max_turns}")


class Process(Struct, frozen=True, kw_only=True, tag_field="kind", tag="process"):
    """A process has taken up the run."""

    pid: Annotated[Annotated[int, Meta(ge=0)] | None, doc("its id on its host; null: unknown")] = (
        None
    )
    host: Annotated[str | None, doc("name of its host; null: unknown")] = None
    started_at: Annotated[StartedAt | None, doc("when it began; null: unknown")] = None
    turns: Turns
    runner_version: RunnerVersion = ""


class Timed(Struct, frozen=True, kw_only=True):
    """An entry that a process writes while it is at work."""

    elapsed_s: Annotated[
        Seconds | None, doc("seconds since the process began, by a monotonic clock")
    ] = None


class RequestEntry(Timed, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A request is about to be sent; its upper bounds count if no result is ever noted."""

    key: Called
    model_id: AskedModel = None
    at: Annotated[Moment, doc("when it was sent")]
    input_tokens_at_most: InputAtMost = None
    output_tokens_at_most: OutputAtMost = None


class FailedAttemptEntry(Timed, frozen=True, kw_only=True, tag_field="kind", tag="attempt"):
    """A request has failed, and another one may follow."""

    key: Called
    attempt: Annotated[Attempt, doc("the request that failed")]


class Answered(Timed, frozen=True, kw_only=True, tag_field="kind", tag="answered"):
    """A call was answered, with every attempt that it took."""

    key: Called
    request_sha256: Digest
    completion: Annotated[StoredCompletion, doc("the answer")]


class Failed(Timed, frozen=True, kw_only=True, tag_field="kind", tag="failed"):
    """A call failed for good, or was given up."""

    key: Called
    request_sha256: Digest
    code: Annotated[str, doc("stable word for programs")]
    message: Annotated[str, doc("what happened and why")]
    end_reason: Annotated[EndReason, doc("how the run ends if the call was needed")]
    retryable: Annotated[bool, doc("whether the same call may succeed later")]
    hint: Annotated[str | None, doc("what to do next")]
    attempts: Annotated[tuple[Attempt, ...], doc("its requests, none answered")]


class Noticed(Timed, frozen=True, kw_only=True, tag_field="kind", tag="notice"):
    """What people should know of the run."""

    text: Annotated[str, doc("the notice, in a sentence or two")]


class EndEntry(Timed, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """How and when a process completed the run, and with how many turns at most."""

    turns: Turns
    completed_at: Annotated[Moment, doc("when the run was complete")]
    duration_s: Annotated[Seconds | None, doc("seconds at work, of all processes of the run")]


JournalEntry = (
    RunEntry | Process | RequestEntry | FailedAttemptEntry | Answered | Failed | Noticed | EndEntry
)
KINDS = tuple(str(entry.__struct_config__.tag) for entry in get_args(JournalEntry))
