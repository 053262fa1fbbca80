"""Looks at all stores before anything is called."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from socratic_bench.errors import UsageError, Words
from socratic_bench.store_ports import ArtifactStore

IN_IMAGE = "RUNNER_IN_IMAGE"  # set in the Dockerfile
MOUNTS = Path("/proc/self/mountinfo")


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


def folder_notices(folder: str | None, environ: Mapping[str, str]) -> Iterator[str]:
    """Said in a container whose end would be that of the output folder, too."""
    if folder and environ.get(IN_IMAGE) and MOUNTS.exists():
        root = Path(folder).resolve()
        if not is_mounted(root, MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")):
            yield (
                f"{root} lies in this container alone and goes when it is removed: mount a folder "
                "or a volume there to keep the run."
            )


def is_mounted(path: Path, mounts: str) -> bool:
    """Whether a path lies on what was mounted to last; `mounts` is Linux's mountinfo."""
    rows = [line.split(" ") for line in mounts.splitlines()]
    kinds = {row[4].replace("\\040", " "): row[row.index("-") + 1] for row in rows}
    place = next((one for one in (path, *path.parents) if str(one) in kinds), None)
    return place is not None and place != place.parent and kinds[str(place)] != "tmpfs"
