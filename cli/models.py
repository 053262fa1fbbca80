"""`socratic-runner models`: the models that may be tested."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from socratic_bench.benchmarks import RunConfig
from socratic_bench.catalogue.models import capabilities_of, family_of, known_ids
from socratic_bench.catalogue.prices import PriceTable, builtin_prices
from socratic_bench.documents.doctor import ModelEntry, ModelList
from socratic_bench.emulator import MODEL_IDS
from socratic_bench.errors import UsageError
from socratic_bench.runs.prepare import read_prices

from .arguments import Parser, parse_strictly
from .flags import add_output
from .output import print_document, say, say_table
from .settings import calling_flags, read
from .terminal import number

HEADS = ("model", "allowed", "in USD/M", "out USD/M", "reasoning")


def main(words: Sequence[str]) -> int:
    """Print the models that may be tested, with what they take and cost."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    with calling_flags(parser):
        config = _read_config(flags.region, flags.prices, offline=flags.offline)
        prices = read_prices(config) or builtin_prices()
    entries = [_entry(name, config, prices) for name in _names(config, with_known=flags.all)]
    document = ModelList(region=config.region, price_source=prices.source, models=entries)
    return print_document(document, words=partial(_say, entries), flags=vars(flags))


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner models",
        description="Lists the models in BEDROCK_MODEL_IDS (or, if it is unset, the mock models) "
        "with their features and prices. Calls no model.\n\nexample:\n"
        "  socratic-runner models --all",
    )
    parser.add_argument("--all", action="store_true", help="add every model with a known price")
    parser.add_argument(
        "--offline", action="store_true", help="list what a run with --offline can use"
    )
    parser.add_argument("--region", metavar="REGION", help="AWS region of the prices")
    parser.add_argument("--prices", metavar="FILE", help="price file")
    add_output(parser)
    return parser


def _read_config(region: str | None, prices: str | None, *, offline: bool) -> RunConfig:
    """The configuration of a run. That no model is allowed yet is no mistake here."""
    flags = {"region": region, "prices": prices, "offline": offline}
    config, misread = read({name: value for name, value in flags.items() if value})
    if os.environ.get("BEDROCK_MODEL_IDS", "").strip() and config.model_ids is None:
        raise UsageError([problem for problem in misread if "model_ids" in problem.settings])
    return config


def _names(config: RunConfig, *, with_known: bool) -> Iterable[str]:
    ids = known_ids() if with_known else ()
    return dict.fromkeys([*(config.model_ids or MODEL_IDS), *ids])


def _entry(name: str, config: RunConfig, table: PriceTable) -> ModelEntry:
    family, prices = family_of(name), table.of(name, config.region)
    return ModelEntry(
        model_id=name,
        allowed=name in (config.model_ids or ()),
        embedded=name in MODEL_IDS,
        family=family.name if family else None,
        capabilities=capabilities_of(name),
        prices=dict(prices.tiers) if prices else None,
    )


def _say(entries: Sequence[ModelEntry]) -> None:
    # An id stays whole, to be copied.
    least_name = max(len(entry.model_id) for entry in entries)
    rows = [(entry.model_id, *_cells(entry)) for entry in entries]
    say_table(HEADS, rows, HEADS[:1:-1], least_name)
    if not any(entry.allowed for entry in entries):
        say("No model may be tested: set BEDROCK_MODEL_IDS, or use --offline.")


def _cells(entry: ModelEntry) -> Iterator[str]:
    yield "yes" if entry.allowed else "offline" if entry.embedded else "no"
    rates = (entry.prices or {}).get("default")
    yield number(rates.input if rates else None)
    yield number(rates.output if rates else None)
    yield "yes" if entry.capabilities.thinking and entry.family else "no"
