"""The image under the strictest flags, under any user, and as process 1."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.image.doubles import emulator, relay
from tests.image.engine import DOCKER, HARDENED, RUNNER, command, docker, environment, run

pytestmark = pytest.mark.image

MODELS = {"AWS_REGION": "us-east-1", "BEDROCK_MODEL_IDS": '["emulator.socratic-v1:0"]'}
OFFLINE = ("--offline", "--model=emulator.socratic-v1:0", "--prompt=I am stuck.", "--turns=3")


@pytest.mark.parametrize("user", ["10001:10001", "4321:8765", "0:0", "65534"])
def test_whole_run_without_a_network(user, tmp_path):
    """No account, no capability, no writable root: the bound folder is the only way out."""
    tmp_path.chmod(0o777)

    done = run(
        *OFFLINE,
        "--output-dir=out",
        options=(*HARDENED, "--network=none", f"--user={user}", f"--volume={tmp_path}:/work"),
    )

    assert done.code == 0, done.stderr
    document = done.document
    assert (document["status"], document["n_turns"]) == ("completed", 3)
    curated = tmp_path / "out" / "curated" / "runs" / f"{document['run_id']}.json"
    assert json.loads(curated.read_text())["overall_score"] == document["overall_score"]
    assert curated.stat().st_uid == int(user.split(":")[0])


def test_folder_of_somebody_else_is_refused_in_plain_words(tmp_path):
    tmp_path.chmod(0o755)
    os.chown(tmp_path, 0, 0)

    done = run(
        *OFFLINE, "--output-dir=out", options=("--network=none", f"--volume={tmp_path}:/work")
    )

    assert done.code in (2, 4)
    assert done.document["status"] == "failed"
    assert "Traceback" not in done.stderr


def test_closed_folder_of_somebody_else_is_a_mistake_of_usage(tmp_path):
    closed = tmp_path / "out"
    closed.mkdir(mode=0o700)
    os.chown(closed, 4321, 4321)

    done = run(*OFFLINE, "--output-dir=/out", options=("--network=none", f"--volume={closed}:/out"))

    assert done.code == 2
    assert done.document["end_reason"] == "usage"
    assert "no permission" in done.stderr


def test_volume_that_docker_makes_can_be_written_by_any_user():
    docker("volume", "create", "socratic-volume")
    try:
        for user in ("10001:10001", "4321:8765"):
            done = run(
                *OFFLINE,
                f"--output-dir=out-{user[0]}",
                options=(*HARDENED, "--network=none", f"--user={user}", "-vsocratic-volume:/work"),
            )

            assert done.code == 0, done.stderr
    finally:
        docker("volume", "rm", "socratic-volume")


def test_volume_belongs_to_root_elsewhere_and_to_the_first_user_where_it_wrote():
    volume = f"{RUNNER}-owned"
    docker("volume", "create", volume)
    options = (*HARDENED, "--network=none")
    try:
        refused = run(*OFFLINE, "--output-dir=/data", options=(*options, f"-v{volume}:/data"))
        docker("volume", "rm", volume)
        codes = [
            run(
                *OFFLINE,
                "--output-dir=out",
                options=(*options, f"--user={user}", f"-v{volume}:/work"),
            ).code
            for user in ("10001:10001", "4321:8765")
        ]
    finally:
        docker("volume", "rm", volume)

    assert refused.document["status"] == "failed"
    assert "Traceback" not in refused.stderr
    assert codes[0] == 0
    assert codes[1] in (2, 4)


def test_fixed_user_without_privileges():
    program = (
        "import os; print(os.getuid(), os.getgid(), "
        "[row.split()[1] for row in open('/proc/self/status') "
        "if row.startswith(('CapEff', 'NoNewPrivs'))])"
    )

    done = run("-Ic", program, options=("--entrypoint=python", *HARDENED))

    assert done.stdout.split("\n")[0] == "10001 10001 ['0000000000000000', '1']"


def test_run_reaches_its_endpoint_under_the_strictest_flags(stand_ins, bedrock):
    variables = environment(stand_ins | MODELS)

    done = run(*OFFLINE[1:], options=(*HARDENED, "--network=host", *variables))

    assert done.code == 0, done.stderr
    assert bedrock.calls


def test_work_folder_cannot_take_the_programs_place(tmp_path):
    """Python usually prefers modules in the current folder; the image does not."""
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "socratic_runner.py").write_text("raise SystemExit('taken over')")

    done = run(
        *OFFLINE,
        options=("--network=none", f"--volume={tmp_path}:/work", "--env=PYTHONPATH=/work"),
    )

    assert done.code == 0, done.stderr


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A key and a certificate of our own making for the loopback address, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    plain = (PrivateFormat.PKCS8, NoEncryption())
    file = tmp_path_factory.mktemp("tls") / "certificate.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, *plain) + signed.public_bytes(Encoding.PEM))
    file.chmod(0o644)
    return file


@pytest.mark.parametrize("trusted", [True, False])
def test_certificates_are_checked_and_can_be_added(trusted, certificate, emulator_url, stand_ins):
    with relay(emulator_url, certificate=certificate) as bedrock:
        variables = {
            **stand_ins,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock.url,
            **MODELS,
            **({"AWS_CA_BUNDLE": "/certificate.pem"} if trusted else {}),
        }
        options = environment(variables)

        done = run(
            *OFFLINE[1:],
            "--max-attempts=1",
            options=("--network=host", f"-v{certificate}:/certificate.pem:ro", *options),
        )

    assert (done.code == 0) == trusted, done.stderr
    assert bool(bedrock.calls) == trusted
    assert trusted or "CERTIFICATE_VERIFY_FAILED" in done.stderr


@pytest.fixture
def slow_run(stand_ins):
    """A run whose every reply takes a second, a turn or two into the dialogue."""
    with emulator("--latency-ms=1000") as url:
        variables = {
            **stand_ins,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
            **MODELS,
        }
        options = environment(variables)
        words = ["--model=emulator.socratic-v1:0", "--prompt=I am stuck.", "--turns=100"]
        name = docker("run", "-d", "--network=host", *HARDENED, *options, RUNNER, *words)
        _wait_for_turn(name)
        yield name
        docker("rm", "-f", name)


def _wait_for_turn(name):
    for _ in range(200):
        if "turn   1" in command([DOCKER, "logs", name]).stderr:
            return
        time.sleep(0.1)
    pytest.fail("The run did not get to its second turn.")


@pytest.mark.parametrize(("signal", "code"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
def test_stopped_run_reports_what_it_has(slow_run, signal, code):
    """Process 1 gets no default handling of signals; the program handles them itself.

    A container that `docker stop` has to kill ends with 137.
    """
    if signal == "SIGTERM":
        docker("stop", slow_run)
    else:
        docker("kill", f"--signal={signal}", slow_run)

    assert docker("wait", slow_run) == str(code)
    document = command([DOCKER, "logs", slow_run]).document
    assert (document["status"], document["end_reason"]) == ("partial", "interrupted")
    assert document["n_turns"] >= 1


def test_emulator_is_stopped_calmly():
    name = docker("run", "-d", "--network=none", *HARDENED, RUNNER, "emulator", "--port=8080")
    try:
        for _ in range(100):
            if "endpoint_url" in command([DOCKER, "logs", name]).stdout:
                break
            time.sleep(0.1)
        docker("stop", name)

        assert docker("inspect", "--format={{.State.ExitCode}}", name) == "0"
    finally:
        docker("rm", "-f", name)


def test_notice_when_the_output_folder_is_on_no_mount(tmp_path):
    tmp_path.chmod(0o777)
    words = ("--offline", "--model", "emulator.socratic-v1:0", "--prompt", "Hi", "--turns", "1")
    mounted = run(*words, "-o", "runs", options=("-v", f"{tmp_path}:/work/runs"))
    alone = run(*words, "-o", "runs")

    assert mounted.document["notices"] == []
    assert "/work/runs lies in this container alone" in alone.document["notices"][0]
    assert "note: /work/runs lies in this container alone" in alone.stderr
