"""A listener for callers that want to hear nothing."""

from socratic_bench.ports import Sample
from socratic_bench.settings import CoreConfig
from socratic_bench.turns import Turn
from socratic_bench.types import CallKey


class NullListener:
    """See `socratic_bench.ports.Listener`."""

    def on_start(self, run_id: str, config: CoreConfig, opening: Sample) -> None: ...

    def on_call(self, key: CallKey) -> None: ...

    def on_turn(self, turn: Turn) -> None: ...

    def on_judged(self, turn: Turn) -> None: ...

    def on_notice(self, text: str) -> None: ...

    def on_end(self) -> None: ...
