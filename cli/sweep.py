"""`socratic-runner sweep`: the flags of many runs over a grid of settings.

They are those of a run, but an axis has its own flag, which takes as many words as one likes.
"""

from argparse import SUPPRESS
from collections.abc import Iterator, Sequence

from socratic_bench.benchmarks import RunConfig
from socratic_bench.settings import table
from socratic_bench.settings.table import listed
from socratic_bench.studies.sweep.settings import SweepSettings

from .arguments import FORMS, Parser, parse
from .flags import Row, add_rows, settings_parser
from .settings import Options

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
# Flags of a single run.
EXCLUDED = ("resume-from", "brief")


def main(words: Sequence[str]) -> int:
    """Play the missing runs of a grid, print the sweep's document."""
    flags, problems = parse(build_parser(), words)
    # The only door between parsing and playing, as in cli/run.py.
    from .sweep_run import perform

    return perform(flags, problems)


def build_parser() -> Parser:
    """The flags of a run, but those of axes as a sweep has them, and the sweep's own."""
    usage = "[PLAN.toml] --models ID ... [options]"
    parser = settings_parser("sweep", usage, DESCRIPTION, EXIT_CODES)
    parser.add_argument("plan", nargs="?", metavar="PLAN.toml", help="the sweep's flags as a file")
    add_rows(parser, [*_rows()])
    # Refused with the reason later, so that scripts which still give it say what to do.
    parser.add_argument("--processes", help=SUPPRESS, **FORMS["word"])
    return parser


def _rows() -> Iterator[Row]:
    sweep_flags = {entry.flag for entry in table(SweepSettings).values()}
    axes = {entry.flag: entry for entry in table(RunConfig).values() if entry.setting.axis}
    for entry in axes.values():
        if entry.setting.axis not in sweep_flags:
            text = entry.fill(entry.setting.text).partition(" (default")[0]
            yield "sweep", f"--{entry.setting.axis}", "many", entry.setting.metavar or "", text
    excluded = {*EXCLUDED, *axes, *sweep_flags}
    for row in listed((SweepSettings, RunConfig, Options)):
        if row.flag and (row.group == "sweep" or row.flag not in excluded):
            flag = f"-{row.short} --{row.flag}" if row.short else f"--{row.flag}"
            yield row.group, flag, row.form, row.metavar or "", row.text
