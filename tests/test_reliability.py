"""Every fault, for every role: it ends as docs/dev/reliability.md says."""

import pytest

from socratic_bench.benchmarks.socratic.document import PARTS
from socratic_bench.emulator.faults import CONTENT_KINDS, ERROR_KINDS, VERDICT_KINDS
from socratic_bench.errors import ENDINGS, EXIT_GATE
from tests.command import assert_valid, daily
from tests.matrix import CALL_KINDS, REQUESTS, STOPPED, Case, Seen, row, rows

# What a single fault of a kind makes of a run, as its exit code: 0 for all kinds but these.
LASTING = {
    **dict.fromkeys(("validation", "access_denied", "not_found", "unrecognized_key"), 3),
    **dict.fromkeys(("on_demand", "legacy"), 3),
    "daily_quota": 4,
}
# And what it makes of it if it stays, where that is not what follows from its group.
# Denied streams are done without.
STAYING = {"expired_token": 3, "context_window": 0, "denied_streaming": 0, **LASTING}


def exit_code(case: Case) -> int:
    """By the rules: what passes is got over, what stays ends the run, a bad verdict is none."""
    if case.how == "once":
        return LASTING.get(case.kind, 0)
    if case.roles == ("judge",) and case.kind in (*CONTENT_KINDS, *VERDICT_KINDS, "context_window"):
        return 0 if case.kind == "wrapped_verdict" else EXIT_GATE
    return 0 if case.kind in CONTENT_KINDS else STAYING.get(case.kind, 4)


def check(case: Case, seen: Seen) -> None:
    """Document, exit code, artifacts and the calls at the server agree."""
    document, code = seen.document, seen.outcome.exit_code
    assert_valid("run", document)
    if seen.struck:
        assert code == exit_code(case), case
    assert (document["error"] is None) == (code == 0)
    assert document["error"] is None or document["error"]["hint"]
    assert code in (ENDINGS[document["end_reason"]].exit_code, EXIT_GATE)
    assert "Traceback" not in seen.outcome.stderr
    for turn in document["turns"]:
        scores = [turn[name] is None for name in ("score", "form", "substance", "purity")]
        assert scores == [turn["unjudged_reason"] is not None] * 4
    assert_files(seen)
    if code != STOPPED:  # then calls may have been given up
        sent = {role: document["usage"][role]["attempts"] for role in PARTS.roles}
        # What finds the door shut never reaches the server.
        unseen = sent if case.kind == "refused" else {}
        assert sent == {role: max(seen.requests[role], unseen.get(role, 0)) for role in PARTS.roles}
    if case.kind in ERROR_KINDS and seen.is_whole:
        assert sum(seen.requests.values()) == sum(REQUESTS.values()) + seen.struck


def assert_files(seen: Seen) -> None:
    """A file for each turn and each verdict, and the curated one if the run is complete."""
    document = seen.document
    run_id = document["run_id"]
    judged = [turn["turn"] for turn in document["turns"] if turn["unjudged_reason"] != "run_ended"]
    raw = [f"raw/runs/{run_id}/turn_{turn['turn']:03d}.json" for turn in document["turns"]]
    raw += [f"raw/runs/{run_id}/judge_{index:03d}.json" for index in judged]
    complete = document["status"] == "completed"
    curated = [f"curated/runs/{run_id}.json"] * complete

    closing = f"raw/runs/{run_id}/closing_verdict.json"
    assert complete * (document["closing_errors"] is not None) <= (closing in seen.files)
    assert sorted(name for name in seen.files if "_" in name and name != closing) == sorted(raw)
    assert [name for name in seen.files if name.startswith("curated/")] == curated
    for name, file in seen.files.items():
        if "/judge_" in name:
            entry = document["turns"][file["turn"]]
            assert (file["overall_score"], file["unjudged_reason"]) == (
                entry["score"],
                entry["unjudged_reason"],
            )
    if complete:
        assert seen.files[curated[0]] == {**document, "kind": "curated"}


def test_the_table_has_every_fault():
    assert list(rows()) == list(CALL_KINDS)


# One of each sort: what passes, what stays, what is denied, a stream, a reply, a verdict.
EVERY_DAY = ("throttled", "access_denied", "denied_streaming", "reset", "empty_reply", "nan_score")


@pytest.mark.parametrize("kind", daily(CALL_KINDS, *EVERY_DAY))
def test_the_table_says_what_happens(kind):
    """If it is right and the table is not: make reliability. How the command ends after each kind
    of ending is told in test_cli_endings.py.
    """
    assert rows()[kind] == row(kind, check)
