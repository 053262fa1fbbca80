"""The cells of a sweep: every combination of its axes' values, as often as it is to be repeated."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import product
from math import prod
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents import encode
from socratic_bench.settings import MAX_STORED_BYTES, read_bounded, table, to_stored
from socratic_bench.settings.table import SettingField
from socratic_bench.types import Json, Role

MODEL = "model"
OPENING = "prompt"
KEY_DIGITS = 16
SEED_BYTES = 4
UNREADABLE = "unreadable"
# Settings of where and how fast cells are played, and of gates, are no part of a cell's identity.
_APART = ("gates", "gates_over", "min_judge_coverage", "calibration")
_APART_GROUPS = ("service", "output")


class Axis(Struct, frozen=True):
    """A setting of a run by its field's name, and the values that it takes in the sweep."""

    name: str
    values: tuple[Any, ...]


class Cell(Struct, frozen=True, kw_only=True):
    """One run of a sweep.

    `key` names it in any sweep with the same settings: 16 hexadecimal digits of what is asked for,
    without where and how fast. `values` are those of the axes, by field; `repeat` counts from 1.
    """

    key: str
    values: Mapping[str, Json]
    repeat: int
    seed: int

    @property
    def model(self) -> str:
        return str(self.values[MODEL])


class CellJob(Struct, frozen=True, kw_only=True):
    """A cell that is to be played, the id of its run, and its place in the order of cells.
    `n_calls` are those that earlier processes made, by role, where the budget has to know. A run
    that `is_damaged` was complete, and its files are stored again.
    """

    cell: Cell
    run_id: str
    order: int = 0
    is_damaged: bool = False
    n_calls: Mapping[Role, int] = {}


class Grid(Struct, frozen=True, kw_only=True):
    """What a sweep plays: `base` is what its cells have in common.

    `by_model` are settings of some models alone: of each a field's value by its name. `ways` are
    the values of axes that a model is played with; one that is missing there is played with all.
    The seed of `base` is the one from which all seeds follow.
    """

    base: RunConfig
    axes: tuple[Axis, ...]
    repeats: int = 1
    by_model: Mapping[str, Mapping[str, Any]] = {}
    ways: Mapping[str, Sequence[Mapping[str, Json]]] = {}

    @property
    def models(self) -> tuple[str, ...]:
        return next((axis.values for axis in self.axes if axis.name == MODEL), (self.base.model,))

    @property
    def factors(self) -> Mapping[str, int]:
        """The numbers whose product is the number of cells, by what they count."""
        axes = {axis.name.replace("_", " "): len(axis.values) for axis in self.axes}
        return {MODEL: len(self.models), **axes, "repeat": self.repeats}

    def cells(self) -> tuple[Cell, ...]:
        """All cells, in an order in which each beginning is balanced: all models play a sample
        before the next one comes, and every sample once before any is repeated. Which model begins
        goes round, so that none always has the quieter time.
        """
        common = self._common()
        return tuple(self._cell(common, values, repeat) for repeat, values in self.in_order())

    @property
    def n_cells(self) -> int:
        return self.repeats * prod(len(axis.values) for axis in self.axes)

    def config(self, cell: Cell) -> RunConfig:
        """The run that a cell is. Bounds of time and money are the sweep's own."""
        model_settings = self.by_model.get(cell.model, {})
        values = {name: value for name, value in cell.values.items() if name in self._axis_names}
        own = {**model_settings, **values, "seed": cell.seed}
        return replace(self.base, **own, deadline_s=None, max_cost_usd=None)

    def identity(self) -> str:
        """32 hexadecimal digits of what all cells share; a sweep with the same ones goes on."""
        return sha256(_identity_bytes({**self._common(), "seed": self.base.seed})).hexdigest()[:32]

    def distinct(self) -> Iterator[Cell]:
        """A cell of each kind: repeats differ in their seeds alone."""
        return (cell for cell in self.cells() if cell.repeat == 1)

    @property
    def sample_axes(self) -> tuple[str, ...]:
        """The axes that say what is played: cells that agree in them are of one sample."""
        return tuple(name for name in self._axis_names if _declared(name).setting.is_sample)

    @property
    def cluster_axes(self) -> tuple[str, ...]:
        """The axes of which cells with the same values are more alike than others: what is played,
        or, where all play one thing, how it begins. Openings of one thing are no more of them.
        """
        several = [axis.name for axis in self.axes if len(axis.values) > 1]
        played = tuple(name for name in self.sample_axes if name != OPENING and name in several)
        return played or self.sample_axes

    @property
    def _axis_names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    def in_order(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The repeat and the axes' values of each cell, in the order of `cells`."""
        axes = [axis for axis in self.axes if axis.name != MODEL]
        samples = [axis for axis in axes if axis.name in self.sample_axes]
        treatments = [axis for axis in axes if axis not in samples]
        names = [axis.name for axis in (*samples, *treatments)]
        combinations = [*product(*(axis.values for axis in (*samples, *treatments)))]
        for repeat in range(1, self.repeats + 1):
            for n, values in enumerate(combinations):
                first = (n + repeat - 1) % len(self.models)
                by_name = dict(zip(names, values, strict=True))
                for model in (*self.models[first:], *self.models[:first]):
                    ways = self.ways.get(model, ({},))
                    if any(way.items() <= by_name.items() for way in ways):
                        yield repeat, {MODEL: model, **by_name}

    def _cell(self, common: Mapping[str, Json], values: Mapping[str, Any], repeat: int) -> Cell:
        # What could be an axis, and has one value here: a sweep with more values of it has the same
        # cells. Where requests go to counts only where it is compared.
        could_be_axes = (field.name for field in axis_settings() if not _is_apart(field))
        settings = {**{name: getattr(self.base, name) for name in could_be_axes}, **values}
        seed = self._seed(settings, repeat)
        model_settings = self.by_model.get(str(values[MODEL]), {})
        names = [name for name in model_settings if not _is_apart(_declared(name))]
        tier = {name: model_settings[name] for name in names}
        identity = _identity_bytes(
            {"common": dict(common), "asked": {**settings, **tier}, "seed": seed}
        )
        key = sha256(identity).hexdigest()[:KEY_DIGITS]
        return Cell(key=key, values=values, repeat=repeat, seed=seed)

    def _seed(self, settings: Mapping[str, Json], repeat: int) -> int:
        """By base seed, sample and repeat alone, so that all models are asked the same."""
        sample = {name: settings[name] for name in settings if _declared(name).setting.is_sample}
        identity = _identity_bytes({"seed": self.base.seed, "sample": sample, "repeat": repeat})
        return int.from_bytes(sha256(identity).digest()[:SEED_BYTES])

    def _common(self) -> dict[str, Json]:
        """What every cell is asked for alike; of files their contents, wherever they lie."""
        stored = to_stored(self.base)
        common: dict[str, Json] = {}
        for field in table(RunConfig).values():
            is_other = field.setting.axis or field.name == "seed" or _is_apart(field)
            if is_other or field.name not in stored:
                continue
            value = stored[field.name]
            if field.setting.is_file and value is not None:
                value = _digest(value)
            if value != field.default:
                common[field.name] = value
        return common


def kind_key(values: Mapping[str, Json]) -> str:
    """The same for cells that differ in their repeat alone."""
    return repr(sorted(values.items()))


def axis_settings() -> Iterator[SettingField]:
    """The settings of a run that a sweep may give several values."""
    return (field for field in table(RunConfig).values() if field.setting.axis)


def _identity_bytes(settings: Mapping[str, Json]) -> bytes:
    """What a key, a seed or an identity is made of. Runs that are asked for a number which no
    document takes tell that it is out of its bounds.
    """
    try:
        return encode({**settings})
    except ValueError:
        return repr(settings).encode()


def _declared(name: str) -> SettingField:
    return table(RunConfig)[name]


def _digest(path: str) -> str:
    """Of a file's contents; why it cannot be read is told by the runs that need it."""
    try:
        return sha256(read_bounded(path, bound=MAX_STORED_BYTES)).hexdigest()
    except OSError:
        return UNREADABLE


def _is_apart(field: SettingField) -> bool:
    setting = field.setting
    return field.name in _APART or (setting.group in _APART_GROUPS and not setting.identity)
