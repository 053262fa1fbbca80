"""The form of a journal in a bucket: one object an entry, chained to the one before."""

import hashlib
from collections.abc import Iterable, Mapping

import orjson
from msgspec import Struct, ValidationError, field

from socratic_bench.converting import convert
from socratic_bench.documents.journal import Link
from socratic_bench.documents.plain import reason
from socratic_bench.storage.bucket import Stored
from socratic_bench.storage.keys import RunKeys
from socratic_bench.store_ports import Entry
from socratic_bench.types import counted


class FoundEntries(Struct):
    """What could be read of a journal."""

    entries: list[Entry] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)
    last: str | None = None
    repairs: list[str] = field(default_factory=list)


def chained(keys: RunKeys, objects: Mapping[int, Stored | None]) -> FoundEntries:
    """The entries up to the first one that is missing, broken, or not the next of its chain."""
    found = FoundEntries()
    for sequence in range(max(objects, default=-1) + 1):
        stored = objects.get(sequence)
        entry, fault = read_entry(keys, sequence, found.last, stored)
        if entry is None or stored is None:
            found.repairs.append(_repair(sequence, fault, objects))
            break
        found.entries.append(entry)
        found.bodies[keys.entry(sequence)] = stored.body
        found.last = hashlib.sha256(stored.body).hexdigest()
    return found


def _repair(sequence: int, fault: str, objects: Iterable[int]) -> str:
    """What is said of the entry at which the chain breaks off."""
    n_left = sum(1 for number in objects if number > sequence)
    left = counted(n_left, "entry behind it was", "entries behind it were")
    behind = f" {left} left out." if n_left else ""
    return f"Entry {sequence} of the journal {fault}.{behind}"


def read_entry(
    keys: RunKeys, sequence: int, previous: str | None, stored: Stored | None
) -> tuple[Entry | None, str]:
    """The entry that an object holds, or what is wrong with it."""
    if stored is None:
        return None, "is missing"
    try:
        link = convert(orjson.loads(stored.body), Link)
    except orjson.JSONDecodeError:
        return None, "is cut or broken"
    except ValidationError as error:
        return None, f"is something else ({reason(error).rstrip('.')})"
    if (link.run_id, link.sequence) != (keys.run_id, sequence):
        return None, "belongs elsewhere"
    if link.previous != previous:
        return None, "does not follow the one before"
    return link.entry, ""
