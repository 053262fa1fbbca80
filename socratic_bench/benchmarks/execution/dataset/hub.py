"""Data sets of the Hugging Face Hub, or of a folder that is laid out as one there.

The extra `tables` brings huggingface_hub, which keeps what it has fetched in its cache and needs
no network with HF_HUB_OFFLINE=1.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct

from socratic_bench.benchmarks.execution.dataset.tables import HINT
from socratic_bench.errors import ArtifactError, UsageError
from socratic_bench.settings.files import MAX_STORED_BYTES

# The first form that a data set has files of is read.
_SUFFIXES = (".parquet", ".jsonl", ".json")
_SPLITS = ("train", "test", "validation", "valid", "val", "dev", "eval")
_ABOUT = {"dataset_infos.json", "dataset_info.json", "state.json"}


class Fetched(Struct, frozen=True, kw_only=True):
    """Files of one split, in order, and the commit that they are of."""

    files: tuple[Path, ...]
    revision: str | None = None


def fetch(name: str, split: str) -> Fetched:
    """The files of `OWNER/NAME[@REVISION]`. Raises `UsageError` if there are none, or without
    huggingface_hub, and `ArtifactError` if the Hub cannot be reached.
    """
    try:
        from huggingface_hub import constants, errors
    except ImportError as error:
        raise UsageError([f"hf:{name}: huggingface_hub is not installed."], hint=HINT) from error
    repository, _, revision = name.partition("@")
    try:
        if constants.HF_HUB_OFFLINE:
            return _cached(repository, split, revision or None)
        return _downloaded(repository, split, revision or None)
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise UsageError(
            [f"hf:{name}: the Hub has none of this name, or none for you."],
            hint="Set HF_TOKEN if it is not public.",
        ) from error
    except errors.HFValidationError as error:
        raise UsageError([f"hf:{name}: this is not OWNER/NAME."]) from error
    except errors.LocalEntryNotFoundError as error:
        raise UsageError(
            [f"hf:{name}: it is not in the cache, and the Hub is not asked."],
            hint="Run it once without HF_HUB_OFFLINE.",
        ) from error
    except Exception as error:
        # Those are OSError, and the error of the HTTP library that it uses.
        if not isinstance(error, errors.HfHubHTTPError.__bases__):
            raise
        raise ArtifactError(
            f"hf:{name}: the Hub could not be read: {type(error).__name__}.",
            hint="Try again; with HF_HUB_OFFLINE=1 its cache is read alone.",
        ) from error


def files_of(folder: Path, split: str, place: str) -> tuple[Path, ...]:
    """The files of a split in a folder of the Hub's layout. Raises `UsageError` if it has none."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return tuple(folder / name for name in _chosen(names, split, place))


def _cached(repository: str, split: str, revision: str | None) -> Fetched:
    from huggingface_hub import snapshot_download

    folder = Path(
        snapshot_download(repository, repo_type="dataset", revision=revision, local_files_only=True)
    )
    files = files_of(folder, split, f"hf:{repository}")
    return Fetched(files=files, revision=folder.name)


def _downloaded(repository: str, split: str, revision: str | None) -> Fetched:
    from huggingface_hub import HfApi, hf_hub_download

    info = HfApi().dataset_info(repository, revision=revision, files_metadata=True)
    sizes = {one.rfilename: one.size or 0 for one in info.siblings or ()}
    names = _chosen([*sizes], split, f"hf:{repository}")
    if sum(sizes[name] for name in names) > MAX_STORED_BYTES:
        raise UsageError([f"hf:{repository}: it has more than {MAX_STORED_BYTES} bytes."])
    files = (
        hf_hub_download(repository, name, repo_type="dataset", revision=info.sha) for name in names
    )
    return Fetched(files=tuple(map(Path, files)), revision=info.sha)


def _chosen(names: Sequence[str], split: str, place: str) -> Sequence[str]:
    """The data files of a split: those with its name in their path. Where no path names a split,
    all are `train`.
    """
    data = sorted(
        name
        for name in names
        if not name.startswith(".") and PurePosixPath(name).name not in _ABOUT
    )
    for suffix in _SUFFIXES:
        found = [name for name in data if name.endswith(suffix)]
        if not found:
            continue
        chosen = [name for name in found if _names(name, split)]
        named = {word for word in _SPLITS for name in found if _names(name, word)}
        if not chosen and not named and split == "train":
            return found
        if chosen:
            return chosen
        known = ", ".join(sorted(named)) or "train"
        raise UsageError([f"{place}: it has no split {split!r}: there is {known}."])
    raise UsageError([f"{place}: it has no files of Parquet, JSON Lines or JSON."])


def _names(path: str, split: str) -> bool:
    return re.search(rf"(?:^|[/_.-]){re.escape(split)}(?=[/_.-])", path) is not None
