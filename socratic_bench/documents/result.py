"""The outcome of one run, with its documents as they are printed."""

from socratic_bench.documents.ended_run import EndedRun
from socratic_bench.types import Json


class RunResult(EndedRun, frozen=True, kw_only=True):
    """How a run went, and how it is told."""

    @property
    def document(self) -> dict[str, Json]:
        """The document of this run, as plain JSON values; see `socratic-runner schema run`."""
        from socratic_bench.documents.run import RunDocument

        return RunDocument.of(self).printed

    @property
    def brief(self) -> dict[str, Json]:
        """The short form of the document."""
        from socratic_bench.documents.run import RunDocument, brief_keys

        return brief_keys(RunDocument.of(self))
