"""The flags of `sweep`: those of a run, an axis by its own flag with as many words as one likes."""

from argparse import SUPPRESS
from collections.abc import Callable, Iterator
from functools import cache

from .arguments import FORMS, Parser
from .flags import Row, add_rows, settings_parser

DESCRIPTION = """\
Plays every combination of models and other settings as a run of its own, many at once,
and prints one JSON document with the means of each. Its runs are kept as ordinary runs. PLAN.toml
holds the same flags as keys, and settings of single models.
"""
EXIT_CODES = """\
exit codes, the first that fits: 1 a defect, 2 usage, 129 SIGHUP, 130 SIGINT, 143 SIGTERM, 3
credentials, 6 deadline or budget, 4 cells are missing, 5 a gate or the judge coverage failed,
0 complete.
"""
# Of a run alone.
NOT_HERE = ("resume-from", "brief")
# Refused with the reason, so that scripts which still give it say what to do.
PROCESSES = "processes"
NO_PROCESSES = (
    "--processes is no longer taken: one process plays all cells, so many at once as "
    "--max-connections allows. To use more machines, give each a part of the grid."
)


def build_parser() -> Parser:
    """The flags of a run, but those of axes as a sweep has them, and the sweep's own."""
    usage = "[PLAN.toml] --models ID ... [options]"
    parser = settings_parser("sweep", usage, DESCRIPTION, EXIT_CODES)
    parser.add_argument("plan", nargs="?", metavar="PLAN.toml", help="the sweep's flags as a file")
    add_rows(parser, [*_rows()])
    parser.add_argument(f"--{PROCESSES}", help=SUPPRESS, **FORMS["word"])
    return parser


def _rows() -> Iterator[Row]:
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import table
    from socratic_bench.settings.table import listed
    from socratic_bench.studies.sweep.settings import SweepSettings

    from .options import Options

    own = {one.flag for one in table(SweepSettings).values()}
    axes = {one.flag: one for one in table(RunConfig).values() if one.setting.axis}
    for one in axes.values():
        if one.setting.axis not in own:
            text = one.fill(one.setting.text).partition(" (default")[0]
            yield "sweep", f"--{one.setting.axis}", "many", one.setting.metavar or "", text
    for entry in listed((SweepSettings, RunConfig, Options)):
        is_own = entry.group == "sweep"
        if not entry.flag or entry.flag in NOT_HERE or (not is_own and entry.flag in {*own, *axes}):
            continue
        flag = f"-{entry.short} --{entry.flag}" if entry.short else f"--{entry.flag}"
        yield entry.group, flag, entry.form, entry.metavar or "", entry.text


def flag_of(name: str) -> str:
    """How this command calls a setting: an axis by its own flag."""
    return _flag_names()(name)


@cache
def _flag_names() -> Callable[[str], str]:
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.settings import flag_names as names_of
    from socratic_bench.settings import table
    from socratic_bench.studies.sweep.settings import SweepSettings

    from .options import Options

    axes = {one.name: one.setting.axis for one in table(RunConfig).values() if one.setting.axis}
    call = names_of((SweepSettings, RunConfig, Options))

    def called(name: str) -> str:
        return f"--{axes[name]}" if name in axes else call(name)

    return called
