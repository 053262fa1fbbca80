"""What people see of a sweep on stderr."""

from typing import TYPE_CHECKING

from .output import plain, say

if TYPE_CHECKING:
    from socratic_bench.sweeps.state import SweepState
    from socratic_bench.sweeps.sweep import SweepDisplay


def display_for(*, quiet: bool) -> "SweepDisplay":
    """Lines for people; none if they want `quiet`."""
    return _Display() if not quiet else _Quiet()


class _Quiet:
    def begin(self, sweep_id: str, state: "SweepState") -> None: ...

    def notice(self, text: str) -> None: ...

    def end(self) -> None: ...


class _Display(_Quiet):
    def begin(self, sweep_id: str, state: "SweepState") -> None:
        now = state.snapshot()
        say(f"{sweep_id}: {now.n_cells} cells, {now.n_ended} of them ended before")

    def notice(self, text: str) -> None:
        say(f"note: {plain(text)}")
