"""Files below the output folder: with the user's own modes, never by a link, never impossible."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.command import OFFLINE, Outcome, account, assert_valid, daily, run
from tests.resuming import TUTOR, Service, store_run


def long(case: object) -> Any:
    """A case for every release, and not for every day."""
    return pytest.param(case, marks=pytest.mark.torture)


SHORT = (*OFFLINE, "--turns", "1")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


def with_umask(mask: str, *words: str) -> Outcome:
    entry = ("sh", "-c", f'umask {mask}; exec "$@"', "sh", sys.executable, "-m", "cli")
    return run(*words, entry=entry)


@pytest.mark.parametrize(
    ("mask", "file_mode", "folder_mode"), [("027", 0o640, 0o750), ("002", 0o664, 0o775)]
)
def test_all_files_and_folders_are_made_with_the_umask(mask, file_mode, folder_mode, tmp_path):
    out = tmp_path / "out"
    outcome = with_umask(mask, *SHORT, "--resume", "--output-dir", str(out))
    modes = {
        str(path.relative_to(out)): (path.is_dir(), path.stat().st_mode & 0o7777)
        for path in out.rglob("*")
    }

    assert outcome.exit_code == 0
    assert {"raw", "curated", "journal"} <= modes.keys()
    assert any(name.endswith("/lock") for name in modes)
    assert {mode for is_folder, mode in modes.values() if not is_folder} == {file_mode}
    assert {mode for is_folder, mode in modes.values() if is_folder} == {folder_mode}


@pytest.mark.parametrize(
    "link",
    daily(
        ["raw", "raw/runs", "curated", "curated/runs", "journal", "journal/runs"],
        "raw",
        "curated/runs",
        "journal",
    ),
)
@pytest.mark.parametrize("where", ["outside", long("inside"), long("nowhere")])
def test_no_folder_that_is_a_link_is_written_through(link, where, tmp_path):
    out = tmp_path / "out"
    elsewhere = {
        "outside": tmp_path / "elsewhere",
        "inside": out / "other",
        "nowhere": tmp_path / "not" / "there",
    }[where]
    (out / link).parent.mkdir(parents=True, exist_ok=True)
    if where != "nowhere":
        elsewhere.mkdir(parents=True)
    (out / link).symlink_to(elsewhere)
    outcome = run(*SHORT, "--no-judge", "--output-dir", str(out))

    assert (outcome.exit_code, outcome.document["end_reason"]) == (4, "artifacts")
    assert "leads out of the output folder" in outcome.stderr
    assert "Remove the links" in outcome.stderr
    assert list(elsewhere.rglob("*")) == []


def resume(service: Service, out: Path, run_id: str) -> Outcome:
    words = ("resume", run_id, "--output-dir", str(out))
    return run(*words, env=account(service.url, TUTOR))


@pytest.mark.parametrize("link", ["raw/runs/{}", "journal/runs", "journal/runs/{}.jsonl"])
def test_a_run_does_not_go_on_through_a_link(link, service, tmp_path):
    out, run_id = store_run(tmp_path, service, complete=False)
    path, elsewhere = out / link.format(run_id), tmp_path / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)
    before = content(elsewhere)
    outcome = resume(service, out, run_id)

    assert outcome.exit_code == (4 if "raw" in link else 2)
    assert "leads out of the output folder" in outcome.stderr
    assert content(elsewhere) == before
    assert "raw" in link or service.requests == []


def content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [found for found in path.rglob("*") if found.is_file()]
    return {str(found): found.read_bytes() for found in files}


def test_a_lock_that_is_a_link_is_not_made_elsewhere(tmp_path):
    """It is named by the command line alone, so that others can predict where it will be."""
    out, victim = tmp_path / "out", tmp_path / "victim"
    assert run(*SHORT, "--resume", "--seed", "1", "--output-dir", str(out)).exit_code == 0
    (lock,) = out.glob("journal/identities/*/lock")
    lock.unlink()
    lock.symlink_to(victim)
    outcome = run(*SHORT, "--resume", "--seed", "1", "--output-dir", str(out))

    assert (outcome.exit_code, outcome.document["end_reason"]) == (4, "artifacts")
    assert "leads out of the output folder" in outcome.stderr
    assert not victim.exists()


def test_a_link_in_the_place_of_an_artifact_is_replaced(service, tmp_path):
    """Neither is what it leads to read as the run's own, nor is it written."""
    out, run_id = store_run(tmp_path, service, complete=True)
    victim = tmp_path / "victim"
    turn, curated = out / f"raw/runs/{run_id}/turn_000.json", out / f"curated/runs/{run_id}.json"
    for path in (turn, curated):
        path.unlink()
        path.symlink_to(victim)
    victim.write_text("mine")
    outcome = resume(service, out, run_id)

    assert outcome.exit_code == 0, outcome.stderr
    assert victim.read_text() == "mine"
    assert not turn.is_symlink()
    assert not curated.is_symlink()
    assert_valid("turn", json.loads(turn.read_bytes()))


def test_the_output_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    outcome = run(*SHORT, "--resume", "--output-dir", str(tmp_path / "out"))

    assert outcome.exit_code == 0
    assert list((tmp_path / "real").glob("curated/runs/*.json"))


# --- journals whose seals are right, and whose contents cannot be ---


def reseal(entry: dict[str, Any]) -> bytes:
    """A line as a journal has it: anybody can make its sum, so that it is no signature."""
    plain = {name: value for name, value in entry.items() if name != "sha256"}
    return orjson.dumps({**plain, "sha256": sha256(orjson.dumps(plain)).hexdigest()[:16]})


def forge(
    out: Path, role: str, change: Callable[[dict[str, Any]], None], kind: str = "answered"
) -> None:
    """Change the first answer of a role, or another entry, and seal it anew."""
    (path,) = out.glob("journal/runs/*.jsonl")
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(next(e for e in entries if e["kind"] == kind and e["key"]["role"] == role))
    path.write_bytes(b"".join(reseal(entry) + b"\n" for entry in entries))


def tokens(value: object) -> Callable[[dict[str, Any]], None]:
    return lambda entry: entry["completion"]["usage"].update(output_tokens=value)


def figure(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda entry: entry["completion"].update({name: value})


def attempt(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda entry: entry["completion"]["attempts"][0].update({name: value})


def score(value: object) -> Callable[[dict[str, Any]], None]:
    def change(entry: dict[str, Any]) -> None:
        for block in entry["completion"]["message"]["content"]:
            name = "arguments" if block["kind"] == "tool_use" else "text"
            block[name] = json.dumps({**json.loads(block[name]), "form": value})

    return change


FORGED = {
    "negative tokens": ("tutor", tokens(-5)),
    "half a token": ("tutor", tokens(1.5)),
    "tokens in words": ("judge", tokens("many")),
    "no number of tokens": ("tutor", tokens(None)),
    "true tokens": ("tutor", tokens(True)),
    "more tokens than there are": ("judge", tokens(10**15)),
    "a negative latency": ("tutor", figure("latency_ms", -1.0)),
    "a latency in words": ("judge", figure("latency_ms", "soon")),
    "no latency": ("tutor", figure("latency_ms", None)),
    "a stop reason that is a number": ("tutor", figure("stop_reason", 7)),
    "a negative wait": ("tutor", attempt("wait_ms", -0.5)),
    "bounds below zero": ("judge", attempt("input_tokens_at_most", -1)),
    "a score beyond its range": ("judge", score(99)),
    "a score below its range": ("judge", score(-1)),
    "a score off its step": ("judge", score(2.75)),
    "a score in words": ("judge", score("three")),
}


@pytest.mark.parametrize("complete", [False, long(True)])
@pytest.mark.parametrize(
    "name",
    daily(
        FORGED,
        "half a token",
        "no latency",
        "a stop reason that is a number",
        "a negative wait",
        "a score off its step",
    ),
)
def test_a_sealed_journal_with_what_no_run_writes_is_refused(complete, name, service, tmp_path):
    out, run_id = store_run(tmp_path, service, complete=complete)
    role, change = FORGED[name]
    forge(out, role, change)
    before = content(out)
    outcome = resume(service, out, run_id)

    assert (outcome.exit_code, service.requests) == (2, []), outcome.stderr
    assert run_id in outcome.document["error"]["message"]
    assert "which no run writes" in outcome.document["error"]["message"]
    assert content(out) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_tokens_at_most", -1000),
        ("output_tokens_at_most", 10**14),
        ("input_tokens_at_most", "x"),
        ("elapsed_s", "soon"),
        ("key", {"role": "tutor", "index": 0.5, "part": "", "repeat": 0}),
    ],
)
def test_nor_may_what_a_request_can_have_taken_be_impossible(name, value, service, tmp_path):
    """It counts where nothing else tells of the request, so it cannot be left out."""
    out, run_id = store_run(tmp_path, service, complete=False)
    forge(out, "tutor", lambda entry: entry.update({name: value}), kind="asked")
    outcome = resume(service, out, run_id)

    assert (outcome.exit_code, service.requests) == (2, []), outcome.stderr
    assert "which no run writes" in outcome.document["error"]["message"]


def test_a_journal_that_is_only_sealed_anew_goes_on(service, tmp_path):
    """What the forgeries above change is what they are refused for."""
    out, run_id = store_run(tmp_path, service, complete=False)
    forge(out, "tutor", figure("stop_reason", "end_turn"))

    assert resume(service, out, run_id).exit_code == 0


def test_a_judge_that_once_gave_an_impossible_score_stops_no_run(tmp_path):
    """That was a judge's answer, and no score; the run went on and asked once more."""
    from tests.fakes import FakeBedrock, answer, refusal, scored

    judge, replies = [scored(99, 3, 3), scored(1, 2, 3)], [answer("Why?"), refusal(400, "Denied")]
    words = ("--model", "anthropic.claude-3-5-sonnet-20241022-v1:0", "--prompt", "Why?")
    words += ("--turns", "2", "--output-dir", str(tmp_path), "--max-attempts", "1", "--seed", "1")
    with FakeBedrock({words[1]: replies, "other.judge-v1:0": judge}) as served:
        env = account(served.url, RUNNER_JUDGE_MODEL="other.judge-v1:0")
        cut = run(*words, env=env)
        served.reset()
        served.scripts = {words[1]: [answer("And then?")], "other.judge-v1:0": [scored(1, 2, 3)]}
        whole = run(*words, "--resume", env=env)

    assert (cut.exit_code, whole.exit_code) == (3, 0), whole.stderr
    assert [turn["score"] for turn in whole.document["turns"]] == [6.0, 6.0]
    assert whole.document["run_id"] == cut.document["run_id"]
