"""The settings in the order and the words in which people read them: in help and documents."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from socratic_bench.setting import GROUPS, Switch
from socratic_bench.settings.table import Declared, Kind, shown, table


class Entry(Struct, frozen=True, kw_only=True):
    """A flag or a variable as people read of it; `form` is what the flag takes, `offers` gives
    words for it, `owners` the benchmarks whose own it is, none for one of every run.
    """

    group: str
    flag: str | None
    short: str = ""
    offers: Callable[[], Sequence[str]] = tuple
    metavar: str | None
    form: str
    text: str
    variables: tuple[str, ...]
    default: str
    meaning: str
    owners: tuple[str, ...] = ()


def listed(kinds: Sequence[Kind]) -> tuple[Entry, ...]:
    """Every setting of these classes, group by group, those of benchmarks last.

    One follows the flag that it says it does, or what its class declares before it in its group.
    """
    waiting = [*_units(kinds)]
    found = [unit.entries[0] for unit in waiting]
    own = {entry.group for entry in found if entry.group in entry.owners}
    placed: dict[str, list[Entry]] = {group: [] for group in (*GROUPS, *sorted(own))}
    while waiting:
        late = [unit for unit in waiting if not _place(placed[unit.entries[0].group], unit)]
        if len(late) == len(waiting):
            raise ValueError(f"There is no --{late[0].after} for a setting to follow.")
        waiting = late
    entries = tuple(entry for entries in placed.values() for entry in entries)
    _refuse_shared_names(entries)
    return entries


def _refuse_shared_names(entries: Sequence[Entry]) -> None:
    """A name stands for one setting alone, but for those of a sweep and of its runs."""
    names = Counter(name for entry in entries if entry.group != "sweep" for name in _names(entry))
    if shared := [name for name, n in names.items() if n > 1]:
        raise ValueError(f"Several settings are called {', '.join(shared)}.")


def _names(entry: Entry) -> Iterator[str]:
    yield from entry.variables
    if entry.flag:
        yield f"--{entry.flag}"
    if entry.short:
        yield f"-{entry.short}"


class _Unit(Struct, frozen=True):
    """A setting with the flag that steers it; `after` is empty for one that opens its group."""

    entries: tuple[Entry, ...]
    after: str


def _units(kinds: Sequence[Kind]) -> Iterator[_Unit]:
    last: dict[tuple[str, str], str] = {}
    for one in (one for kind in kinds for one in table(kind).values()):
        entries = _entries(one)
        if not entries:
            continue
        place = (one.home, one.setting.group)
        yield _Unit(entries, one.setting.after or last.get(place, ""))
        last[place] = _name(entries[-1])


def _place(entries: list[Entry], unit: _Unit) -> bool:
    names = [_name(entry) for entry in entries]
    if unit.after and unit.after not in names:
        return False
    at = names.index(unit.after) + 1 if unit.after else len(entries)
    entries[at:at] = unit.entries
    return True


def _name(entry: Entry) -> str:
    return entry.flag or entry.variables[0]


def _entries(one: Declared) -> tuple[Entry, ...]:
    if not one.flag and not one.setting.variables:
        return ()
    setting = one.setting
    own = Entry(
        group=setting.group,
        flag=one.flag,
        short=setting.short,
        offers=one.offered,
        metavar=setting.metavar,
        form="words" if one.is_repeatable else "switch" if one.is_switch else "word",
        text=one.filled(setting.text),
        variables=setting.variables,
        default=_default(one),
        meaning=_meaning(one),
        owners=one.owners,
    )
    if not setting.steered_by:
        return (own,)
    steering = _steering(setting.group, setting.steered_by, one.owners)
    return (own, steering) if setting.steered_by.comes_after else (steering, own)


def _meaning(one: Declared) -> str:
    setting = one.setting
    text = setting.meaning or _without_default(setting.text)
    is_bounded = setting.high is not None and "{high}" not in text
    return one.filled(f"{text}; {{low}} to {{high}}" if is_bounded else text)


def _without_default(text: str) -> str:
    """The tables have a column of its own for it."""
    return text.partition(" (default")[0]


def _steering(group: str, switch: Switch, owners: tuple[str, ...]) -> Entry:
    return Entry(
        group=group,
        flag=switch.name,
        offers=lambda: switch.choices,
        metavar=switch.metavar,
        form="word" if switch.metavar else "switch",
        text=switch.text.format(default=switch.default_words),
        variables=(),
        default=f"`{switch.default_words}`" if switch.metavar else switch.default_words,
        meaning=switch.meaning or _without_default(switch.text),
        owners=owners,
    )


def _default(one: Declared) -> str:
    if one.setting.default_words:
        return one.filled(one.setting.default_words)
    if one.is_switch:
        return "off"
    if one.default in (None, "", ()):
        return "none"
    return f"`{one.default}`" if isinstance(one.default, str) else shown(one.default)
