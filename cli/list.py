"""`socratic-runner list [PLACE]`: the runs and sweeps of a folder or bucket."""

from collections.abc import Sequence
from functools import partial

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.report import ListDocument
from socratic_bench.settings import table
from socratic_bench.studies.listing import list_place

from .arguments import Parser, parse_strictly
from .figure_table import format_cost
from .flags import add_output
from .output import plain, print_document, say, say_table, waiting_for
from .settings import bucket_region, calling_flags, read
from .terminal import UNKNOWN, number

DESCRIPTION = """\
Lists the runs and sweeps in a folder or bucket: status, models, score, cost.
The score is the mean of overall_score (0 to 10); in other benchmarks, of mc
(execution: right on mutated programs) or success_rate (golden).

examples:
  socratic-runner list results
  socratic-runner list s3://BUCKET/PREFIX --json
"""
EPILOG = "exit codes: 0 ok, 2 usage, 4 storage cannot be read\n"
HEADS = ("sweep or run", "status", "models", "runs", "score", "USD")


def main(words: Sequence[str]) -> int:
    """Read the place, print what is there."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    place = str(flags.place or default_place())
    if not place:
        parser.refuse(["Missing argument PLACE: a folder or s3://BUCKET/PREFIX."])
    with waiting_for(f"reading {plain(place)}", quiet=flags.quiet), calling_flags(parser):
        document = list_place(place, bucket_region)
    words_of = partial(_say, document)
    return print_document(document, words=words_of, flags=vars(flags))


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner list",
        usage="%(prog)s [PLACE] [options]",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    settings = table(RunConfig)
    folder, bucket = (settings[name].setting.variables[0] for name in ("output_dir", "s3_bucket"))
    text = f"folder or s3://BUCKET/PREFIX (default: {folder}, else {bucket})"
    parser.add_argument("place", metavar="PLACE", nargs="?", help=text)
    add_output(parser)
    return parser


def default_place() -> str:
    """The store that the environment names, or ""."""
    config, _ = read({})
    if config.output_dir or not config.s3_bucket:
        return config.output_dir or ""
    return f"s3://{config.s3_bucket}/{config.s3_prefix}".rstrip("/")


def _say(document: ListDocument) -> None:
    rows = [
        (
            *(sweep.sweep_id, sweep.status, _models(sweep.models)),
            f"{sweep.n_completed}/{sweep.n_runs}",
            *(number(sweep.score), format_cost(sweep.cost_usd, sweep.models)),
        )
        for sweep in document.sweeps
    ]
    rows += [
        (
            *(run.run_id, run.status, run.model or UNKNOWN, "1", number(run.score)),
            format_cost(run.cost_usd, [run.model or ""]),
        )
        for run in document.runs
    ]
    if rows:
        # An id stays whole, to be copied.
        say_table(HEADS, rows, ("runs", "models", "USD"), max(len(row[0]) for row in rows))
    else:
        say(f"no runs in {plain(document.place)}")


def _models(models: Sequence[str]) -> str:
    return models[0] if len(models) == 1 else f"{len(models)} models"
