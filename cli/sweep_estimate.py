"""The dry run of a sweep: its document, and what people see of it on stderr."""

from collections import Counter
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from socratic_bench.documents.dry_run import SweepDryRun
from socratic_bench.errors import ENDINGS
from socratic_bench.runs import CancelToken, run_cancellable
from socratic_bench.studies.sweep.estimate import forecast_sweep
from socratic_bench.studies.sweep.request import SweepRequest
from socratic_bench.types import JUDGE, plural

from . import terminal
from .arguments import Flags
from .output import print_document, say, waiting_for
from .progress import duration
from .run_in_thread import run_in_thread
from .sweep_words import count, table, usd

NOT_KNOWN = "unknown"
EXIT_REFUSED = ENDINGS["refused_request"].exit_code


def dry_run(
    asked: SweepRequest, flags: Flags, call: Callable[[str], str], cancel_token: CancelToken
) -> int:
    """Print what the sweep would take; the exit code. Settings are called as `call` does."""
    quiet = bool(flags.get("quiet"))
    # It uses the network, too: to see which endpoint this is, and to count tokens.
    predict = partial(forecast_sweep, asked, call, cancel_token.sleep)
    with waiting_for("the forecast of every kind of cell", quiet=quiet):
        document = run_in_thread(lambda: run_cancellable(predict, cancel_token))
    error = document.error
    if error:
        n_cells = sum(one.n_cells for one in document.refused)
        message = f"{plural(n_cells, 'cell')} would be refused. {error.message}"
        error = replace(error, message=message)
    words, pretty = partial(say_estimate, document), bool(flags.get("pretty"))
    unwritten = print_document(document, words=words, quiet=quiet, error=error, pretty=pretty)
    return EXIT_REFUSED if document.refused else unwritten


def say_estimate(document: SweepDryRun) -> None:
    """A table of the models under test, a line for the whole, and what would make it cheaper."""
    heads = ("model", "cells", "calls", "in", "out", "USD")
    rows = [
        (
            str(group.value),
            str(group.n_cells),
            count(group.usage.calls),
            count(group.usage.input_tokens or 0),
            count(group.usage.output_tokens or 0),
            _usd(group.cost_usd),
        )
        for group in document.groups["model"]
    ]
    for line in table(heads, rows, terminal.columns()):
        say(line)
    _say_jurors(document)
    _say_paces(document)
    _say_savings(document)
    _say_total(document)


def _say_jurors(document: SweepDryRun) -> None:
    jurors = document.cost_by_model.get(JUDGE, {})
    for model, cost_usd in jurors.items() if len(jurors) > 1 else ():
        say(f"{model}: {_usd(cost_usd)} USD as a juror")


def _say_paces(document: SweepDryRun) -> None:
    called = Counter(one.model for one in document.models)
    for one in document.models:
        if one.seconds_at_targets is not None:
            name = f"{one.model} in {one.region}" if called[one.model] > 1 else one.model
            told = [(one.target_rpm, "requests"), (one.target_tpm, "tokens")]
            targets = " and ".join(f"{n:,d} {what}" for n, what in told if n)
            say(f"{name}: {duration(one.seconds_at_targets)} at {targets} a minute")


def _say_savings(document: SweepDryRun) -> None:
    caching, flex = document.caching, document.flex
    say(f"caching: {_usd(caching.with_usd)} USD with it, {_usd(caching.without_usd)} without")
    if flex.cost_usd is not None:
        but = f" (no price for {', '.join(flex.unpriced)})" if flex.unpriced else ""
        say(f"flex: {usd(flex.cost_usd)} USD{but}, perhaps slower")
    else:
        say("flex: no model under test has a known price for it")


def _say_total(document: SweepDryRun) -> None:
    low, high = document.low, document.high
    if document.end_reason == "budget":
        say("the budget ends it early")
    if document.deadline and not document.deadline.covers_expected:
        say(f"the deadline of {document.deadline.deadline_s:g} s comes before its end")
    amount = f"{_usd(document.cost_usd['total'])} USD"
    if None not in (low.cost_usd, high.cost_usd):
        amount += f" ({_usd(low.cost_usd)} to {_usd(high.cost_usd)})"
    span = f"{duration(low.duration_seconds)} to {duration(high.duration_seconds)}"
    say(
        f"{plural(document.n_cells, 'cell')}: expected {amount}, "
        f"{duration(document.duration_seconds)} ({span}); no model was called"
    )


def _usd(amount: float | None) -> str:
    return NOT_KNOWN if amount is None else usd(amount)
