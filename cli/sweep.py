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
from .flags import COMMON, Row, add_rows, settings_parser
from .settings import Options

DESCRIPTION = """\
Runs every combination of models, scenarios and other settings in parallel, and
prints the mean scores of each model with 95% confidence intervals. Flags such as
--models take several values. Each run is stored in the same format as a single
run. A config file holds flags as TOML keys (write one: socratic-runner init sweep).

examples:
  socratic-runner sweep --models ID1 ID2 --scenarios all --repeats 3 -o out
  socratic-runner sweep CONFIG.toml --dry-run
  socratic-runner sweep CONFIG.toml --shard 0/4   (one of 4 parts, on any machine)
  socratic-runner sweep status STORE   (or collect: see their --help)
"""
EXIT_CODES = """\
exit codes: 0 complete, 1 internal error, 2 usage, 3 credentials or access,
4 runs are missing, 5 a limit such as --fail-under was missed, or too few turns
were judged, 6 budget, 7 deadline, 128+N signal N
"""
STATUS, COLLECT = "status", "collect"
AXIS_TEXTS = {
    "models": "models to test: ids, inference profiles or ARNs",
    "scenarios": "built-in scenarios, or all (list: socratic-runner scenarios)",
    "pred-reasoning": "execution: reasoning that the prompt asks for: low, medium, high",
    "temperature-shifts": "golden: also run items cooler and warmer by this percentage",
    "pressure": "how often the student demands answers: none, low, high",
    "regions": "AWS regions",
    "temperatures": "temperatures, 0 to 1",
    "service-tier": "service tiers: default, priority, flex",
}
AXES = ("models", "scenarios", "repeats")
# Flags of a single run.
EXCLUDED = ("resume-from", "brief")


def main(words: Sequence[str]) -> int:
    """Play the missing runs of a grid, print the sweep's document."""
    if words[:1] in ([STATUS], [COLLECT]):  # a config file of that name is ./status
        from .sweep_status import main_collect, main_status

        return (main_status if words[0] == STATUS else main_collect)(words[1:])
    flags, problems = parse(build_parser(), words)
    # The only door between parsing and playing, as in cli/run.py.
    from .sweep_run import perform

    return perform(flags, problems)


def build_parser() -> Parser:
    """The flags of a run, but those of axes as a sweep has them, and the sweep's own."""
    usage = "[CONFIG.toml] --models ID ... [options]"
    parser = settings_parser("sweep", usage, DESCRIPTION, EXIT_CODES)
    parser.add_argument(
        "plan", nargs="?", metavar="CONFIG.toml", help="TOML config file; the same as --config"
    )
    rows = [*_rows()]
    add_rows(parser, rows)
    own = (row[1].rpartition("--")[2] for row in rows if row[0] == "sweep")
    parser.common = (*dict.fromkeys((*AXES, *own, *COMMON)),)
    # Refused with the reason later, so that scripts which still give it say what to do.
    parser.add_argument("--processes", help=SUPPRESS, **FORMS["word"])
    return parser


def _rows() -> Iterator[Row]:
    sweep_flags = {entry.flag for entry in table(SweepSettings).values()}
    axes = {entry.flag: entry for entry in table(RunConfig).values() if entry.setting.axis}
    for entry in axes.values():
        if entry.setting.axis not in sweep_flags:
            axis = entry.setting.axis
            text = AXIS_TEXTS.get(axis) or entry.fill(entry.setting.text).partition(" (default")[0]
            yield "sweep", f"--{axis}", "many", entry.setting.metavar or "", text
    excluded = {*EXCLUDED, *axes, *sweep_flags}
    for row in listed((SweepSettings, RunConfig, Options)):
        if row.flag and (row.group == "sweep" or row.flag not in excluded):
            flag = f"-{row.short} --{row.flag}" if row.short else f"--{row.flag}"
            yield row.group, flag, row.form, row.metavar or "", row.text
