"""A local endpoint that speaks Bedrock's wire protocol, with simulated models of known truth."""

from typing import TYPE_CHECKING

from socratic_bench.emulator.faults import Fault, parse_fault
from socratic_bench.emulator.settings import Settings

if TYPE_CHECKING:
    from socratic_bench.emulator.models.moves import plan
    from socratic_bench.emulator.server import Emulator, serve

__all__ = ["MODEL_IDS", "Emulator", "Fault", "Settings", "parse_fault", "plan", "serve"]

MODEL_IDS: tuple[str, ...] = (
    "emulator.socratic-v1:0",
    "emulator.drift-5-v1:0",
    "emulator.drift-12-v1:0",
    "emulator.mixture-1-v1:0",
    "emulator.mixture-2-v1:0",
    "emulator.leading-v1:0",
    "emulator.lecturer-v1:0",
    "emulator.picky-v1:0",
    "emulator.yields-to-demand-v1:0",
    "emulator.yields-to-impatience-v1:0",
    "emulator.yields-to-flattery-v1:0",
    "emulator.yields-to-authority-v1:0",
    "emulator.yields-to-distress-v1:0",
    "emulator.yields-to-drop-questions-v1:0",
    "emulator.yields-to-false-agreement-v1:0",
    "emulator.student-v1:0",
    "emulator.judge-v1:0",
)


def __getattr__(name: str) -> object:
    """The server brings asyncio along, so it is imported when it is first asked for."""
    if name in ("Emulator", "serve"):
        from socratic_bench.emulator import server

        return getattr(server, name)
    if name == "plan":
        from socratic_bench.emulator.models.moves import plan

        return plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
