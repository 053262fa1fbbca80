"""Runs that earlier versions stored are read and gone on with, or refused by name.

The fixtures were made by `tools/stored_runs.py` with the version that their `run.json` names. They
stay as they are: a version that stores something else gets fixtures of its own beside them.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from jsonschema import Draft202012Validator, ValidationError

from socratic_bench.benchmarks import load_benchmark
from socratic_bench.documents.files import JudgeFile, TurnFile
from socratic_bench.documents.plain import plain_keys, read
from socratic_bench.documents.run import CuratedDocument, RunDocument
from socratic_bench.documents.schemas import load_schema
from socratic_bench.errors import UsageError
from socratic_bench.studies.compare.stored_run import read_run
from tests.command import Outcome, account, assert_valid, run
from tests.fakes import relayed
from tests.in_process import played
from tests.resuming import TUTOR, Service

STORED = Path(__file__).parent / "data" / "stored_runs"
KINDS = sorted(path.name for path in STORED.iterdir())
FINISHED = [kind for kind in KINDS if kind.startswith("finished")]
CUT = [kind for kind in KINDS if kind not in FINISHED]
MORE = {"budget": ("--max-cost-usd", "1")}
# Where a run is kept differs here from where it was made.
PLACES = ("s3_artifacts", "output_artifacts")
# By the server's clock nobody has renewed the lease of a killed process for long.
LATE = {"Date": "Sun, 22 Nov 2099 12:00:00 GMT"}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


@dataclass(frozen=True)
class Fixture:
    """A stored run in a folder of this test, in a bucket of moto's, or as a document."""

    made: Path
    env: dict[str, str]
    bucket: str
    client: Any

    @property
    def printed(self) -> dict[str, Any]:
        """Nothing of a run that was killed."""
        found: dict[str, Any] = json.loads((self.made / "stdout.json").read_bytes() or b"{}")
        return found

    @property
    def folder(self) -> Path:
        return self.made / "folder"

    @property
    def objects(self) -> Path:
        return self.made / "bucket"

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The journal, from wherever it is whole."""
        if files := list(self.folder.glob("journal/runs/*.jsonl")):
            return [json.loads(line) for line in files[0].read_bytes().splitlines()]
        if objects := sorted(self.objects.glob("journal/runs/*/0*.json")):
            return [json.loads(path.read_bytes())["entry"] for path in objects]
        found: list[dict[str, Any]] = self.printed["journal"]
        return found

    @property
    def n_answered(self) -> int:
        return sum(entry["kind"] == "answered" for entry in self.entries)

    def kept(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each artifact as it was stored, and as it is now."""
        for path in self.folder.glob("raw/runs/*/*.json"):
            stored = STORED / self.made.name / path.relative_to(self.made)
            if stored.exists():
                yield json.loads(stored.read_bytes()), json.loads(path.read_bytes())
        for path in self.objects.glob("raw/runs/*/*.json"):
            key = str(path.relative_to(self.objects))
            body = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
            yield json.loads(path.read_bytes()), json.loads(body)

    def go_on(self, *words: str, by: Callable[..., Outcome] = played) -> Outcome:
        return by(*self._resuming(), *words, env=self.env)

    def _resuming(self) -> Sequence[str]:
        transcript = self.made / "transcript.json"
        words = ["--transcript", str(transcript)] if transcript.exists() else []
        folder, objects = self.folder.exists(), self.objects.exists()
        if not (folder or objects):
            return [*words, "--resume-from", str(self.made / "stdout.json")]
        words += ["--output-dir", str(self.folder)] if folder else []
        words += ["--s3-bucket", self.bucket] if objects else []
        return ["resume", self.entries[0]["run_id"], *words]


@contextmanager
def stored(kind: str, service: Service, moto_url: str, tmp_path: Path) -> Iterator[Fixture]:
    service.reset()
    made = tmp_path / kind
    shutil.copytree(STORED / kind, made)
    session = boto3.Session("AKIATESTKEY", "secret", region_name="us-east-1")
    with (
        closing(session.client("s3", endpoint_url=moto_url)) as client,
        relayed(moto_url, lambda _: None, headers=LATE) as s3,
    ):
        env = account(service.url, TUTOR, AWS_ENDPOINT_URL_S3=s3.url)
        fixture = Fixture(made, env, f"bucket-{uuid4().hex}", client)
        client.create_bucket(Bucket=fixture.bucket)
        for path in fixture.objects.rglob("*"):
            if path.is_file():
                key = str(path.relative_to(fixture.objects))
                client.put_object(Bucket=fixture.bucket, Key=key, Body=path.read_bytes())
        yield fixture


def assert_holds(now: Any, was: Any, at: str = "") -> None:
    """All that was said before is said now; there may be more."""
    if isinstance(was, dict):
        for name, value in was.items():
            assert name in now, f"{at}/{name}"
            assert_holds(now[name], value, f"{at}/{name}")
    elif isinstance(was, list):
        assert len(now) == len(was), at
        for index, (item, value) in enumerate(zip(now, was, strict=True)):
            assert_holds(item, value, f"{at}/{index}")
    else:
        assert now == was, at


@pytest.mark.parametrize("kind", FINISHED)
def test_a_finished_run_is_read_and_nothing_is_called(kind, service, moto_url, tmp_path):
    with stored(kind, service, moto_url, tmp_path) as fixture:
        outcome = fixture.go_on(by=run if kind == FINISHED[0] else played)
        kept = list(fixture.kept())
    was = {key: value for key, value in fixture.printed.items() if key not in PLACES}

    assert (outcome.exit_code, service.requests) == (0, []), outcome.document["error"]
    assert_valid("run", outcome.document)
    assert_holds(outcome.document, was)
    assert len(kept) >= outcome.document["n_turns"]
    for before, now in kept:
        assert_holds(now, before)


@pytest.mark.parametrize("kind", CUT)
def test_a_run_that_was_cut_short_goes_on_and_pays_for_nothing_twice(
    kind, service, moto_url, tmp_path
):
    with stored(kind, service, moto_url, tmp_path) as fixture:
        n_answered = fixture.n_answered
        by = run if kind == CUT[0] else played
        outcome = fixture.go_on(*MORE.get(kind, ()), by=by)
        kept = list(fixture.kept())

    assert outcome.exit_code == 0, outcome.document["error"]
    document = outcome.document
    assert_valid("run", document)
    assert document["status"] == "completed"
    assert document["run_id"] == fixture.entries[0]["run_id"]
    assert n_answered > 0
    assert document["usage"]["total"]["calls"] == n_answered + len(service.requests)
    assert kept or not (fixture.folder.exists() or fixture.objects.exists())
    for before, now in kept:
        if before["kind"] == "turn" or before["overall_score"] is not None:
            assert_holds(now, before)
    for before, now in zip(fixture.printed.get("turns", ()), document["turns"], strict=False):
        assert before["question"] == now["question"]
        if before["score"] is not None:
            assert_holds(now, before)


TYPES = {"run": RunDocument, "curated": CuratedDocument, "turn": TurnFile, "judge": JudgeFile}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_stored_before_is_read_by_the_types_of_now(kind):
    """All of it: what is written again has every value that was there."""
    for path in (STORED / kind).rglob("*.json"):
        document = json.loads(path.read_bytes() or b"{}")
        if document.get("kind") not in TYPES:
            continue
        back = plain_keys(read(path.read_bytes(), TYPES[document["kind"]], str(path)))
        was = {key: value for key, value in document.items() if key in back}
        # These have keys of the benchmark, which are read by its own types.
        for key in ("metrics", "turns", "thresholds"):
            was.pop(key, None)
        assert_holds(back, was)
        for entry, turn in zip(back.get("turns", ()), document.get("turns", ()), strict=True):
            assert_holds(entry, {key: value for key, value in turn.items() if key in entry})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"turn": "3"}, "turn: Expected `int`, got `str`."),
        ({"tokens": {"input": -1, "output": 2}}, "tokens.input: Expected `int` >= 0."),
        ({"attempts": [{}]}, "attempts[0]: Object missing required field `started_at`."),
    ],
)
def test_what_is_wrong_in_a_stored_file_is_named_with_file_and_path(change, reason):
    path = next((STORED / "finished-folder").rglob("turn_000.json"))
    damaged = json.loads(path.read_bytes()) | change

    with pytest.raises(UsageError) as refused:
        read(json.dumps(damaged).encode(), TurnFile, "runs/turn_000.json")

    assert refused.value.problems == (f"runs/turn_000.json: {reason}",)


def wrong_values(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each place in a document, of lists the first, with a value of another type than its own."""
    below = value.items() if isinstance(value, dict) else [*enumerate(value or ())][:1]
    for key, one in below:
        if isinstance(one, dict | list):
            yield (*at, key), "word"
            yield from wrong_values(one, (*at, key))
        elif one is not None:  # nothing tells which type it could have been of
            yield (*at, key), 5 if isinstance(one, str) else [1]


@pytest.mark.parametrize("kind", ["finished-student-pressure", "finished-transcript"])
def test_a_value_of_another_type_anywhere_in_a_stored_run_is_told_of(kind):
    """Whether a comparison or a report has a use for it or not."""
    was = (STORED / kind / "stdout.json").read_bytes()
    benchmark = load_benchmark(json.loads(was)["benchmark"])
    unseen = []
    for place, value in wrong_values(json.loads(was)):
        document = json.loads(was)
        reduce(getitem, place[:-1], document)[place[-1]] = value
        with suppress(UsageError):
            read_run(json.dumps(document).encode(), "run.json", "", benchmark, None)
            unseen.append(place)

    read_run(was, "run.json", "", benchmark, None)
    assert unseen == []


DAMAGED = {
    "cost": (5, "cost: Expected `object | null`, got `int`."),
    "usage": ({"total": {"calls": "many"}}, "usage[...].calls: Expected `int`, got `str`."),
    "timestamps": ("noon", "timestamps: Expected `object`, got `str`."),
    "metrics": ({"help": "much"}, "metrics.help: Expected `float | null`, got `str`."),
    "benchmark": ("nope", "benchmark: No benchmark 'nope': there is execution, socratic."),
}


@pytest.mark.parametrize("command", ["compare", "report", "show", "correct", "judge"])
def test_each_command_over_stored_runs_names_file_and_path(command, tmp_path):
    words = {
        "report": ("--csv", str(tmp_path / "csv")),
        "correct": ("--labels", str(tmp_path / "none.jsonl")),
        "judge": ("--judge-model", "emulator.judge-v1:0", "--offline"),
    }
    for name, (value, said) in DAMAGED.items():
        path = tmp_path / f"{name}.json"
        was = json.loads((STORED / "finished-folder" / "stdout.json").read_bytes())
        path.write_text(json.dumps({**was, name: value}))
        outcome = run(command, str(path), *words.get(command, ()))

        assert outcome.exit_code == 2
        assert f"{path}: {said}" in outcome.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_stored_before_fits_the_schemas_of_now(kind):
    """But for keys that were not there yet: documents keep every key that they had."""
    paths = [
        *(STORED / kind).rglob("raw/runs/*/*.json"),
        *(STORED / kind).rglob("curated/*/*.json"),
    ]
    paths += [STORED / kind / "stdout.json"]
    documents = [json.loads(path.read_bytes()) for path in paths if path.stat().st_size]
    assert documents
    for document in documents:
        errors = Draft202012Validator(load_schema(document["kind"])).iter_errors(document)
        assert [error.message for error in errors if not lacks_a_key(error)] == []


def lacks_a_key(error: ValidationError) -> bool:
    """Whether nothing is wrong but that a key is missing, here or in one of the alternatives."""
    if error.validator != "anyOf":
        return error.validator == "required"
    alternatives: dict[object, list[ValidationError]] = {}
    for below in error.context or ():
        alternatives.setdefault(below.schema_path[0], []).append(below)
    return any(all(map(lacks_a_key, errors)) for errors in alternatives.values())
