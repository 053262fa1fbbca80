"""A local endpoint that speaks Bedrock's wire protocol, with simulated models of known truth."""

from importlib import import_module
from typing import TYPE_CHECKING

from socratic_bench.emulator.faults import Fault, parse_fault
from socratic_bench.emulator.models import MODEL_IDS
from socratic_bench.emulator.settings import Settings

if TYPE_CHECKING:
    from socratic_bench.emulator.models.moves import plan
    from socratic_bench.emulator.server import Emulator, serve

__all__ = ["MODEL_IDS", "Emulator", "Fault", "Settings", "parse_fault", "plan", "serve"]
_LATER = dict.fromkeys(("Emulator", "serve"), "socratic_bench.emulator.server") | {
    "plan": "socratic_bench.emulator.models.moves"
}


def __getattr__(name: str) -> object:
    """Import the server, and the SDK with it, only when it is needed: ids alone need neither."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
