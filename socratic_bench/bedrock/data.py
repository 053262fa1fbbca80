"""One loader of the SDK's own data files for all sessions, quicker than the one it comes with.

The SDK lets a session have a data loader of its own, and a data loader its own reader of files:
https://docs.aws.amazon.com/botocore/latest/reference/loaders.html. What is read stays the same.
"""

import gzip
import os
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import orjson
from botocore.loaders import JSONFileLoader, Loader, instance_cache


class _Files(JSONFileLoader):
    """Reads JSON files, packed or plain, with orjson. Paths come without their endings."""

    def exists(self, file_path: str) -> bool:
        return os.path.isfile(f"{file_path}.json") or os.path.isfile(f"{file_path}.json.gz")  # noqa: PTH113

    def load_file(self, file_path: str) -> Any:  # noqa: ANN401 -- any JSON
        """The file's content, `None` if there is no such file."""
        try:
            return orjson.loads(Path(f"{file_path}.json").read_bytes())
        except FileNotFoundError:
            pass
        try:
            return orjson.loads(gzip.decompress(Path(f"{file_path}.json.gz").read_bytes()))
        except FileNotFoundError:
            return None


class _QuickLoader(Loader):
    """Takes every folder for a service; the SDK's looks into each of some 400 for its files."""

    @instance_cache
    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002 -- the SDK's
        found: set[str] = set()
        for folder in self.search_paths:
            if os.path.isdir(folder):  # noqa: PTH112 -- as the SDK does
                found.update(entry.name for entry in os.scandir(folder) if entry.is_dir())
        return sorted(found)


def new_session(**options: Any) -> botocore.session.Session:  # noqa: ANN401 -- the SDK's own
    """A session of the SDK. All of them share what was read of its data files.

    Making a client fills defaults into that data, the same for every session, as it does for
    several clients of one session with the SDK's own loader.
    """
    session = botocore.session.Session(**options)
    folders = session.get_config_variable("data_path")
    session.register_component("data_loader", _loader(folders))
    return session


@cache
def _loader(folders: str | None) -> Loader:
    """The loader for the value of AWS_DATA_PATH, or of `data_path` in the user's configuration."""
    own = [
        str(Path(os.path.expandvars(folder)).expanduser())
        for folder in (folders or "").split(os.pathsep)
        if folder
    ]
    return _QuickLoader(extra_search_paths=own, file_loader=_Files())
