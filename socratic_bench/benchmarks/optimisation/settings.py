"""The settings of this benchmark, in addition to those of every run."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from socratic_bench.setting import Setting
from socratic_bench.settings import CoreConfig, Reader, absolute

IsolationChoice = Literal["auto", "container", "bwrap", "unshare", "none"]
MOST_STEPS = 1000

_setting = partial(Setting, "optimisation", identity="chosen", is_input=True)


def _read_path(name: str) -> Callable[[Reader], str | None]:
    """Reads a path, absolute, since a run may go on in another folder."""

    def read(reader: Reader) -> str | None:
        path = reader.read(name)
        return absolute(path) if path else None

    return read


class Settings(CoreConfig, frozen=True, kw_only=True):
    """The core's settings, and those of tasks, agents and their isolation."""

    task_file: Annotated[
        str | None,
        _setting(
            "FILE", "task: a repository, its tests and workloads (YAML or TOML)", is_file=True
        ),
    ] = None
    from_plan: Annotated[
        str | None,
        _setting("FILE", "commits, as the action plan has written them (JSON)", is_file=True),
    ] = None
    bench_cfg: Annotated[
        str | None,
        _setting("FILE", "containers, paths and agents (YAML or TOML)", is_file=True),
    ] = None
    certificate: Annotated[
        str | None,
        Setting(  # what is prepared without it may be evaluated with it
            "optimisation",
            "FILE",
            "result of the action validate for this plan",
            is_file=True,
            is_input=True,
        ),
    ] = None
    agent: Annotated[
        str | None,
        _setting("NAME", "agent of the bench config (default: its default, or the built-in agent)"),
    ] = None
    isolation: Annotated[
        IsolationChoice,
        _setting(
            "LEVEL",
            "isolation of commands: {choices} (default {default}; never none)",
        ),
    ] = "auto"
    max_steps: Annotated[
        int,
        _setting("N", "maximum calls of an agent per item (default {default})", low=1,
                 high=MOST_STEPS),
    ] = 120  # fmt: skip
    time_budget_minutes: Annotated[
        float,
        _setting(
            "M",
            "maximum minutes of an agent per item, without waits for throttled calls (default "
            "{default})",
            low=0.01,
            high=10_000,
        ),
    ] = 120.0
    max_item_tokens: Annotated[
        int | None,
        _setting("N", "maximum tokens of an agent per item, input and output", low=1),
    ] = None
    work_dir: Annotated[
        str | None,
        Setting(
            "optimisation",
            "DIR",
            "folder of work trees, needed to resume (default: optimisation-work in the output "
            "folder or in the current one)",
            is_file=True,
        ),
    ] = None
    prepare_only: Annotated[
        bool,
        Setting(
            "optimisation",
            None,
            "make patches, but do not measure them",
            is_afresh=True,
        ),
    ] = False

    READERS: ClassVar[Mapping[str, Callable[[Reader], Any]]] = {
        **CoreConfig.READERS,
        **{
            name: _read_path(name)
            for name in ("task_file", "from_plan", "bench_cfg", "certificate", "work_dir")
        },
    }
