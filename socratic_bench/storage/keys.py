"""The names of a run's artifacts, the same in a bucket and in a folder."""

import re

from msgspec import Struct

from socratic_bench.errors import UsageError

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
_JUDGING = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
JUDGING_FILE = "judging.json"
_IDENTITY = re.compile(r"[A-Za-z0-9-]{1,128}")


def index_of(identity: str) -> str:
    """The folder that names the runs of one identity in a bucket. Raises `ValueError` for an
    identity that is no plain digest.
    """
    if not _IDENTITY.fullmatch(identity):
        raise ValueError(f"not a digest: {identity[:100]!r}")
    return f"journal/identities/{identity}/"


class RunKeys(Struct, frozen=True):
    """The keys of one run's files. Turn numbers have three digits and grow past 999. Raises
    `UsageError` for an id that is no plain name: it may come from outside.
    """

    run_id: str

    def __post_init__(self) -> None:
        if not _RUN_ID.fullmatch(self.run_id):
            raise UsageError([f"This is not a run id: {self.run_id[:100]!r}."])

    @property
    def raw(self) -> str:
        return f"raw/runs/{self.run_id}/"

    @property
    def curated(self) -> str:
        return f"curated/runs/{self.run_id}.json"

    @property
    def journal(self) -> str:
        """The folder of a run's journal in a bucket."""
        return f"journal/runs/{self.run_id}/"

    @property
    def lease(self) -> str:
        return f"{self.journal}lease.json"

    def entry(self, sequence: int) -> str:
        return f"{self.journal}{sequence:06d}.json"

    def index(self, identity: str) -> str:
        """The object that names this run among those of one identity."""
        return f"{index_of(identity)}{self.run_id}"

    @property
    def journal_file(self) -> str:
        """A run's journal in a folder."""
        return f"journal/runs/{self.run_id}.jsonl"

    def turn(self, index: int) -> str:
        return f"{self.raw}turn_{index:03d}.json"

    @property
    def closing_verdict(self) -> str:
        return f"{self.raw}closing_verdict.json"

    def judge(self, index: int) -> str:
        return f"{self.raw}judge_{index:03d}.json"

    def judgings(self, name: str = "") -> str:
        """The folder of all judgings of the run, or of the one of a name."""
        if name and not _JUDGING.fullmatch(name):
            raise UsageError([f"This is not the name of a re-scoring: {name[:100]!r}."])
        return f"raw/runs/{self.run_id}/judgings/{name and f'{name}/'}"


class JudgingKeys(RunKeys, frozen=True):
    """Keys below the folder of a judging, which holds nothing else. Turns are not stored again."""

    @property
    def raw(self) -> str:
        return ""

    @property
    def curated(self) -> str:
        return JUDGING_FILE

    def turn(self, index: int) -> str:  # noqa: ARG002
        return ""
