"""Looks at all stores before anything is called."""

from collections.abc import Sequence

from socratic_bench.errors import UsageError, Words
from socratic_bench.store_ports import ArtifactStore


def check_stores(stores: Sequence[ArtifactStore]) -> None:
    """Raise `UsageError` with every reason for which nothing can be kept."""
    problems: list[Words] = []
    hints: list[str] = []
    for store in stores:
        try:
            store.check()
        except UsageError as error:
            problems.extend(error.said)
            hints.extend([error.hint] if error.hint else [])
    if problems:
        raise UsageError(problems, hint=" ".join(hints) or None)
