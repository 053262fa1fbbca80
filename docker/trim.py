# ruff: noqa: INP001 -- a script of the image's build, not a part of a package
"""Cuts installed packages down to what the program uses at run time. For the image's build only.

    python docker/trim.py SITE_PACKAGES

The SDK ships a description of every AWS service; a run talks to a few. What stays behaves as
before: only texts that nobody reads at run time are emptied.
"""

import gzip
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

# The calls of a run and of the doctor, and those of credential providers.
SERVICES = (
    *("bedrock", "bedrock-runtime", "s3", "service-quotas", "signin", "sso", "sso-oidc", "sts"),
)
TABLES = ("_retry.json", "endpoints.json", "partitions.json", "sdk-default-configuration.json")
UNUSED = ("bin", "boto3/data", "boto3/examples")
UNUSED_NAMES = ("examples-1.json", "INSTALLER", "RECORD", "REQUESTED", "tests", "test")


def main(site_packages: Path) -> None:
    data = site_packages / "botocore" / "data"
    prefixes = {_endpoint_prefix(data / service) for service in SERVICES}
    for entry in sorted(data.iterdir()):
        if entry.name not in (*SERVICES, *TABLES):
            _remove(entry)
    for path in _unused(site_packages):
        _remove(path)
    for packed in sorted(data.rglob("*.json.gz")):
        # Plain files are read faster, and the layer is compressed anyway.
        _write(packed.with_suffix(""), _without_prose(json.loads(gzip.decompress(_take(packed)))))
    table = data / "endpoints.json"
    _write(table, _of_services(json.loads(_take(table)), prefixes))


def _endpoint_prefix(folder: Path) -> str:
    description = max(folder.glob("*/service-2.json.gz"))
    prefix: str = json.loads(gzip.decompress(description.read_bytes()))["metadata"][
        "endpointPrefix"
    ]
    return prefix


def _unused(site_packages: Path) -> Iterator[Path]:
    for name in UNUSED:
        yield site_packages / name
    for name in UNUSED_NAMES:
        yield from sorted(site_packages.rglob(name))


def _without_prose(node: object) -> object:
    """The same description with empty texts. A member of that name is a mapping, and stays."""
    if isinstance(node, dict):
        return {
            key: "" if key == "documentation" and isinstance(value, str) else _without_prose(value)
            for key, value in node.items()
        }
    return [_without_prose(value) for value in node] if isinstance(node, list) else node


def _of_services(table: dict, prefixes: set[str]) -> dict:
    for partition in table["partitions"]:
        services = partition["services"]
        partition["services"] = {name: services[name] for name in services if name in prefixes}
    return table


def _take(path: Path) -> bytes:
    content = path.read_bytes()
    path.unlink()
    return content


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
