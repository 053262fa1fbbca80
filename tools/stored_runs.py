# ruff: noqa: INP001, S603 - a script, not a package; what it starts is the project's own command
"""Makes runs of many kinds, finished and cut short, as fixtures of what the program stores.

    PYTHONPATH=. python tools/stored_runs.py DIR [KIND ...]

Each kind becomes a folder of DIR that must not be there yet: `run.json` says how the run was asked
for and how it ended, `stdout.json` is what was printed (nothing, where the run was killed),
`folder/` and `bucket/` are what the stores hold. The code that makes them is the one on PYTHONPATH:
fixtures of an older version are made in a checkout of it, and are never made anew by a later one.
"""

import json
import logging
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from socratic_bench.version import VERSION
from tests.command import ROOT, account
from tests.resuming import BOTH, OPENING, TUTOR, WORDS, Service

HANG = "hang:role=tutor:after=2:ms=600000"
BUCKET = "stored-runs"
TRANSCRIPT = [
    {"student": "I want to be good at chess.", "tutor": "What does being good at it mean to you?"},
    {"student": "Winning, I guess."},
]
# Answers arrive in the stores while the dialogue goes on.
ARRIVAL_S = 2.0


@dataclass(frozen=True)
class Kind:
    """One kind of run: its words, its stores, what the service does wrong, and how it is ended."""

    words: Sequence[str]
    stores: Sequence[str] = ("folder",)
    faults: Sequence[str] = ()
    ended_by: signal.Signals | None = None
    transcript: bool = False


SEEDED = ("--turns", "3", "--seed", "3")
PUSHED = (*BOTH, "--pressure", "high", *SEEDED)
FOUR = ("--turns", "4")
CUT: dict[str, Any] = {"faults": (HANG,), "ended_by": signal.SIGTERM}
KILLED: dict[str, Any] = {"faults": (HANG,), "ended_by": signal.SIGKILL}
KINDS = {
    "finished-folder": Kind((*WORDS, *SEEDED)),
    "finished-bucket": Kind((*WORDS, "--turns", "3"), ("bucket",)),
    "finished-both": Kind((*WORDS, *SEEDED), ("folder", "bucket")),
    "finished-no-judge": Kind(
        ("--model", TUTOR, "--scenario", "career-change", "--no-judge", *SEEDED)
    ),
    "finished-student-pressure": Kind(PUSHED),
    "finished-transcript": Kind(
        ("--model", TUTOR, "--judge-model", WORDS[5], "--turns", "3"), transcript=True
    ),
    "finished-settings": Kind(
        (*WORDS, *SEEDED, "--temperature", "0.5", "--no-stream", "--request-metadata", "team=a")
    ),
    "cut-folder": Kind((*WORDS, *FOUR), **CUT),
    "cut-bucket": Kind((*WORDS, *FOUR), ("bucket",), **CUT),
    "cut-both": Kind((*BOTH, *FOUR), ("folder", "bucket"), **CUT),
    "cut-document": Kind((*BOTH, *FOUR), (), **CUT),
    "cut-student-pressure": Kind((*PUSHED[:-4], *FOUR, "--seed", "3"), **CUT),
    "cut-transcript": Kind(
        ("--model", TUTOR, "--judge-model", WORDS[5], *FOUR), transcript=True, **CUT
    ),
    "cut-no-judge": Kind(("--model", TUTOR, "--prompt", OPENING, "--no-judge", *FOUR), **CUT),
    "killed-folder": Kind((*WORDS, *FOUR, "--seed", "3"), **KILLED),
    "killed-bucket": Kind((*WORDS, *FOUR), ("bucket",), **KILLED),
    "killed-both": Kind((*WORDS, *FOUR), ("folder", "bucket"), **KILLED),
    "judge-gone": Kind(
        (*WORDS, "--turns", "3", "--max-attempts", "1"), faults=("unavailable:role=judge:after=1",)
    ),
    "judge-gone-bucket": Kind(
        (*WORDS, "--turns", "3", "--max-attempts", "1"),
        ("bucket",),
        faults=("unavailable:role=judge:after=1",),
    ),
    "budget": Kind((*WORDS, "--turns", "4", "--max-cost-usd", "0.02")),
    "denied-document": Kind((*WORDS, *FOUR), (), faults=("access_denied:role=tutor:after=2",)),
}


def main() -> None:
    """Make the kinds that are named, or all of them."""
    target = Path(sys.argv[1])
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    service = Service()
    for name in sys.argv[2:] or KINDS:
        # The folder's own path is part of what is stored.
        with tempfile.TemporaryDirectory(dir="/tmp") as made:
            _make(KINDS[name], Path(made), service, f"http://{host}:{port}")
            shutil.copytree(made, target / name)
        sys.stderr.write(f"{name}: {(target / name / 'run.json').read_text()}")
    service.close()
    server.stop()


def _make(kind: Kind, made: Path, service: Service, s3_url: str) -> None:
    service.reset(faults=kind.faults)
    if kind.transcript:
        (made / "transcript.json").write_text(json.dumps({"turns": TRANSCRIPT}) + "\n")
    places = {
        "folder": ("--output-dir", str(made / "folder")),
        "bucket": ("--s3-bucket", BUCKET),
    }
    words = [*kind.words, *(word for store in kind.stores for word in places[store])]
    words += ["--transcript", str(made / "transcript.json")] if kind.transcript else []
    with _bucket(s3_url) as objects:
        code, printed = _played(
            kind, words, service, account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=s3_url)
        )
        for key, body in objects():
            path = made / "bucket" / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
    (made / "stdout.json").write_bytes(printed)
    told = {"words": list(kind.words), "exit_code": code, "version": VERSION}
    (made / "run.json").write_text(json.dumps(told) + "\n")


def _played(
    kind: Kind, words: Sequence[str], service: Service, env: dict[str, str]
) -> tuple[int, bytes]:
    with subprocess.Popen(
        [sys.executable, "-m", "cli", *words, "--quiet"],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        if kind.ended_by is not None:
            while not any(request.fault for request in service.requests):
                time.sleep(0.02)
            time.sleep(ARRIVAL_S)
            process.send_signal(kind.ended_by)
        printed, _ = process.communicate()
    return process.returncode, printed


@contextmanager
def _bucket(url: str) -> Iterator[Callable[[], Iterator[tuple[str, bytes]]]]:
    """An empty bucket, and what reads all that it holds."""
    session = boto3.Session("AKIAEXAMPLE", "example", region_name="us-east-1")
    with closing(session.client("s3", endpoint_url=url)) as client:
        client.create_bucket(Bucket=BUCKET)

        def objects() -> Iterator[tuple[str, bytes]]:
            for row in client.list_objects_v2(Bucket=BUCKET).get("Contents", []):
                key = row["Key"]
                yield key, client.get_object(Bucket=BUCKET, Key=key)["Body"].read()

        yield objects
        for key, _ in objects():
            client.delete_object(Bucket=BUCKET, Key=key)
        client.delete_bucket(Bucket=BUCKET)


if __name__ == "__main__":
    main()
