"""What a run keeps, where, and in how much memory."""

import functools
import importlib
import json
import re

import pytest
from msgspec.structs import replace

from socratic_bench import run
from socratic_bench.storage.delivery import Delivery
from tests.fakes import (
    KEPT,
    FakeBedrock,
    Said,
    Sent,
    breaches,
    stored,
)
from tests.scripted_run import ASKS, CONFIG, DENIED, GOOD


class TestArtifacts:
    def test_everything_is_kept_in_the_documented_places(self, play, out):
        result = play()
        raw = f"raw/runs/{result.run_id}"

        kept = stored(out)
        assert set(kept) == {
            *(f"{raw}/turn_{n:03d}.json" for n in range(3)),
            *(f"{raw}/judge_{n:03d}.json" for n in range(3)),
            f"curated/runs/{result.run_id}.json",
        }
        assert result.document["output_artifacts"] == {
            "raw": f"{out}/{raw}/",
            "curated": f"{out}/curated/runs/{result.run_id}.json",
        }
        assert result.document["s3_artifacts"] is None
        assert re.fullmatch(r"run-[0-9A-HJKMNP-TV-Z]{26}", result.run_id)

    def test_the_curated_file_is_the_runs_document(self, play, out):
        result = play()
        curated = stored(out)[f"curated/runs/{result.run_id}.json"]

        assert breaches("curated", curated) == []
        assert {**curated, "kind": "run"} == json.loads(json.dumps(result.document))

    @pytest.mark.parametrize("broken", ["raw", "curated"])
    def test_a_store_that_fails_leaves_no_curated_file(
        self, play, out, service, monkeypatch, broken
    ):
        """The server takes everything but what goes under one half of the tree."""

        def s3(sent: Sent) -> Said:
            is_taken = sent.method == "PUT" and f"/{broken}/" not in sent.path
            return KEPT if is_taken else Said(b"", 403)

        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        with FakeBedrock({"": s3}) as bucket:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.url)
            result = play(s3_bucket="bucket")

        document = result.document
        assert (result.end_reason, result.status, result.exit_code) == ("artifacts", "partial", 4)
        assert (document["n_turns"], document["metrics"]["overall_score"]) == (3, 10.0)
        assert document["s3_artifacts"]["curated"] is None
        assert document["error"]["code"] == "artifacts"
        assert f"/{broken}/" in document["error"]["message"]
        taken = [sent.path for sent in bucket.sent if "/curated/" in sent.path]
        assert len(taken) == (0 if broken == "raw" else 2)
        assert [key for key in stored(out) if key.startswith("curated/")] == []

    def test_what_ended_the_run_is_told_before_what_was_lost(self, play, monkeypatch):
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        with FakeBedrock({"": [Said(b"", 403)]}) as bucket:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.url)
            result = play(s3_bucket="bucket", tutor=[ASKS, DENIED])

        assert (result.end_reason, result.exit_code) == ("access", 3)
        assert len(result.document["notices"]) == 1
        assert "artifacts are missing" in result.document["notices"][0]


class TestMemory:
    """A bucket that takes nothing; memory for the journal of 20 turns but not their files."""

    @pytest.fixture(autouse=True)
    def out_of_order(self, service, monkeypatch):
        service.scripts = {"tutor": [ASKS], "judge": [GOOD]}
        module = importlib.import_module("socratic_bench.runs.stores")
        monkeypatch.setattr(module, "Delivery", functools.partial(Delivery, memory_bytes=72_000))
        with FakeBedrock({"": [Said(b"", 503)]}) as bucket:
            monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.url)
            yield

    CONFIG = replace(CONFIG, turns=20, max_attempts=1, s3_bucket="bucket")

    def test_without_a_folder_the_run_ends_when_it_is_full(self):
        result = run(self.CONFIG)

        assert (result.end_reason, result.exit_code) == ("artifacts", 4)
        assert "wait for s3://bucket/" in result.document["error"]["message"]
        assert 0 < result.document["n_turns"] < 20

    def test_with_a_folder_the_files_wait_there_and_the_dialogue_goes_on(self, tmp_path):
        result = run(replace(self.CONFIG, output_dir=str(tmp_path)))

        assert (result.end_reason, result.document["n_turns"]) == ("artifacts", 20)
        assert "artifacts are missing" in result.document["error"]["message"]
        assert len([key for key in stored(tmp_path) if key.startswith("raw/")]) == 40
