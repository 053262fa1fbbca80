"""The provider of tutors whose dialogues were imported: nobody answers for them any more."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from socratic_bench.errors import Problem
from socratic_bench.ports.provider import Answer, ErrorKind, Provider, ProviderModule
from socratic_bench.settings import CoreConfig


class ImportedTutorError(Exception):
    """The tutor of an imported dialogue was called."""


class ImportedTutors(Provider):
    """Refuses every request."""

    def send(self, model_id: str, *_: object) -> Answer:
        raise ImportedTutorError(model_id)

    def error_kind(self, error: Exception) -> ErrorKind | None:
        if not isinstance(error, ImportedTutorError):
            return None
        return ErrorKind(
            code="unknown_model",
            message="it is the tutor of imported dialogues, and cannot be called",
            model_id=str(error),
            end_reason="unknown_model",
            hint="Judge its dialogues: socratic-runner judge FILE.",
        )

    def sizes(self, *_: object) -> tuple[()]:
        return ()


class Imported(ProviderModule):
    """Imported tutors as a `ProviderModule`."""

    name = "imported"

    def problems(self, config: CoreConfig) -> tuple[Problem, ...]:
        """None with --offline, too: nobody is called."""
        del config
        return ()

    def sdk_version(self) -> str:
        return "none"

    @contextmanager
    def open(self, *_: Any) -> Iterator[Provider]:  # noqa: ANN401 -- nothing of it is needed
        yield ImportedTutors()


PROVIDER = Imported()
