"""Whatever happened to a journal, nothing false is read from it."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from socratic_bench.concurrency import convert
from socratic_bench.documents.encoding import plain
from socratic_bench.documents.journal import (
    Answered,
    FailedAttemptEntry,
    JournalEntry,
    StoredCompletion,
)
from socratic_bench.errors import UsageError
from socratic_bench.journal.replay import ReplayLog
from socratic_bench.storage.folder_journal import FolderJournals
from socratic_bench.types import (
    Attempt,
    CallKey,
    Completion,
    Message,
    Reasoning,
    Text,
    ToolUse,
    Usage,
)

RUN_ID = "run-01K9ZN5V2E3T4R5Y6U7J8K9M0N"
HEADER = {
    "kind": "run",
    "version": 2,
    "run_id": RUN_ID,
    "digest": "0" * 32,
    "identity": {},
    "config": {"turns": 40},
    "seed": 1,
    "started_at": "2026-01-01T00:00:00+00:00",
    "runner_version": "0.1.0",
}

moments = st.datetimes(timezones=st.just(UTC))
words = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
numbers = st.floats(0, 1e9)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
blocks = (
    words.map(Text)
    | words.map(Reasoning)
    | st.builds(ToolUse, id=words, name=words, arguments=json_values)
)
attempts = st.builds(
    Attempt,
    started_at=moments,
    duration_ms=numbers,
    wait_ms=numbers,
    error=st.none() | words,
    may_have_been_billed=st.booleans(),
)
tokens = st.integers(0, 10**9)
completions = st.builds(
    Completion,
    message=st.builds(Message, st.just("assistant"), st.lists(blocks, max_size=3).map(tuple)),
    stop_reason=words,
    usage=st.none() | st.builds(Usage, input_tokens=tokens, output_tokens=tokens),
    latency_ms=numbers,
    service_latency_ms=st.none() | numbers,
    attempts=st.lists(attempts, max_size=3).map(tuple),
    request_id=st.none() | words,
    finished_at=moments,
)
entries = st.lists(
    st.fixed_dictionaries({"kind": st.just("notice"), "text": words}), min_size=1, max_size=6
)
relaxed = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)


@given(completions)
def test_an_answer_comes_back_as_it_was(completion):
    key = CallKey(role="tutor", index=0)
    entry = Answered(key=key, request_sha256="0", completion=StoredCompletion.of(completion))
    back = convert(json.loads(json.dumps(plain(entry))), JournalEntry)

    assert back.completion.completion == completion


@given(attempts)
def test_an_attempt_comes_back_as_it_was(attempt):
    entry = FailedAttemptEntry(key=CallKey(role="judge", index=1), attempt=attempt)

    assert convert(json.loads(json.dumps(plain(entry))), JournalEntry) == entry


@relaxed
@given(written=entries, at=st.integers(0, 10**6), what=st.binary(max_size=40), cut=st.booleans())
def test_only_whole_entries_that_were_written_are_read(tmp_path_factory, written, at, what, cut):
    """Bytes are overwritten somewhere, or the file ends there."""
    folder = tmp_path_factory.mktemp("journal")
    journals = FolderJournals(str(folder))
    journal = journals.create(RUN_ID, "")
    for entry in (HEADER, *written):
        journal.append(entry)
    journal.close()
    (path,) = folder.rglob(f"{RUN_ID}.jsonl")
    content = path.read_bytes()
    place = at % (len(content) + 1)
    damaged = content[:place] if cut else content[:place] + what + content[place + len(what) :]
    path.write_bytes(damaged)

    try:
        again = journals.open(RUN_ID)
    except UsageError:
        assert path.read_bytes() == damaged
        return
    entries = [dict(entry) for entry in again.entries]
    again.close()
    whole = [HEADER, *written]
    assert entries[0] == HEADER
    assert [entry for entry in entries if entry not in whole] == []
    if len(entries) < len(whole):
        missing = cut and damaged.endswith(b"\n")
        assert again.repairs or missing
    reopened = journals.open(RUN_ID)
    assert [dict(entry) for entry in reopened.entries] == entries
    reopened.close()


@given(st.lists(st.dictionaries(words, json_values, max_size=5), max_size=5))
def test_entries_that_tell_nothing_are_counted_and_do_no_harm(odd_entries):
    replay_log = ReplayLog([HEADER, *odd_entries])

    assert replay_log.n_answers == 0
    assert replay_log.header.run_id == RUN_ID


@pytest.mark.parametrize("kind", ["answered", "failed", "asked", "process", "notice", "end"])
@given(fields=st.dictionaries(st.sampled_from(["key", "at", "turns", "text"]), json_values))
def test_an_entry_of_a_known_kind_with_odd_contents_is_left_out(kind, fields):
    replay_log = ReplayLog([HEADER, {"kind": kind, **fields}])

    assert replay_log.n_answers == 0


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"kind": "process", "turns": 0}, "turns: Expected `int` >= 1."),
        ({"kind": "end", "turns": 3}, "the whole: Object missing required field `completed_at`."),
        ({"kind": "asked", "key": {"role": 5}}, "key.role: Expected `str`, got `int`."),
    ],
)
def test_an_entry_that_tells_nothing_is_named_with_path_and_reason(entry, reason):
    replay_log = ReplayLog([HEADER, entry])

    assert replay_log.unreadable == (f"Entry 1 of the journal tells nothing: {reason}",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 9}, "version: Invalid enum value 9."),
        ({"seed": -1}, "seed: Expected `int` >= 0."),
        ({"config": {"turns": True}}, "the whole: config.turns is True, not from 1 to 500."),
    ],
)
def test_what_is_no_journal_is_refused_with_path_and_reason(change, reason):
    with pytest.raises(UsageError) as refused:
        ReplayLog([HEADER | change])

    assert refused.value.problems[0].endswith(f"another version of this program: {reason}")


KEY = {"role": "tutor", "index": 3, "part": "", "repeat": 0}
ANSWER = Completion(
    message=Message("assistant", (Text("Why?"),)),
    stop_reason="end_turn",
    usage=None,
    latency_ms=1.0,
    service_latency_ms=None,
    attempts=(),
    request_id=None,
    finished_at=datetime(2026, 1, 1, tzinfo=UTC),
)
ANSWERED = {
    "kind": "answered",
    "key": KEY,
    "request_sha256": "0",
    "completion": plain(StoredCompletion.of(ANSWER)),
}


PROCESS = {"kind": "process", "pid": 7, "host": "here", "turns": 40}


def tried(second: int) -> dict[str, object]:
    attempt = {
        "started_at": f"2026-01-01T00:00:{second:02}+00:00",
        "duration_ms": 5.0,
        "wait_ms": 0.0,
        "error": "throttled",
        "may_have_been_billed": False,
    }
    return {"kind": "attempt", "key": KEY, "attempt": attempt}


def asked(second: int, **more: object) -> dict[str, object]:
    return {"kind": "asked", "key": KEY, "at": f"2026-01-01T00:00:{second:02}+00:00", **more}


def test_a_process_that_ended_in_the_middle_of_a_call_may_have_paid_for_it():
    bounds = {"input_tokens_at_most": 300, "output_tokens_at_most": 20}
    (lost,) = ReplayLog([HEADER, asked(1, **bounds)]).failed_attempts("tutor")

    assert (lost.error, lost.may_have_been_billed) == ("process_ended", True)
    assert (lost.input_tokens_at_most, lost.output_tokens_at_most) == (300, 20)
    assert lost.started_at == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("later", "seconds"),
    [
        ([asked(1), asked(2), asked(3)], [1, 2, 3]),
        ([asked(1), asked(2), ANSWERED], [1]),
        ([ANSWERED], []),
        ([asked(1), ANSWERED], []),
        ([asked(1), tried(2), asked(3), ANSWERED], []),
        ([asked(1), tried(2), asked(3), tried(4)], [2, 4]),
        ([asked(1), tried(2), asked(3), PROCESS, asked(5), ANSWERED], [2, 3]),
        ([asked(1), tried(2), asked(3), asked(5), ANSWERED], [2, 3]),
        ([tried(2), asked(3)], [2, 3]),
    ],
    ids=[
        "never answered",
        "answered at last",
        "asked not kept",
        "answered",
        "answered at the second try",
        "killed while it waits",
        "killed at the second try, answered later",
        "as before, and the later process is not told",
        "first note not kept",
    ],
)
def test_every_process_that_ended_in_the_middle_of_a_call_counts(later, seconds):
    lost = ReplayLog([HEADER, *later]).failed_attempts("tutor")

    assert sorted(attempt.started_at.second for attempt in lost) == seconds
