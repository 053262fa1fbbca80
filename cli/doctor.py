"""`socratic-runner doctor`: looks at what a run, or a sweep, of the same flags needs beforehand."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Flags, Parser, parse

if TYPE_CHECKING:
    from socratic_bench.benchmarks import RunConfig
    from socratic_bench.documents.doctor import DoctorDocument
    from socratic_bench.errors import Words
    from socratic_bench.runs import CancelToken
    from socratic_bench.runs.doctor_calls import Target

USAGE = "socratic-runner doctor [--model ID] [the flags of a run, or of a sweep]"
# Flags that say nothing of what is needed.
FOREIGN = ("brief", "dry-run", "resume-from")
OPENING = "Hello."
DESCRIPTION = """\
Looks at what a run, or a sweep, of the same flags needs: credentials, role, region, stores, and
every model in its own role by one call of a few tokens. A table goes to stderr, a JSON document to
stdout. Without --model all that may be tested are asked.
"""
EXIT_CODES = """\
exit codes: 0 nothing failed, 2 usage, 3 something failed that is needed, 6 deadline or budget, 129
SIGHUP, 130 SIGINT, 143 SIGTERM.
"""


def main(words: Sequence[str]) -> int:
    """Look at it all, print what was found, and leave with 3 if a run would fail."""
    from .doctor_table import say_table
    from .output import print_document, waiting_for
    from .run_in_thread import run_in_thread, take_signals

    flags, problems = parse(parser_for(words), words)
    problems += [f"--{name} does not go with doctor." for name in FOREIGN if name in flags]
    asked = asked_of(flags, problems, is_sweep=is_sweep(words))
    cancel_token, quiet = take_signals(), bool(flags.get("quiet"))
    with waiting_for("the models and stores", quiet=quiet):
        document = run_in_thread(lambda: diagnosed(*asked, cancel_token))
    code = exit_code(document, cancel_token)
    words_of = partial(say_table, document, quiet=quiet)
    unwritten = print_document(document, words=words_of, pretty=bool(flags.get("pretty")))
    return code or unwritten


def build_parser() -> Parser:
    """That of `run`."""
    from . import flags

    return _with_own_help(flags.build_parser())


def _with_own_help(parser: Parser) -> Parser:
    parser.usage, parser.description = USAGE, DESCRIPTION
    parser.epilog = (parser.epilog or "").partition("exit codes")[0] + EXIT_CODES
    return parser


def parser_for(words: Sequence[str]) -> Parser:
    """That of a sweep, if its flags or a plan are given."""
    if not is_sweep(words):
        return build_parser()
    from . import sweep_flags

    return _with_own_help(sweep_flags.build_parser())


def is_sweep(words: Sequence[str]) -> bool:
    """Whether a plan comes first, or a flag that no run has."""
    if words[:1] and not words[0].startswith("-"):
        return True
    from . import sweep_flags
    from .flags import stored_rows

    of_run = {"-h", "--help"} | {flag for row in stored_rows() for flag in row[1].split()}
    parser = sweep_flags.build_parser()
    of_sweep = {name for action in parser._actions for name in action.option_strings}  # noqa: SLF001
    return any(word.partition("=")[0] in of_sweep - of_run for word in words)


Asked = tuple["Sequence[Target]", "RunConfig", Callable[[str], str]]


def asked_of(flags: Flags, problems: "Sequence[Words]", *, is_sweep: bool) -> Asked:
    """What is to be looked at, what all runs share, and how settings are called. Raises
    `UsageError` with every mistake but the lack of opening words, which no check needs.
    """
    from socratic_bench.errors import UsageError

    from .sources import call_by_flags
    from .sweep import call_by_flags as call_by_sweep_flags

    call = call_by_sweep_flags() if is_sweep else call_by_flags()
    read = _of_sweep if is_sweep else _of_run
    try:
        return (*read(flags, problems), call)
    except UsageError as error:
        whole = UsageError(error.sentences, hint=f"See {USAGE.partition(' [')[0]} --help.")
        whole.call_settings(call)
        raise whole from error


Read = tuple["Sequence[Target]", "RunConfig"]


def _whatever_the_opening(
    look: "Callable[[RunConfig], Sequence[Target]]", config: "RunConfig"
) -> "Sequence[Target]":
    """What is found of it as it is, or else with opening words, if it has none: neither that they
    are there nor that they are not is a mistake of its user's.
    """
    from msgspec.structs import replace

    from socratic_bench.errors import UsageError
    from socratic_bench.studies.sweep.request import names_any

    try:
        return look(config)
    except UsageError:
        if config.prompt is not None:
            raise
    try:
        return look(replace(config, prompt=OPENING))
    except UsageError as error:
        raise UsageError(
            [one for one in error.sentences if not names_any(one, {"prompt"})]
        ) from error


def _of_run(flags: Flags, problems: "Sequence[Words]") -> Read:
    """With a run for each model that may be tested, if none is given."""
    from socratic_bench.settings import fields_of

    from .sources import read

    config, misread = read(flags)
    flagged = fields_of(type(config), flags)
    look = partial(_targets, problems=[*problems, *misread], flagged=flagged)
    return _whatever_the_opening(look, config), config


def _targets(
    config: "RunConfig", problems: "Sequence[Words]", flagged: Collection[str]
) -> "Sequence[Target]":
    from msgspec.structs import replace

    from socratic_bench.errors import UsageError
    from socratic_bench.runs import prepare
    from socratic_bench.runs.doctor_calls import targets_of

    targets: list[Target] = []
    mistakes: dict[Words, None] = {}
    for name in [config.model] if config.model else [*(config.model_ids or [""])]:
        try:
            plan = prepare(replace(config, model=name), problems, flagged=flagged)
            targets.extend(targets_of(plan))
        except UsageError as error:
            mistakes.update(dict.fromkeys(error.sentences))
    if mistakes:
        raise UsageError([*mistakes])
    return targets


def _of_sweep(flags: Flags, problems: "Sequence[Words]") -> Read:
    from msgspec.structs import replace

    from socratic_bench.statistics.quantiles import is_available
    from socratic_bench.studies.sweep.checking import check
    from socratic_bench.studies.sweep.request import read_sweep
    from socratic_bench.studies.sweep.targets import targets_of

    from .sources import sources
    from .sweep import plan_of

    plan = plan_of(flags, problems)
    asked, misread = read_sweep(flags, sources({**plan.flags, **flags}), plan, keeps=False)

    def look(base: "RunConfig") -> "Sequence[Target]":
        opened = replace(asked, grid=replace(asked.grid, base=base))
        check(opened, [*problems, *misread], is_available)
        return targets_of(opened)

    return _whatever_the_opening(look, asked.grid.base), asked.grid.base


def diagnosed(
    targets: "Sequence[Target]",
    config: "RunConfig",
    call: Callable[[str], str],
    cancel_token: "CancelToken",
) -> "DoctorDocument":
    """What is found of them, and of the stores of the configuration."""
    from socratic_bench.runs.doctor import diagnose

    cancel_token.start_deadline(config.deadline_s)
    return diagnose(
        targets,
        stores=[config],
        cancel_token=cancel_token,
        max_cost_usd=config.max_cost_usd,
        call=call,
    )


def exit_code(document: "DoctorDocument", cancel_token: "CancelToken") -> int:
    """A signal counts first, then what would fail, then what was not looked at."""
    from socratic_bench.errors import ENDINGS

    ended = cancel_token.error
    if ended and ended.signal_number:
        return ended.exit_code
    if document.status == "failed":
        return ENDINGS["access"].exit_code
    if document.error is None:
        return 0
    return ended.exit_code if ended else ENDINGS["budget"].exit_code
