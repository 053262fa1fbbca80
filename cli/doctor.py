"""`socratic-runner doctor`: checks beforehand what a run, or a sweep, of the same flags needs."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from textwrap import wrap

from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.doctor import CheckEntry, DoctorDocument, TargetEntry
from socratic_bench.errors import ENDINGS, CheckName, CheckStatus, UsageError, Words
from socratic_bench.models.budget import SpendingLimit
from socratic_bench.runs import CancelToken, prepare
from socratic_bench.runs import doctor_calls as calls_of_runs
from socratic_bench.runs.doctor import diagnose
from socratic_bench.runs.doctor_calls import Target
from socratic_bench.settings import fields_of
from socratic_bench.statistics.intervals import is_available
from socratic_bench.studies.sweep import preflight as calls_of_sweeps
from socratic_bench.studies.sweep.preflight import check as check_sweep
from socratic_bench.studies.sweep.request import names_any, read_sweep
from socratic_bench.types import in_digits, plural

from . import flags as run_flags
from . import sweep, terminal
from .arguments import Flags, Parser, parse
from .config_file import with_config_file
from .output import plain, print_document, say, waiting_for
from .run_in_thread import run_in_thread, take_signals
from .settings import call_by_flags, read, sources
from .sweep_run import flag_of, read_plan

USAGE = "socratic-runner doctor [CONFIG.toml] [flags of a run or a sweep]"
# Flags that say nothing of what is needed.
FOREIGN = ("brief", "dry-run", "resume-from")
UNUSED = ("resume", "fail-under", "turns", "temperature")
OPENING = "Hello."
DESCRIPTION = """\
Preflight: checks what a run or a sweep with the same flags needs: credentials,
role, region, storage, and each model by one call of a few tokens. CONFIG.toml
is the config file of a sweep. Without it and --model, every model in
BEDROCK_MODEL_IDS is called.

examples:
  socratic-runner doctor
  socratic-runner doctor CONFIG.toml
  socratic-runner doctor --model ID --s3-bucket NAME
"""
EXIT_CODES = """\
exit codes: 0 ok, 2 usage, 3 a check failed, 6 budget, 7 deadline, 128+N signal N
"""
MARKS: dict[CheckStatus, str] = {"ok": " ", "warning": "~", "unknown": "?", "failed": "!"}
COLOURS = {"~": terminal.YELLOW, "?": terminal.YELLOW, "!": terminal.RED}
VERDICTS = {
    "ok": "ready: no problem found",
    "failed": "not ready: a run would fail",
    "incomplete": "incomplete: not everything was checked",
}
LABEL_COLUMNS = 14
INDENT = "    "
# Checks that a model's own line names in a word: check, how its message begins, word.
IN_MODEL_LINE: tuple[tuple[CheckName, str, str], ...] = (
    ("streaming", "streamed", "streaming"),
    ("tools", "called", "tools"),
    ("cache_points", "took", "cache points"),
)


def main(words: Sequence[str]) -> int:
    """Check everything, print the document; the exit code is 3 if a run would fail."""
    flags, problems = parse(parser_for(words), words)
    problems += [f"doctor does not take --{name}." for name in FOREIGN if name in flags]
    targets, config, call = read_targets(flags, problems, is_sweep=is_sweep(words))
    cancel_token, quiet = take_signals(), bool(flags.get("quiet"))
    with waiting_for("the models and stores", quiet=quiet):
        document = run_in_thread(lambda: diagnose_targets(targets, config, call, cancel_token))
    code = exit_code(document, cancel_token)
    words_of = partial(say_table, document, quiet=quiet)
    unwritten = print_document(document, words=words_of, flags={**flags, "quiet": False})
    return code or unwritten


def build_parser() -> Parser:
    """The parser of `run`, with the doctor's own help."""
    return _with_own_help(run_flags.build_parser())


def parser_for(words: Sequence[str]) -> Parser:
    """The parser of a sweep if its flags or a plan are given, and else that of a run."""
    return _with_own_help(sweep.build_parser()) if is_sweep(words) else build_parser()


def is_sweep(words: Sequence[str]) -> bool:
    """Whether a plan comes first, or a flag that no run has."""
    if words[:1] and not words[0].startswith("-"):
        return True
    of_run = {"-h", "--help"} | {flag for row in run_flags.stored_rows() for flag in row[1].split()}
    parser = sweep.build_parser()
    of_sweep = {name for action in parser._actions for name in action.option_strings}  # noqa: SLF001
    return any(word.partition("=")[0] in of_sweep - of_run for word in words)


def read_targets(
    flags: Flags, problems: Sequence[Words], *, is_sweep: bool
) -> tuple[Sequence[Target], RunConfig, Callable[[str], str]]:
    """The models to call, what all runs have in common, and what turns settings into flags.

    Raises `UsageError` with every mistake but missing opening words, which no check needs.
    """
    call = flag_of if is_sweep else call_by_flags()
    try:
        targets, config = (_sweep_targets if is_sweep else _run_targets)(flags, problems)
    except UsageError as error:
        whole = UsageError(error.sentences, hint=f"See {USAGE.partition(' [')[0]} --help.")
        whole.call_settings(call)
        raise whole from error
    return targets, config, call


def diagnose_targets(
    targets: Sequence[Target],
    config: RunConfig,
    call: Callable[[str], str],
    cancel_token: CancelToken,
) -> DoctorDocument:
    """The document on the targets and on the stores of the configuration."""
    cancel_token.start_deadline(config.deadline_s)
    return diagnose(
        targets,
        stores=[config],
        cancel_token=cancel_token,
        limit=None if config.max_cost_usd is None else SpendingLimit(config.max_cost_usd),
        call=call,
    )


def exit_code(document: DoctorDocument, cancel_token: CancelToken) -> int:
    """A signal counts first, then what would fail, then what was not looked at."""
    ended = cancel_token.error
    if ended and ended.signal_number:
        return ended.exit_code
    if document.status == "failed":
        return ENDINGS["access"].exit_code
    if document.error is None:
        return 0
    return ended.exit_code if ended else ENDINGS["budget"].exit_code


def say_table(document: DoctorDocument, *, quiet: bool) -> None:
    """Print all checks for people, or only what failed if they want `quiet`."""
    for check in document.checks:
        if not quiet or check.status == "failed":
            _say_check(check)
    for model in document.models:
        if not quiet or model.status == "failed":
            _say_model(model)
    if not quiet:
        _say_row(" ", "", ", ".join(_summary(document)))
    if document.error:
        _say_row("!", document.error.code, document.error.message)
        _say_hint(document.error.hint)


def _with_own_help(parser: Parser) -> Parser:
    parser.usage, parser.description = USAGE, DESCRIPTION
    parser.common = tuple(name for name in parser.common or () if name not in (*FOREIGN, *UNUSED))
    parser.epilog = (parser.epilog or "").partition("exit codes")[0] + EXIT_CODES
    return parser


def _run_targets(flags: Flags, problems: Sequence[Words]) -> tuple[Sequence[Target], RunConfig]:
    """The models of a run; without a model, of a run of each that may be tested."""
    flags, mistakes = with_config_file(flags) if "config" in flags else (flags, ())
    config, misread = read(flags)
    problems = [*problems, *mistakes]
    flagged = fields_of(type(config), flags)
    read_models = partial(_model_targets, problems=[*problems, *misread], flagged=flagged)
    return _with_any_opening(read_models, config), config


def _model_targets(
    config: RunConfig, problems: Sequence[Words], flagged: Collection[str]
) -> Sequence[Target]:
    targets: list[Target] = []
    mistakes: dict[Words, None] = {}
    for name in [config.model] if config.model else [*(config.model_ids or [""])]:
        try:
            plan = prepare(replace(config, model=name), problems, flagged=flagged)
            targets.extend(calls_of_runs.targets_of(plan))
        except UsageError as error:
            mistakes.update(dict.fromkeys(error.sentences))
    if mistakes:
        raise UsageError([*mistakes])
    return targets


def _sweep_targets(flags: Flags, problems: Sequence[Words]) -> tuple[Sequence[Target], RunConfig]:
    plan = read_plan(flags, problems)
    request, misread = read_sweep(flags, sources({**plan.flags, **flags}), plan, keeps=False)

    def read_models(base: RunConfig) -> Sequence[Target]:
        with_base = replace(request, grid=replace(request.grid, base=base))
        check_sweep(with_base, [*problems, *misread], is_available)
        return calls_of_sweeps.targets_of(with_base)

    return _with_any_opening(read_models, request.grid.base), request.grid.base


def _with_any_opening(
    read_models: Callable[[RunConfig], Sequence[Target]], config: RunConfig
) -> Sequence[Target]:
    """The models of a configuration, or of the same with opening words if it needs some.

    Whether there are opening words is no mistake of the user's here.
    """
    try:
        return read_models(config)
    except UsageError as error:
        if config.prompt is not None:
            raise
        first = error
    try:
        return read_models(replace(config, prompt=OPENING))
    except UsageError as error:
        mistakes = [mistake for mistake in error.sentences if not names_any(mistake, {"prompt"})]
        # A benchmark may take no opening words at all.
        raise UsageError(mistakes or first.sentences) from error


def _say_check(check: CheckEntry) -> None:
    text = f"{check.subject}: {check.message}"
    _say_row(MARKS[check.status], check.check.replace("_", " "), text)
    _say_hint(check.hint)


def _say_model(model: TargetEntry) -> None:
    answer = model.checks[0]
    _say_row(MARKS[model.status], ", ".join(model.roles), ", ".join(_about(model, answer)))
    _say_hint(answer.hint)
    for check in model.checks[1:]:
        if check.status != "ok":
            name = check.check.replace("_", " ")
            _say_row(MARKS[check.status], name, check.message)
            _say_hint(check.hint)


def _about(model: TargetEntry, answer: CheckEntry) -> Iterator[str]:
    tier = f" ({model.service_tier})" if model.service_tier else ""
    where = f" in {model.region}" if model.region else ""
    yield f"{model.model_id}{where}{tier}: {answer.message}"
    if answer.status != "ok":
        return
    ok = {check.check: check.message for check in model.checks if check.status == "ok"}
    yield from (word for name, begin, word in IN_MODEL_LINE if ok.get(name, "").startswith(begin))
    if model.cost_usd is not None:
        yield f"{in_digits(model.cost_usd)} USD"
    yield from (check.message for check in model.checks if check.check == "quota")


def _summary(document: DoctorDocument) -> Iterator[str]:
    yield VERDICTS[document.status]
    yield plural(len(document.models), "model")
    for n, word in (
        (document.n_failed, "failed"),
        (document.n_warnings, "with a warning"),
        (document.n_unknown, "unknown"),
    ):
        if n:
            yield f"{n} {word}"
    if document.cost_usd is not None:
        billed = "" if document.billed else " (simulated)"
        yield f"{in_digits(document.cost_usd)} USD{billed}"
    yield f"{document.duration_seconds:.1f} s"


def _say_hint(hint: str | None) -> None:
    if hint:
        _say_folded(INDENT, plain(hint))


def _say_row(mark: str, label: str, text: str) -> None:
    """Print a mark, a label, and the text behind them or, if it has no room there, below."""
    head = f"{mark} {label:{LABEL_COLUMNS}s} " if label else f"{mark} "
    colour = COLOURS.get(mark)
    room = terminal.columns() - len(head)
    text = plain(text)
    if terminal.is_terminal() and max(map(len, text.split()), default=0) > room:
        say(terminal.coloured(head.rstrip(), colour))
        _say_folded(INDENT, text)
        return
    lines = _lines(text, room)
    say(terminal.coloured(head, colour) + (lines[0] if lines else ""))
    for line in lines[1:]:
        say(" " * len(head) + line)


def _say_folded(indent: str, text: str) -> None:
    for line in _lines(text, terminal.columns() - len(indent)):
        say(indent + line)


def _lines(text: str, room: int) -> Sequence[str]:
    if not terminal.is_terminal():
        return [text]
    return wrap(text, max(1, room), break_long_words=False, break_on_hyphens=False)
