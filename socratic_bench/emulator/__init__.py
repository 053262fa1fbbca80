"""A local endpoint that speaks Bedrock's wire protocol, with simulated models of known truth."""

from typing import TYPE_CHECKING

from socratic_bench.emulator.faults import Fault, parse_fault
from socratic_bench.emulator.model_ids import MODEL_IDS
from socratic_bench.emulator.settings import Settings

if TYPE_CHECKING:
    from socratic_bench.emulator.models.moves import plan
    from socratic_bench.emulator.server import Emulator, serve

__all__ = ["MODEL_IDS", "Emulator", "Fault", "Settings", "parse_fault", "plan", "serve"]


def __getattr__(name: str) -> object:
    """The server brings asyncio along, so it is imported when it is first asked for."""
    if name in ("Emulator", "serve"):
        from socratic_bench.emulator import server

        return getattr(server, name)
    if name == "plan":
        from socratic_bench.emulator.models.moves import plan

        return plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
