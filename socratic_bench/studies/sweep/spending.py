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

# In the place of a process, what journals tell: of all processes before, since their ledger is not
# there, or of those without a budget.
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
        self._told_usd = 0.0
        bodies = [body for store in stores if (body := store.get(self._key)) is not None]
        is_lost = not any(list(map(self._merge, bodies)))
        is_limited = None not in self._amounts.values()
        # Under which name journals have to tell what was spent, since nobody noted it.
        self.unknown = ALL_EARLIER if is_lost else None if is_limited else UNLIMITED

    @property
    def spent_usd(self) -> float:
        """What all processes have spent, at most, and no less than a document has told before."""
        return max(self._told_usd, self._total_usd)

    @property
    def _total_usd(self) -> float:
        return sum(usd or 0.0 for usd in self._amounts.values())

    def add(self, name: str, usd: float) -> None:
        """Count what journals tell."""
        self._amounts[name] = max(usd, self._amounts.get(name) or 0.0)

    def keep_unknown(self) -> None:
        """Note that this process has no budget."""
        self._update(inf, {self._process: None})

    def keep(self, limit_usd: float, usd: float) -> tuple[float, bool]:
        """See `SpendingLimit`."""
        is_noted = self._update(limit_usd, {self._process: usd})
        return self._total_usd - (self._amounts.get(self._process) or 0.0), is_noted

    def close(self, usd: float) -> None:
        """Note what this process has spent in the end, and the sum, which is told now."""
        self._update(inf, {self._process: usd}, is_told=True)

    def _update(self, limit_usd: float, amounts: Amounts, *, is_told: bool = False) -> bool:
        """The bucket first, which other processes may share."""
        is_noted = True
        own = {name: usd and round(usd, PLACES) for name, usd in amounts.items()}

        def changed(body: bytes | None) -> bytes | None:
            nonlocal is_noted
            if body is not None:
                self._merge(body)
            amounts = {**self._amounts, **own}
            total_usd = sum(usd or 0.0 for usd in amounts.values())
            # A process that has spent less than it noted may always say so.
            is_noted = total_usd <= max(limit_usd, self._total_usd) + 10**-PLACES
            self._told_usd = max(self._told_usd, round(total_usd, PLACES) if is_told else 0.0)
            file = SpendingFile(sweep_id=self._sweep_id, spent_usd=amounts, told_usd=self._told_usd)
            return encode(plain_keys(file)) if is_noted else None

        for store in reversed(self._stores):
            store.update(self._key, changed)
            if not is_noted:
                return False
        self._amounts |= own
        return True

    def _merge(self, body: bytes) -> bool:
        """Take over what a file tells of other processes; false if it is none of this sweep."""
        try:
            file = decode(body, SpendingFile)
        except ValueError:
            file = None
        if file is None or file.sweep_id != self._sweep_id:
            self._notice(f"{self._key} cannot be read. What was spent is counted by the journals.")
            return False
        self._told_usd = max(self._told_usd, file.told_usd)
        for name, usd in file.spent_usd.items():
            if name != self._process:
                known = self._amounts.get(name)
                self._amounts[name] = usd if known is None else max(known, usd or 0.0)
        return True
