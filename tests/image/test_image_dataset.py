"""Programs that start processes: tested only here, in a container with limits."""

import json

import pytest

from tests.image.engine import HARDENED, REPOSITORY, run
from tests.test_dataset_reading import written
from tests.test_dataset_verify import FAULTS, RIGHT, row

pytestmark = pytest.mark.image

CONFINED = (*HARDENED, "--network=none", "--init=false", "--cpus=1")
# What root needs to become nobody, and to end nobody's processes.
ROOT_CAPABILITIES = ("--cap-add=SETUID", "--cap-add=SETGID", "--cap-add=KILL")
SCRIPT = "hostile_programs.py"
USERS = {"own": ("--user=10001:10001",), "nobody": ("--user=0:0", *ROOT_CAPABILITIES)}


def execute(user, *words):
    """Run the script. Return each program's outcome, and the processes left at the end."""
    volume = f"--volume={REPOSITORY / 'tests/image' / SCRIPT}:/{SCRIPT}:ro"
    options = (*CONFINED, *USERS[user], volume, "--entrypoint=python")
    done = run("-B", f"/{SCRIPT}", *words, options=options)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("user", USERS)
def test_processes_that_programs_leave_are_killed_where_the_kernel_allows_them(user):
    result = execute(user)
    programs = result["programs"]

    assert {name: program["processes"] for name, program in programs.items()} == {
        name: [] for name in programs
    }
    assert result["processes"] == []
    for name in ("daemon", "deaf", "waits"):
        assert (programs[name]["outcome"], programs[name]["text"]) == ("ok", "5"), name
        assert programs[name]["has_left"], name
    assert programs["bomb"]["outcome"] == "timeout"
    assert programs["hops"]["outcome"] == programs["forges"]["outcome"] == "no_result"
    assert programs["calm"]["text"] == "5"


@pytest.mark.parametrize("user", USERS)
def test_the_kernel_refuses_processes(user):
    programs = execute(user, "refused")["programs"]

    for name in ("daemon", "deaf", "waits", "hops", "kills"):
        assert (programs[name]["outcome"], programs[name]["error"]) == ("ok", "PermissionError"), (
            name
        )
    assert not any(program["has_left"] or program["processes"] for program in programs.values())
    assert programs["threads"]["text"] == programs["calm"]["text"] == "5"


@pytest.mark.parametrize("user", USERS)
def test_hostile_rows_are_reported_and_do_no_harm(user, tmp_path):
    begins = [
        row(f"{name}-begins", body, head="import os")
        for name, body in {
            "fork": "    return x if os.fork() else os.setsid()",
            "system": "    return x + os.system('sleep 100 &')",
        }.items()
    ]
    place = written(
        tmp_path / "rows.jsonl", *(faulty for faulty, _ in FAULTS.values()), *RIGHT, *begins
    )
    options = (*CONFINED, *USERS[user], f"--volume={place}:/work/rows.jsonl:ro")
    done = run("dataset", "verify", "rows.jsonl", "--timeout=2", "--runs=2", options=options)
    document = done.document

    assert done.code == 2, done.stderr
    assert document["isolation"].pop("hides_files") in (True, False)  # as the host's kernel can
    assert document["isolation"] == {"user": user, "refuses_calls": True, "network_open": False}
    faults = {
        result["id"]: [finding["fault"] for finding in result["findings"]]
        for result in document["rows"]
    }
    assert {name: faults[name] for name in FAULTS} == {
        name: [fault] for name, (_, fault) in FAULTS.items()
    }
    assert [right["id"] for right in RIGHT if faults[right["id"]]] == []
    assert faults["fork-begins"] == ["error"]
    assert faults["system-begins"][0] in ("error", "wrong_output")
    assert "the network was open" not in done.stderr


def test_root_that_cannot_become_nobody_executes_nothing(tmp_path):
    options = (*CONFINED, "--user=0:0")
    done = run("dataset", "verify", "shipped", options=options)

    assert done.code == 2
    assert "may not take rights from itself" in done.document["error"]["message"]


def test_the_shipped_problems_are_right_in_the_image():
    done = run("dataset", "verify", "shipped", options=(*CONFINED, "--user=4321:8765"))

    assert (done.code, done.document["ok"]) == (0, True), done.stderr
