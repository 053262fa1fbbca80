"""The SDK's table of endpoints, of which only those services are read that somebody asks for.

It has 1.2 MB, for some 400 services, which took longer to read than all else a client is made of.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from msgspec import MsgspecError, Raw, json

_SERVICES = "services"
_TABLE = json.Decoder(dict[str, list[dict[str, Raw]] | str | int | float | None])
_BY_NAME = json.Decoder(dict[str, Raw])


class Services(Mapping[str, Any]):
    """What a partition says of its services, by name."""

    def __init__(self, text: Raw) -> None:
        self._text = text
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 -- any JSON
        found = self._by_name()[name]
        if isinstance(found, Raw):
            found = self._read[name] = json.decode(found)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name())

    def __len__(self) -> int:
        return len(self._by_name())

    def _by_name(self) -> dict[str, Any]:
        if not self._read:
            self._read = _BY_NAME.decode(self._text)
        return self._read


def read_endpoints(text: bytes) -> Any:  # noqa: ANN401 -- any JSON
    """The content of `endpoints.json`; a user's own may be of another form, and is read whole.

    Raises `ValueError` where it is no JSON.
    """
    try:
        table: dict[str, Any] = _TABLE.decode(text)
        for partitions in table.values():
            if isinstance(partitions, list):
                partitions[:] = [_partition(one) for one in partitions]
    except MsgspecError:
        return orjson.loads(text)
    return table


def _partition(fields: Mapping[str, Raw]) -> dict[str, Any]:
    return {
        name: Services(text) if name == _SERVICES else json.decode(text)
        for name, text in fields.items()
    }
