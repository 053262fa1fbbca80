"""What is stored so that a run can be resumed: the entries of its journal, and the lease on it.

The `kind` of an entry names its type. Times are in UTC, by the clock of the host that wrote them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from sys import intern
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct
from msgspec.structs import asdict

from socratic_bench.settings import MAX_SEED, MAX_TURNS, MOST_TURNS
from socratic_bench.types import (
    AskedModel,
    Attempt,
    Block,
    CallKey,
    Completion,
    EndReason,
    Image,
    InputAtMost,
    Json,
    Message,
    Moment,
    OutputAtMost,
    Reasoning,
    Role,
    Text,
    ToolResult,
    ToolUse,
    doc,
)

Version = Literal[2]
VERSION: Version = 2
# Seconds after which a lease that is not renewed lapses, at most.
TTL_MAX_S = 60.0

TurnLimit = Annotated[int, Meta(ge=1, le=MOST_TURNS, description="number of turns at most")]
RunnerVersion = Annotated[str, doc("version of the program")]
StartedAt = Annotated[Moment, doc("when the process began")]
# A clock that was set back gives negative seconds: they are read, and not used.
Seconds = Annotated[float, Meta(extra_json_schema={"minimum": 0})]
EntryKey = Annotated[CallKey, doc("the call that the entry is about")]
Digest = Annotated[str, doc("sha256 of the request, by which its answer is found")]


class StoredText(Text, frozen=True, tag_field="kind", tag="text"):
    """A block of text."""


class StoredReasoning(Reasoning, frozen=True, tag_field="kind", tag="reasoning"):
    """A block of the model's reasoning."""


class StoredToolUse(ToolUse, frozen=True, tag_field="kind", tag="tool_use"):
    """A call of a tool."""

    arguments: Annotated[
        str, doc("JSON as the model gave it, infinities and long integers included")
    ]


class StoredToolResult(ToolResult, frozen=True, tag_field="kind", tag="tool_result"):
    """An answer to a call of a tool."""


class StoredMessage(Message, frozen=True):
    """A message in blocks that each name their kind."""

    content: Annotated[
        tuple[StoredText | StoredReasoning | StoredToolUse | StoredToolResult, ...],
        doc("its blocks, in order"),
    ]

    @classmethod
    def of(cls, message: Message) -> StoredMessage:
        return cls(message.role, tuple(_stored_block(block) for block in message.content))


class StoredCompletion(Completion, frozen=True, kw_only=True):
    """A model's answer to one call."""

    message: Annotated[StoredMessage, doc("the reply")]

    @classmethod
    def of(cls, completion: Completion) -> StoredCompletion:
        return cls(**{**asdict(completion), "message": StoredMessage.of(completion.message)})

    @property
    def completion(self) -> Completion:
        """The answer as it was given. Raises `ValueError` if a tool's arguments are damaged."""
        blocks = tuple(_original_block(block) for block in self.message.content)
        values = asdict(self) | {"message": Message(self.message.role, blocks)}
        # These words are the same in every answer: interned, each is in memory once.
        values |= {name: intern(values[name]) for name in _REPEATED if values[name]}
        return Completion(**values)


class Keyed(Struct, frozen=True):
    """The call's key of any entry, also of one that cannot be read otherwise."""

    key: CallKey | None = None


class RunEntry(Struct, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """The first entry: the run's id, settings and seed."""

    version: Annotated[Version, doc("version of the journal's format")]
    run_id: Annotated[str, doc("id of the run")]
    digest: Annotated[str, doc("first 32 digits of the identity's sha256")] = ""
    identity: Annotated[
        dict[str, Any], doc("settings that must not change when the run is resumed, by name")
    ]
    config: Annotated[dict[str, Any], doc("the settings that the run began with")]
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED, description="random seed of the run")]
    started_at: StartedAt
    runner_version: RunnerVersion = ""
    max_turns: Annotated[
        int, Meta(ge=1, le=MOST_TURNS, description="most turns that the benchmark allows")
    ] = MAX_TURNS

    @property
    def turns(self) -> int:
        """The turns that the run began with. Raises `ValueError` for none, or too many."""
        turns = self.config.get("turns")
        if isinstance(turns, int) and not isinstance(turns, bool) and 1 <= turns <= self.max_turns:
            return turns
        raise ValueError(f"config.turns is {turns!r}, not from 1 to {self.max_turns}")


class Process(Struct, frozen=True, kw_only=True, tag_field="kind", tag="process"):
    """Another process resumes the run."""

    pid: Annotated[
        Annotated[int, Meta(ge=0)] | None, doc("its process id on its host; null: unknown")
    ] = None
    host: Annotated[str | None, doc("name of its host; null: unknown")] = None
    started_at: Annotated[StartedAt | None, doc("when it began; null: unknown")] = None
    turns: TurnLimit
    runner_version: RunnerVersion = ""
    in_ledger: Annotated[
        str | None, doc("its name in the ledger of its sweep's spending; null: it is in none")
    ] = None


class Timed(Struct, frozen=True, kw_only=True):
    """An entry with the time since its process began."""

    elapsed_s: Annotated[
        Seconds | None, doc("seconds since the process began, by a monotonic clock")
    ] = None


class RequestEntry(Timed, frozen=True, kw_only=True, tag_field="kind", tag="asked"):
    """A request is about to be sent; without a later entry on its result, the bounds count."""

    key: EntryKey
    model_id: AskedModel = None
    at: Annotated[Moment, doc("when it was sent")]
    input_tokens_at_most: InputAtMost = None
    output_tokens_at_most: OutputAtMost = None


class FailedAttemptEntry(Timed, frozen=True, kw_only=True, tag_field="kind", tag="attempt"):
    """A request has failed; the call may send another one."""

    key: EntryKey
    attempt: Annotated[Attempt, doc("the request that failed")]


class Answered(Timed, frozen=True, kw_only=True, tag_field="kind", tag="answered"):
    """A call was answered, after all attempts that are listed in the answer."""

    key: EntryKey
    request_sha256: Digest
    completion: Annotated[StoredCompletion, doc("the answer")]


class Failed(Timed, frozen=True, kw_only=True, tag_field="kind", tag="failed"):
    """A call failed for good, or was cancelled."""

    key: EntryKey
    request_sha256: Digest
    code: Annotated[str, doc("stable error code")]
    message: Annotated[str, doc("what happened and why")]
    end_reason: Annotated[EndReason, doc("how the run ends if it needs the call")]
    retryable: Annotated[bool, doc("whether the same call may succeed later")]
    hint: Annotated[str | None, doc("what to do next")]
    attempts: Annotated[tuple[Attempt, ...], doc("its requests, none answered")]


class Noticed(Timed, frozen=True, kw_only=True, tag_field="kind", tag="notice"):
    """A warning that the run's document repeats."""

    text: Annotated[str, doc("the warning, in a sentence or two")]


class BatchEntry(Timed, frozen=True, kw_only=True, tag_field="kind", tag="batch"):
    """A job of batch inference is about to be submitted. It is collected by whoever resumes the
    run, and is submitted again only with the same token, which makes it the same job.
    """

    role: Annotated[Role, doc("who is asked by its records")]
    model_id: Annotated[str, doc("the model of the job")]
    place: Annotated[str, doc("S3 address of its records and answers")]
    token: Annotated[str, doc("its clientRequestToken: a digest of its records and the attempt")]
    role_arn: Annotated[str, doc("the role in which the service reads and writes the place")]
    n_records: Annotated[int, Meta(ge=1, description="its records, also of other runs")]
    run_ids: Annotated[tuple[str, ...], doc("the runs that its records are of")]


class EndEntry(Timed, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """A process has completed the run."""

    turns: TurnLimit
    completed_at: Annotated[Moment, doc("when the run was complete")]
    duration_s: Annotated[
        Seconds | None, doc("seconds that all processes of the run took together")
    ]


JournalEntry = (
    RunEntry
    | Process
    | RequestEntry
    | FailedAttemptEntry
    | Answered
    | Failed
    | Noticed
    | BatchEntry
    | EndEntry
)
KINDS = tuple(str(entry.__struct_config__.tag) for entry in get_args(JournalEntry))

# The schema of the key `sha256`, which each line of a journal in a folder has beside its entry.
LINE_SUM = {
    "description": "only in a line of a file: the first 16 digits of the sha256 of that line "
    "without this key and its newline",
    "type": "string",
    "pattern": "^[0-9a-f]{16}$",
}


class Link(Struct, frozen=True, kw_only=True, tag_field="kind", tag="journal_entry"):
    """One entry of a journal in a bucket, with the hash of the entry before."""

    run_id: Annotated[str, doc("id of the run")]
    sequence: Annotated[int, Meta(ge=0, description="from 0, without a gap")]
    previous: Annotated[str | None, doc("sha256 of the object before; null in the first")]
    entry: Annotated[dict[str, Any], doc("an entry as in the schema journal")]


class LeaseFile(Struct, frozen=True, kw_only=True, tag_field="kind", tag="lease"):
    """Lease of the process that works on a run, in a bucket."""

    run_id: Annotated[str, doc("id of the run")] = ""
    holder: Annotated[str | None, doc("a random name of the process")] = None
    host: Annotated[str | None, doc("name of its host")] = None
    pid: Annotated[Annotated[int, Meta(ge=0)] | None, doc("process id on its host")] = None
    since: Annotated[str | None, doc("when it took the run, UTC")] = None
    ttl_s: Annotated[
        float,
        Meta(gt=0, le=TTL_MAX_S, description="seconds after which it lapses without a renewal"),
    ] = TTL_MAX_S
    beat: Annotated[int, Meta(ge=0, description="number of renewals")] = 0
    released: Annotated[bool, doc("whether the process has released it")] = False

    @property
    def owner(self) -> str:
        """The process, as messages name it."""
        pid, host, since = (_printable(value) for value in (self.pid, self.host, self.since))
        return f"process {pid} on {host} (since {since})"


_REPEATED = ("stop_reason", "provider_stop_reason", "model_id")
_STORED_TYPES: Mapping[type[Block], type[Block]] = {
    Text: StoredText,
    Reasoning: StoredReasoning,
    ToolUse: StoredToolUse,
    ToolResult: StoredToolResult,
}
_ORIGINAL_TYPES = {stored: original for original, stored in _STORED_TYPES.items()}
_TOO_DEEP = "(nested too deeply to be kept)"
_UNPRINTABLE = re.compile(r"[^\w.:@+-]")


def _stored_block(block: Block) -> Any:  # noqa: ANN401 -- one of the four stored types
    values = asdict(block)
    if isinstance(block, ToolUse):
        values["arguments"] = _json_text(block.arguments)
    if isinstance(block, Image):  # no answer has one: a request's digest needs its content alone
        return StoredText(text=block.data_url)
    return _STORED_TYPES[type(block)](**values)


def _original_block(block: Block) -> Block:
    values = asdict(block)
    if isinstance(block, StoredToolUse):
        values["arguments"] = json.loads(block.arguments)
    return _ORIGINAL_TYPES[type(block)](**values)


def _json_text(arguments: Json) -> str:
    """Whatever a model gave as JSON, also infinities and integers of any length."""
    try:
        return json.dumps(arguments)
    except RecursionError:
        return json.dumps(_TOO_DEEP)


def _printable(value: str | int | None) -> str:
    """A value that another process wrote, safe to print."""
    return "unknown" if value is None else _UNPRINTABLE.sub("?", str(value))[:100]
