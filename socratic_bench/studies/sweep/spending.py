"""The ledger of a sweep: what each of its processes has spent, at most, in every store.

A process notes an amount before it spends it, and what it did spend at its end. A killed process
leaves the amount that it noted last. So the sum never falls, whatever becomes of runs and prices.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

from socratic_bench.concurrency import decode
from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.sweep import SpendingFile
from socratic_bench.storage.stores import ListedStore

# Names of sums over journals, in the place of a process: of all processes before, whose ledger is
# lost, or of those without a budget.
ALL_EARLIER, UNLIMITED = "all_earlier", "unlimited"
PLACES = 9
Amounts = Mapping[str, float | None]


class Ledger:
    """Amounts by process. `process` is a name that no other process has.

    The bucket's file is replaced only if no other process has replaced it meanwhile; a folder is
    locked by the process that plays the sweep in it. Methods raise `ArtifactError`.
    """

    def __init__(
        self,
        stores: Sequence[ListedStore],
        sweep_id: str,
        process: str,
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._stores = stores
        self._sweep_id = sweep_id
        self._process = process
        self._notice = notice
        self._key = f"sweeps/{sweep_id}/spending.json"
        self._amounts: dict[str, float | None] = {}
        self._reported_usd = 0.0
        bodies = [body for store in stores if (body := store.get(self._key)) is not None]
        are_read = [self._merge(body) for body in bodies]
        is_lost = not any(are_read)
        is_limited = None not in self._amounts.values()
        # The name under which a sum over journals has to stand for what no process noted.
        self.unknown = ALL_EARLIER if is_lost else None if is_limited else UNLIMITED

    @property
    def spent_usd(self) -> float:
        """What all processes have spent, at most; never less than a document has reported."""
        return max(self._reported_usd, self._total_usd)

    @property
    def _total_usd(self) -> float:
        return sum(usd or 0.0 for usd in self._amounts.values())

    def add(self, name: str, usd: float) -> None:
        """Count a sum over journals under its name."""
        self._amounts[name] = max(usd, self._amounts.get(name) or 0.0)

    def note_no_budget(self) -> None:
        """Note that this process has no budget."""
        self._update(inf, {self._process: None})

    def keep(self, limit_usd: float, usd: float) -> tuple[float, bool]:
        """See `SpendingLimit`."""
        is_noted = self._update(limit_usd, {self._process: usd})
        return self._total_usd - (self._amounts.get(self._process) or 0.0), is_noted

    def close(self, usd: float) -> None:
        """Note what this process has spent in the end, and the sum that its document reports."""
        self._update(inf, {self._process: usd}, is_reported=True)

    def _update(self, limit_usd: float, amounts: Amounts, *, is_reported: bool = False) -> bool:
        """The bucket first, which other processes may share."""
        is_noted = True
        rounded = {name: usd and round(usd, PLACES) for name, usd in amounts.items()}

        def changed(body: bytes | None) -> bytes | None:
            nonlocal is_noted
            if body is not None:
                self._merge(body)
            amounts = {**self._amounts, **rounded}
            total_usd = sum(usd or 0.0 for usd in amounts.values())
            # A process that has spent less than it noted may always say so.
            is_noted = total_usd <= max(limit_usd, self._total_usd) + 10**-PLACES
            self._reported_usd = max(
                self._reported_usd, round(total_usd, PLACES) if is_reported else 0.0
            )
            file = SpendingFile(
                sweep_id=self._sweep_id, spent_usd=amounts, reported_usd=self._reported_usd
            )
            return encode(plain_keys(file)) if is_noted else None

        for store in reversed(self._stores):
            store.update(self._key, changed)
            if not is_noted:
                return False
        self._amounts |= rounded
        return True

    def _merge(self, body: bytes) -> bool:
        """Take over other processes' amounts; false if the file is none of this sweep's."""
        try:
            file = decode(body, SpendingFile)
        except ValueError:
            file = None
        if file is None or file.sweep_id != self._sweep_id:
            self._notice(f"{self._key} cannot be read. What was spent is counted by the journals.")
            return False
        self._reported_usd = max(self._reported_usd, file.reported_usd)
        for name, usd in file.spent_usd.items():
            if name != self._process:
                known = self._amounts.get(name)
                self._amounts[name] = usd if known is None else max(known, usd or 0.0)
        return True
