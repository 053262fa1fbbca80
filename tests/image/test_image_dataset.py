"""Programs that begin processes of their own: here alone, where a container bounds them."""

import json

import pytest

from tests.image.engine import HARDENED, REPOSITORY, run
from tests.test_dataset_reading import written
from tests.test_dataset_verify import FAULTS, RIGHT, row

pytestmark = pytest.mark.image

CONFINED = (*HARDENED, "--network=none", "--init=false", "--cpus=1")
# What root needs to become nobody, and to end what is nobody's.
ROOT_S = ("--cap-add=SETUID", "--cap-add=SETGID", "--cap-add=KILL")
SCRIPT = "hostile_programs.py"
USERS = {"own": ("--user=10001:10001",), "nobody": ("--user=0:0", *ROOT_S)}


def executed(user, *words):
    """What becomes of each of the script's programs."""
    volume = f"--volume={REPOSITORY / 'tests/image' / SCRIPT}:/{SCRIPT}:ro"
    options = (*CONFINED, *USERS[user], volume, "--entrypoint=python")
    done = run("-B", f"/{SCRIPT}", *words, options=options)
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("user", USERS)
def test_what_programs_leave_is_killed_even_where_the_kernel_refuses_nothing(user):
    told = executed(user)
    found = told["found"]

    assert {name: one["others"] for name, one in found.items()} == {name: [] for name in found}
    assert told["others"] == []
    for name in ("daemon", "deaf", "waits"):
        assert (found[name]["outcome"], found[name]["text"]) == ("ok", "5"), name
        assert found[name]["has_left"], name
    assert found["bomb"]["outcome"] == "timeout"
    assert found["hops"]["outcome"] == found["forges"]["outcome"] == "no_result"
    assert found["calm"]["text"] == "5"


@pytest.mark.parametrize("user", USERS)
def test_the_kernel_refuses_processes(user):
    found = executed(user, "refused")["found"]

    for name in ("daemon", "deaf", "waits", "hops", "kills"):
        assert (found[name]["outcome"], found[name]["error"]) == ("ok", "PermissionError"), name
    assert not any(one["has_left"] or one["others"] for one in found.values())
    assert found["threads"]["text"] == found["calm"]["text"] == "5"


@pytest.mark.parametrize("user", USERS)
def test_hostile_rows_are_told_and_nothing_else_happens(user, tmp_path):
    begins = [
        row(f"{name}-begins", body, head="import os")
        for name, body in {
            "fork": "    return x if os.fork() else os.setsid()",
            "system": "    return x + os.system('sleep 100 &')",
        }.items()
    ]
    place = written(tmp_path / "rows.jsonl", *(one for one, _ in FAULTS.values()), *RIGHT, *begins)
    options = (*CONFINED, *USERS[user], f"--volume={place}:/work/rows.jsonl:ro")
    done = run("dataset", "verify", "rows.jsonl", "--timeout=2", "--runs=2", options=options)
    document = done.document

    assert done.code == 2, done.stderr
    assert document["isolation"].pop("hides_files") in (True, False)  # as the host's kernel can
    assert document["isolation"] == {"user": user, "refuses_calls": True, "network_open": False}
    faults = {one["id"]: [each["fault"] for each in one["findings"]] for one in document["rows"]}
    assert {name: faults[name] for name in FAULTS} == {
        name: [fault] for name, (_, fault) in FAULTS.items()
    }
    assert [one["id"] for one in RIGHT if faults[one["id"]]] == []
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
