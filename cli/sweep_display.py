"""Which display of a sweep people see on stderr while it goes on."""

from contextlib import suppress
from typing import TYPE_CHECKING

from . import terminal

if TYPE_CHECKING:
    from socratic_bench.documents.sweep import CellRow
    from socratic_bench.studies.sweep.engine import SweepDisplay, SweepState

TICK_S = 1.0


def display_for(*, quiet: bool, tick_s: float = TICK_S) -> "SweepDisplay":
    """The display that fits what stderr is; none if people want `quiet`."""
    if quiet:
        return _NoDisplay()
    if not terminal.is_live():
        from .sweep_lines import LogDisplay

        return LogDisplay(tick_s)
    with suppress(ImportError):  # the extra `ui`
        from .sweep_live import LiveDisplay

        return LiveDisplay(tick_s)
    from .sweep_lines import LineDisplay

    return LineDisplay(tick_s)


class _NoDisplay:
    def begin(self, sweep_id: str, state: "SweepState") -> None: ...

    def notice(self, text: str) -> None: ...

    def failed(self, row: "CellRow") -> None: ...

    def end(self) -> None: ...
