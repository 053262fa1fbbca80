"""Both compose commands, each as the only command after a clone."""

import json

import pytest

from tests.image import engine
from tests.image.engine import DOCKER, RUNNER, command, docker

pytestmark = pytest.mark.image


@pytest.fixture(scope="module")
def compose(tmp_path_factory):
    """Runs compose in a copy of the repository, as a clone would have it, without any image."""
    repository = engine.clone(tmp_path_factory.mktemp("clone"))
    services = repository / "docker-compose.yml"
    services.write_text(
        services.read_text().replace("image: socratic-", f"image: {RUNNER}-compose-")
    )

    def start(*words):
        return engine.compose(*words, folder=repository)

    yield start
    start("down", "--volumes", "--timeout=5")


def test_full_run_without_an_account(compose):
    done = compose("run", "--rm", "-T", "runner")

    assert done.code == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("{"))
    document = json.loads(line)
    assert (document["status"], document["n_turns"]) == ("completed", 8)
    assert document["s3_artifacts"]["curated"].startswith("s3://socratic-runs/curated/runs/")

    listed = compose("run", "--rm", "-T", "bucket", "list", "socratic-runs")

    assert listed.code == 0, listed.stderr
    assert document["s3_artifacts"]["curated"] in listed.stdout
    assert listed.stdout.count(f"{document['run_id']}/judge_") == 8


def test_own_arguments_replace_the_default_run(compose):
    done = compose(
        "run",
        "--rm",
        "-T",
        "runner",
        "--model=emulator.lecturer-v1:0",
        "--prompt=Why?",
        "--turns=2",
    )

    assert done.code == 0, done.stderr
    assert '"model":"emulator.lecturer-v1:0"' in done.stdout


def test_every_container_is_hardened_and_publishes_nothing(compose):
    names = compose("ps", "-q").stdout.split()
    assert len(names) >= 2

    for container in json.loads(command([DOCKER, "inspect", *names]).stdout):
        host = container["HostConfig"]
        assert host["ReadonlyRootfs"]
        assert host["CapDrop"] == ["ALL"]
        assert host["SecurityOpt"] == ["no-new-privileges:true"]
        assert not host["PortBindings"]
        assert container["Config"]["User"] == "10001:10001"


def test_network_is_internal(compose):
    (network,) = json.loads(docker("network", "inspect", "socratic-image-test_default"))

    assert network["Internal"]


# Without arguments it runs the whole suite. These files start the command and the emulator, send
# signals, or need files that a build may leave out or write to.
SELECTION = [
    f"tests/test_{name}.py"
    for name in (
        *("cli_run", "documents", "artifacts", "emulator_converse", "signals"),
        *("stored_runs", "house", "wheel"),
    )
]


def test_test_suite(compose):
    done = compose("run", "--rm", "-T", "tests", "-n", "auto", "-q", *SELECTION)

    assert done.code == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
