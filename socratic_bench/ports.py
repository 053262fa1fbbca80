"""The seams: what a run needs from models, judges, stores and benchmarks, and nothing more."""

from typing import Protocol

from socratic_bench.types import CallKey, Completion, Request


class Model(Protocol):
    """Something that answers a request: a model on Bedrock, or a fake in a test."""

    @property
    def model_id(self) -> str: ...

    def complete(self, request: Request, key: CallKey) -> Completion:
        """Answer, or raise `ModelError` (for good) or `Stopped` (the run is ending)."""
        ...
