"""A sweep looks at its models and stores: beside its first cells, or, strictly, before them."""

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.command import CLAUDE, LLAMA, account, run

DENIED = f"access_denied:model={LLAMA}"
HINT = "enable the model's access in the Bedrock console"


def sweep(folder, *words, fault=None):
    faults = (parse_fault(fault),) if fault else ()
    with Emulator(Settings(faults=faults)) as served:
        return run(
            *("sweep", "--models", CLAUDE, LLAMA, "--scenarios", "career-change", "--turns", "1"),
            *("--no-judge", "--seed", "7", "-o", str(folder), *words),
            env=account(served.url, CLAUDE, LLAMA),
        )


def played(folder):
    return [*folder.glob("curated/runs/*.json")]


def test_strictly_nothing_is_played_if_a_model_cannot_be_called(tmp_path):
    outcome = sweep(tmp_path, "--strict", fault=DENIED)
    error = outcome.document["error"]

    assert outcome.exit_code == 3
    assert [*tmp_path.glob("raw/runs/*")] == []
    assert error["code"] == "access_denied"
    assert error["message"].startswith(f"No run was started: 1 check failed. {LLAMA}: ")
    assert HINT in error["hint"]


def test_beside_its_first_cells_what_fails_is_told_and_the_others_go_on(tmp_path):
    outcome = sweep(tmp_path, fault=DENIED)
    told = [text for text in outcome.document["notices"] if text.startswith(f"{LLAMA}: ")]

    assert outcome.exit_code != 0
    assert len(played(tmp_path)) == 1
    assert len(told) == 1
    assert HINT in told[0]
    assert told[0] in outcome.stderr


def test_what_a_look_finds_is_told_with_flags(tmp_path):
    env = account("http://127.0.0.1:9", CLAUDE)
    kept = {name: value for name, value in env.items() if not name.startswith("AWS_SEC")}
    grid = ("--models", CLAUDE, "--scenarios", "career-change", "--turns", "1", "--strict")
    outcome = run("sweep", *grid, "-o", str(tmp_path), env=kept)

    assert outcome.exit_code == 3
    assert "; --offline needs none." in " ".join(outcome.document["notices"])


def test_strictly_all_is_played_if_all_is_well(tmp_path):
    outcome = sweep(tmp_path, "--strict")

    assert (outcome.exit_code, outcome.document["error"]) == (0, None)
    assert len(played(tmp_path)) == 2
    assert [*tmp_path.glob("journal/trials/*")] == []


def test_what_is_said_of_a_cell_names_flags_and_no_run_to_go_on_with(tmp_path):
    words = ("--strict", "--max-attempts", "1")
    outcome = sweep(tmp_path, *words, fault=f"model_timeout:model={LLAMA}:after=1:count=100")
    (failed,) = outcome.document["failed"]

    assert failed["error"]["hint"] == (
        "The model took too long; lower --max-tokens or run again later."
    )
