"""`socratic-runner doctor`: looks at what a run of the same flags needs, before it is played."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Flags, Parser, parse
from .stdout import EXIT_UNWRITTEN

if TYPE_CHECKING:
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.documents.doctor import DoctorDocument
    from socratic_bench.errors import Words
    from socratic_bench.runner import CancelToken, Plan

USAGE = "socratic-runner doctor [--model ID] [the run's own flags]"
# Flags of a run that say nothing of what it needs.
FOREIGN = ("brief", "dry-run", "resume-from")
OPENING = "Hello."


def main(words: Sequence[str]) -> int:
    """Look at it all, print what was found, and leave with 3 if a run would fail."""
    from socratic_bench.runner import CancelToken

    from .output import waiting_for
    from .run import leave, read, take_signals
    from .run_in_thread import run_in_thread

    flags, problems = parse(build_parser(words), words)
    problems += [f"--{name} does not go with doctor." for name in FOREIGN if name in flags]
    config, misread = read(flags)
    plans = plans_of(config, flags, [*problems, *misread])
    cancel_token = CancelToken()
    take_signals(cancel_token)
    with waiting_for("the models and stores", quiet=bool(flags.get("quiet"))):
        document = run_in_thread(lambda: diagnosed(plans, cancel_token))
    code = exit_code(document, cancel_token)
    return leave(code if _print(document, flags) else code or EXIT_UNWRITTEN, cancel_token)


def build_parser(words: Sequence[str] = ()) -> Parser:
    """That of `run`."""
    from . import flags

    parser = flags.build_parser(words)
    parser.usage = USAGE
    return parser


def plans_of(config: "RunConfig", flags: Flags, problems: "Sequence[Words]") -> "list[Plan]":
    """A run for each model under test: the one that is given, or all that may be tested.

    Raises `UsageError` with every mistake but the lack of opening words, which no check needs.
    """
    from msgspec.structs import replace

    from socratic_bench.errors import UsageError

    names = [config.model] if config.model else [*(config.model_ids or [""])]
    plans: list[Plan] = []
    mistaken: list[UsageError] = []
    for name in names:
        try:
            plans.append(_plan(replace(config, model=name), flags, problems))
        except UsageError as error:
            mistaken.append(error)
    if mistaken:
        from .run import call_by_flags

        said = dict.fromkeys(one for error in mistaken for one in error.said)
        whole = UsageError([*said], hint=f"See {USAGE.partition(' [')[0]} --help.")
        whole.call_settings(call_by_flags())
        raise whole
    return plans


def _plan(config: "RunConfig", flags: Flags, problems: "Sequence[Words]") -> "Plan":
    from msgspec.structs import replace

    from socratic_bench.errors import UsageError
    from socratic_bench.runner import prepare
    from socratic_bench.settings import fields_of

    flagged = fields_of(type(config), flags)
    try:
        return prepare(config, problems, flagged=flagged)
    except UsageError as error:
        if config.prompt is not None:
            raise
        first = error
    try:
        return prepare(replace(config, prompt=OPENING), problems, flagged=flagged)
    except UsageError as error:
        # Mistakes whatever the opening words are.
        raise UsageError([one for one in first.said if one in error.said]) from error


def diagnosed(plans: "Sequence[Plan]", cancel_token: "CancelToken") -> "DoctorDocument":
    """What is found of runs that differ in the model under test alone."""
    from socratic_bench.doctor import diagnose, targets_of

    from .run import call_by_flags

    config = plans[0].config
    cancel_token.start_deadline(config.deadline_s)
    return diagnose(
        [target for plan in plans for target in targets_of(plan)],
        stores=[config],
        cancel_token=cancel_token,
        budget=config.max_cost_usd,
        call=call_by_flags(),
    )


def _print(document: "DoctorDocument", flags: Flags) -> bool:
    from socratic_bench.documents.plain import plain_keys

    from .doctor_table import say_table
    from .output import print_document

    words = partial(say_table, document, quiet=bool(flags.get("quiet")))
    return print_document(plain_keys(document), words=words, pretty=bool(flags.get("pretty")))


def exit_code(document: "DoctorDocument", cancel_token: "CancelToken") -> int:
    """A signal counts first, then what would fail, then what was not looked at."""
    from socratic_bench.errors import ENDINGS, Stopped

    ended = cancel_token.error
    if isinstance(ended, Stopped) and ended.signal_number:
        return 128 + ended.signal_number
    if document.status == "failed":
        return ENDINGS["access"].exit_code
    if document.error is None:
        return 0
    return ended.exit_code if ended else ENDINGS["budget"].exit_code
