"""Who hears of a run while it goes on."""

from socratic_bench.models.events import CallEvent
from socratic_bench.ports import Sample
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn


class Listener:
    """Hears of a run while it goes on, from whichever thread; must not block and must not raise.

    This one wants to hear nothing: another extends it by what it wants to hear.
    """

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None: ...

    def on_call(self, event: CallEvent) -> None: ...

    def on_wait(self, what: str) -> None:
        """From now on the run waits for something other than calls; empty: no longer."""

    def on_turn(self, turn: Turn) -> None: ...

    def on_judged(self, turn: Turn) -> None: ...

    def on_notice(self, text: str) -> None: ...

    def on_end(self) -> None: ...
