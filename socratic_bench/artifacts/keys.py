"""The names of a run's artifacts, the same in a bucket and in a folder."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunKeys:
    """Keys of one run. Turn numbers have three digits and grow past 999."""

    run_id: str

    @property
    def raw(self) -> str:
        return f"raw/runs/{self.run_id}/"

    @property
    def curated(self) -> str:
        return f"curated/runs/{self.run_id}.json"

    def turn(self, index: int) -> str:
        return f"{self.raw}turn_{index:03d}.json"

    def judge(self, index: int) -> str:
        return f"{self.raw}judge_{index:03d}.json"
