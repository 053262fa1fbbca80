"""What a journal holds, entry by entry: the types by which it is read and written.

An entry's `kind` tells its type. Times are of this host's clock, UTC.
"""

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from socratic_bench.journal.codec import StoredCompletion
from socratic_bench.settings import MAX_SEED, MAX_TURNS
from socratic_bench.types import Attempt, CallKey, EndReason, Moment, Tokens

Version = Literal[1, 2]
VERSIONS: tuple[Version, ...] = get_args(Version)
VERSION: Version = 2

Turns = Annotated[int, Meta(ge=1, le=MAX_TURNS, description="turns to play at most")]
Digest = Annotated[str, Meta(description="sha256 of the request, by which its answer is found")]


class Keyed(Struct, frozen=True):
    """Any entry, for the name of the call that it is of: also of one that tells nothing else."""

    key: CallKey | None = None


class Begun(Struct, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """The first entry: which run this is, and how it was asked for."""

    version: Annotated[
        Version, Meta(description="1 had a judge's delimiters made of seed and call alone")
    ]
    run_id: str
    digest: Annotated[str, Meta(description="of the identity")] = ""
    identity: Annotated[
        dict[str, Any], Meta(description="what the run cannot change while it goes on, by name")
    ]
    config: Annotated[dict[str, Any], Meta(description="the settings that it began with")]
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)]
    started_at: Moment
    runner_version: str = ""

    @property
    def turns(self) -> int:
        """The turns that the run began with. Raises `ValueError` for none, or too many."""
        found = self.config.get("turns")
        if isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= MAX_TURNS:
            return found
        raise ValueError(f"config.turns is {found!r}, not from 1 to {MAX_TURNS}")


class Process(Struct, frozen=True, kw_only=True, tag_field="kind", tag="process"):
    """A process has taken up the run."""

    pid: int | None = None
    host: str | None = None
    started_at: Moment | None = None
    turns: Turns
    runner_version: str = ""


class Timed(Struct, frozen=True, kw_only=True):
    """An entry that a process writes while it is at work."""

    elapsed_s: Annotated[
        float | None, Meta(description="seconds since the process began, by a clock nobody sets")
    ] = None


class Asked(Timed, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A request is about to be sent; what it can take at most counts if nothing follows."""

    key: CallKey
    model_id: str | None = None
    at: Moment
    input_tokens_at_most: Tokens | None = None
    output_tokens_at_most: Tokens | None = None


class Tried(Timed, frozen=True, kw_only=True, tag_field="kind", tag="attempt"):
    """A request has failed, and another one may follow."""

    key: CallKey
    attempt: Attempt


class Answered(Timed, frozen=True, kw_only=True, tag_field="kind", tag="answered"):
    """A call was answered, with every attempt that it took."""

    key: CallKey
    request_sha256: Digest
    completion: StoredCompletion


class Failed(Timed, frozen=True, kw_only=True, tag_field="kind", tag="failed"):
    """A call failed for good, or was given up."""

    key: CallKey
    request_sha256: Digest
    code: str
    message: str
    end_reason: EndReason
    retryable: bool
    hint: str | None
    attempts: tuple[Attempt, ...]


class Noticed(Timed, frozen=True, kw_only=True, tag_field="kind", tag="notice"):
    """What people should know of the run."""

    text: str


class Ended(Timed, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """How and when a process completed the run, and with how many turns at most."""

    turns: int
    completed_at: Moment
    duration_s: Annotated[float | None, Meta(description="seconds at work, of all processes")]


JournalEntry = Begun | Process | Asked | Tried | Answered | Failed | Noticed | Ended
KINDS = tuple(str(entry.__struct_config__.tag) for entry in get_args(JournalEntry))
