"""The checker's report: the built-in scenarios and files of one's own, one by one and together."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.lint import check, unbalanced
from socratic_bench.benchmarks.socratic.scenarios.loading import (
    builtin_ids,
    load_builtin,
    load_file,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import AGES, CUSTOM, FAMILIES, Scenario
from socratic_bench.errors import UsageError, Words, to_text


class Checked(Struct, frozen=True, kw_only=True):
    """One scenario and its problems. `file` is `None` if built in, `scenario` if not usable."""

    file: str | None
    scenario: Scenario | None
    problems: tuple[Words, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(map(to_text, self.problems))


class Report(Struct, frozen=True, kw_only=True):
    """All that was checked. `problems` are those that no single scenario has.

    The counts are of the scenarios that can be used, without the one for any prompt.
    """

    checked: tuple[Checked, ...]
    problems: tuple[str, ...]

    @property
    def n_problems(self) -> int:
        return len(self.problems) + sum(len(one.problems) for one in self.checked)

    @property
    def families(self) -> dict[str, int]:
        counts = Counter(one.family for one in self._counted())
        return {family: counts[family] for family in FAMILIES}

    @property
    def ages(self) -> dict[str, int]:
        counts = Counter(one.age for one in self._counted())
        return {age: counts[age] for age in AGES}

    @property
    def subjects(self) -> dict[str, int]:
        return dict(sorted(Counter(one.subject for one in self._counted()).items()))

    def _counted(self) -> list[Scenario]:
        found = [one.scenario for one in self.checked if one.scenario is not None]
        return [one for one in found if one.id != CUSTOM]


def check_files(files: Sequence[str]) -> Report:
    """Check the built-in scenarios, and these files along with them.

    Only the built-in set has to be balanced over families, ages and subjects.
    """
    builtin = [load_builtin(name) for name in builtin_ids()]
    own: list[tuple[str, Scenario | None, tuple[Words, ...]]] = []
    for file in files:
        try:
            own.append((file, load_file(file), ()))
        except UsageError as error:
            own.append((file, None, (*error.sentences,)))
    usable = [scenario for _, scenario, _ in own if scenario is not None]
    sources = [*(None for _ in builtin), *(file for file, one, _ in own if one is not None)]
    found = [*check([*builtin, *usable], files=sources), *unbalanced(builtin)]
    names = Counter(one.id for one in (*builtin, *usable))

    def of(scenario: Scenario) -> tuple[str, ...]:
        """Lines of a scenario that has its id to itself; the others concern several."""
        lines = (f"{name}: {text}" for name, text in found if name == scenario.id)
        return tuple(lines) if names[scenario.id] == 1 else ()

    checked = [Checked(file=None, scenario=one, problems=of(one)) for one in builtin]
    checked += [
        Checked(file=file, scenario=one, problems=of(one) if one else problems)
        for file, one, problems in own
    ]
    together = tuple(f"{name}: {text}" for name, text in found if names[name] != 1)
    return Report(checked=tuple(checked), problems=together)
