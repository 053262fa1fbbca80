"""What a sweep has spent is in its stores before it is spent, and cells that it cannot pay for are
left.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.errors import ArtifactError, Stopped
from socratic_bench.models.budget import ExpectedCosts, SpendingLimit
from socratic_bench.storage.folder import FolderStore
from socratic_bench.studies.sweep.spending import Ledger
from tests.command import Outcome, account, run

SWEEP = "sweep-01JDSN5Q0000000000000000AA"
STEADY, LECTURER = "emulator.socratic-v1:0", "emulator.lecturer-v1:0"
GRID = (
    *("sweep", "--offline", "--models", STEADY, LECTURER),
    *("--scenarios", "ai-ethics", "career-change", "--turns", "2", "--seed", "7", "--repeats", "3"),
)


def refuse() -> Stopped:
    return Stopped("no more", end_reason="budget")


def reserve(limit: SpendingLimit, usd: float, order: int = 0) -> None:
    limit.reserve(
        usd,
        wait=lambda future: future.result(5),
        is_refused=lambda: False,
        refusal=refuse,
        order=order,
    )


def ledger(folder: Path, process: str) -> Ledger:
    return Ledger([FolderStore(str(folder))], SWEEP, process)


def limit_of(ledger: Ledger, limit_usd: float) -> SpendingLimit:
    return SpendingLimit(limit_usd, lambda usd: ledger.keep(limit_usd, usd))


def stored(folder: Path) -> dict[str, Any]:
    [path] = folder.glob("sweeps/*/spending.json")
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def sweep(*words: str, folder: Path) -> Outcome:
    return run(*GRID, *words, "-o", str(folder))


def test_a_killed_process_leaves_what_it_could_have_spent(tmp_path):
    killed = limit_of(ledger(tmp_path, "killed"), 1.0)
    reserve(killed, 0.4)
    noted = stored(tmp_path)["spent_usd"]["killed"]
    after = ledger(tmp_path, "after")
    later = limit_of(after, 1.0)
    reserve(later, 0.6)
    later.settle(0.6, 0.1)
    after.close(later.close())

    assert noted == 0.4
    assert ledger(tmp_path, "next").spent_usd == pytest.approx(0.5)
    with pytest.raises(Stopped):
        reserve(limit_of(ledger(tmp_path, "next"), 1.0), 0.6)


def test_what_another_process_notes_meanwhile_cannot_be_spent(tmp_path):
    one, other = (limit_of(ledger(tmp_path, name), 1.0) for name in ("one", "other"))
    reserve(one, 0.7)

    with pytest.raises(Stopped):
        reserve(other, 0.7)
    reserve(other, 0.3)
    assert stored(tmp_path)["spent_usd"] == {"one": 0.7, "other": 0.3}


def test_nothing_is_sent_that_cannot_be_noted(tmp_path):
    def fails(usd: float) -> tuple[float, bool]:
        if usd:
            raise ArtifactError("the disk is full")
        return 0.0, True

    limit = SpendingLimit(1.0, fails)
    with pytest.raises(ArtifactError):
        reserve(limit, 0.1)

    assert limit.most_usd == 0


def test_the_sum_never_falls_below_what_was_told(tmp_path):
    alive = limit_of(ledger(tmp_path, "alive"), 1.0)
    reserve(alive, 0.8)
    told = ledger(tmp_path, "told")
    told.close(0.1)
    alive.settle(0.8, 0.2)
    ledger(tmp_path, "alive").close(0.2)

    assert told.spent_usd == pytest.approx(0.9)
    assert ledger(tmp_path, "next").spent_usd == pytest.approx(0.9)
    assert sum(stored(tmp_path)["spent_usd"].values()) == pytest.approx(0.3)


def test_later_runs_leave_earlier_ones_what_they_need():
    limit = SpendingLimit(1.0)
    for order in (1, 2):
        limit.begin_run(order, ExpectedCosts(calls={"tutor": [0.4, 0.4]}))
    reserve(limit, 0.4, order=1)
    limit.settle(0.4, 0.2)
    limit.advance(1, "tutor", 0.2)  # half of what was expected
    reserve(limit, 0.5, order=2)

    assert limit.left_usd() == pytest.approx(0.2)  # 0.2 for the first, 0.4 for the second
    limit.end_run(2)
    assert limit.left_usd() == pytest.approx(0.6)


def test_a_budget_completes_the_cells_that_it_pays_for(tmp_path):
    short = sweep("--max-cost-usd", "0.3", folder=tmp_path)
    document, begun = short.document, [*tmp_path.glob("raw/runs/*")]
    dry = sweep("--max-cost-usd", "0.3", "--resume", "--dry-run", folder=tmp_path).document
    rest = sweep("--max-cost-usd", "3", "--resume", folder=tmp_path)

    assert (short.exit_code, document["end_reason"]) == (6, "budget")
    assert 4 <= document["n_completed"] == document["n_paid"] == len(begun)
    pays = f"pays for {document['n_paid']} of 12 runs"
    assert pays in document["error"]["message"]
    assert f"the budget {pays}" in short.stderr
    assert document["spent_usd"] <= 0.3
    assert dry["budget"]["n_paid"] == 0
    assert dry["budget"]["spent_usd"] == document["spent_usd"]
    assert (rest.exit_code, rest.document["n_paid"]) == (0, 12)
    assert rest.document["spent_usd"] > document["spent_usd"]


def test_what_was_spent_without_a_budget_is_counted_by_the_journals(tmp_path):
    free = sweep("--limit", "2", folder=tmp_path).document
    unread = stored(tmp_path)["spent_usd"]
    paid = sweep("--max-cost-usd", "3", "--limit", "1", "--resume", folder=tmp_path).document

    assert [*unread.values()] == [None]
    assert paid["spent_usd"] == pytest.approx(paid["cost_usd"])
    assert paid["spent_usd"] > free["cost_usd"] > 0


def test_a_look_without_a_budget_counts_for_later_budgets(tmp_path):
    """Journals have the calls of runs, and the ledger that of the look."""
    with Emulator(Settings()) as served:
        env = account(served.url, STEADY, LECTURER)
        words = [word for word in GRID if word != "--offline"]
        words += ["--judge-model", "emulator.judge-v1:0"]
        run(*words, "--limit", "1", "-o", str(tmp_path), env=env)
        looks = [name for name in stored(tmp_path)["spent_usd"] if name.endswith("-look")]
        look_usd = stored(tmp_path)["spent_usd"][looks[0]]
        more = ("--max-cost-usd", "3", "--limit", "1", "--resume")
        paid = run(*words, *more, "-o", str(tmp_path), env=env).document

    assert (len(looks), look_usd > 0) == (1, True)
    assert paid["spent_usd"] >= paid["cost_usd"] + look_usd


def test_a_damaged_ledger_is_refused_and_a_removed_one_is_made_of_the_journals(tmp_path):
    words = ("--max-cost-usd", "3", "--limit", "1", "--resume")
    first = sweep(*words, folder=tmp_path).document
    [path] = tmp_path.glob("sweeps/*/spending.json")
    path.write_bytes(b"{")
    refused = [sweep(*words, *more, folder=tmp_path) for more in ((), ("--dry-run",))]
    free = sweep("--limit", "1", "--resume", folder=tmp_path).document
    left = path.read_bytes()
    path.unlink()
    paid = [sweep(*words, folder=tmp_path).document for _ in range(2)]

    for outcome in refused:
        assert outcome.exit_code == 2
        assert f"cannot be read: {path}." in outcome.document["error"]["message"]
        assert "counted by the journals" in outcome.document["error"]["hint"]
    assert (free["n_completed"], left) == (2, b"{")
    assert "counted by the journals" in " ".join(paid[0]["notices"])
    assert paid[1]["notices"] == []
    assert first["spent_usd"] < paid[0]["spent_usd"] == pytest.approx(paid[0]["cost_usd"])
    assert paid[1]["spent_usd"] == pytest.approx(paid[1]["cost_usd"])


def test_a_process_without_a_budget_between_others_counts_once(tmp_path):
    for words in (("--max-cost-usd", "3"), (), ("--max-cost-usd", "3")):
        document = sweep(*words, "--limit", "1", "--resume", folder=tmp_path).document

    assert document["n_completed"] == 3
    assert document["spent_usd"] == pytest.approx(document["cost_usd"])
