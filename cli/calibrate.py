"""`socratic-runner calibrate --labels FILE --judge-model ID`: a judge held to what people say."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .arguments import Flags, Parser, parse
from .flags import Row, add_rows, judge_rows, settings_parser
from .stored_runs import NO_LABELS, YES_BY, read_matches

if TYPE_CHECKING:
    from socratic_bench.documents.calibration import CalibrationDocument
    from socratic_bench.documents.run import RunResult
    from socratic_bench.errors import Words
    from socratic_bench.runs import CancelToken
    from socratic_bench.studies.calibrate.calibration import Calibration, CalibrationRequest

DESCRIPTION = """\
Has a judge score replies that people have labelled, and prints one JSON document with how far they
agree: kappa, alpha (with the extra stats), error, bias, precision, recall and AUC, with intervals
over dialogues.
"""
EXIT_CODES = """\
exit codes: 0 complete, 2 usage, 3 credentials or access, 4 service or store unavailable, 5 too few
replies were judged, 6 deadline or budget, 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
"""
# Of a run that plays something.
NOT_HERE = {"fail-under", "calibration", "no-judge", "rubric", "resume-from", "brief"}
LABELS: tuple[Row, ...] = (
    ("labels", "--labels", "many", "FILE", "labels, JSONL or CSV (socratic-runner schema label)"),
    (
        *("labels", "--runs", "many", "RUNS"),
        "documents, folders or s3://BUCKET/PREFIX of runs whose turns labels name without words",
    ),
    ("labels", "--rubric", "word", "NAME|FILE", "edition of the rubric, or one in a TOML file"),
    (
        *("labels", "--match", "many", "LABEL=QUANTITY"),
        YES_BY,
    ),
    (
        *("labels", "--plan", "word", "X"),
        "tell how many more labels make intervals as narrow as ±X",
    ),
)
OWN = frozenset(flag.removeprefix("--") for _, flag, *_ in LABELS)


def main(words: Sequence[str]) -> int:
    """Judge the labelled replies as a run would, compare, print the calibration."""
    from socratic_bench.errors import BenchError

    from .output import print_failure
    from .run_in_thread import take_signals
    from .single_run import print_estimate
    from .sources import call_by_flags

    flags, problems = parse(build_parser(), words)
    cancel_token = take_signals()
    try:
        calibration = prepared(flags, problems)
        if flags.get("dry-run"):
            return print_estimate(calibration.plan, flags, cancel_token)
        result = _perform(calibration, flags, cancel_token)
        document = _document(calibration, result)
    except BenchError as error:
        error.call_settings(call_by_flags())
        print_failure(error)
        return error.exit_code
    return _report(document, result, flags)


def build_parser() -> Parser:
    """The flags of a run that a judge has, and those of labels."""
    parser = settings_parser(
        "calibrate", "--labels FILE ... --judge-model ID [options]", DESCRIPTION, EXIT_CODES
    )
    add_rows(parser, [*LABELS, *judge_rows(NOT_HERE)])
    return parser


def prepared(flags: Flags, problems: "Sequence[Words]") -> "Calibration":
    """Raises `UsageError` with every mistake."""
    from socratic_bench.errors import UsageError
    from socratic_bench.studies.calibrate.calibration import prepare_calibration

    from .sources import bucket_region, read_untested

    kept = {name: value for name, value in flags.items() if name not in OWN}
    config, misread = read_untested(kept)
    found: list[Words] = [*problems, *misread]
    asked = _asked(flags, found)
    if not asked.labels:
        raise UsageError([*found, NO_LABELS], hint="See docs/calibration.md.")
    return prepare_calibration(config, asked, found, region=bucket_region)


def _asked(flags: Flags, problems: "list[Words]") -> "CalibrationRequest":
    from socratic_bench.studies.calibrate.calibration import CalibrationRequest

    return CalibrationRequest(
        labels=tuple(_words(flags, "labels")),
        runs=tuple(_words(flags, "runs")),
        rubric=str(flags.get("rubric", "")),
        matches=read_matches(_words(flags, "match"), problems),
        half_width=_half_width(flags, problems),
    )


def _words(flags: Flags, name: str) -> list[str]:
    value = flags.get(name, ())
    return [value] if isinstance(value, str) else [*value] if not isinstance(value, bool) else []


def _half_width(flags: Flags, problems: "list[Words]") -> float | None:
    word = flags.get("plan")
    if not isinstance(word, str):
        return None
    try:
        found = float(word.strip().removeprefix("±").removeprefix("+-"))
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        problems.append(f"--plan takes the half of an interval, such as 0.08, not {word!r}.")
        return None
    return found


def _perform(calibration: "Calibration", flags: Flags, cancel_token: "CancelToken") -> "RunResult":
    from socratic_bench.runs import perform

    from .progress import listener_for
    from .run_in_thread import run_in_thread

    plan = calibration.plan
    listener = listener_for(plan, quiet=bool(flags.get("quiet")))
    return run_in_thread(
        partial(perform, plan, listener=listener, cancel_token=cancel_token, is_journal_shown=False)
    )


def _document(calibration: "Calibration", result: "RunResult") -> "CalibrationDocument":
    """It is kept where the run is, too."""
    from socratic_bench.studies.calibrate.calibration import document_of, keep

    from .sources import call_by_flags

    if result.error is not None:
        result.error.call_settings(call_by_flags())
    document = document_of(calibration, result)
    keep(document, result.config)
    return document


def _report(document: "CalibrationDocument", result: "RunResult", flags: Flags) -> int:

    from .calibrate_table import say_calibration
    from .output import print_document

    unwritten = print_document(
        document,
        words=partial(say_calibration, document),
        quiet=bool(flags.get("quiet")),
        error=result.error or document.error,
        pretty=bool(flags.get("pretty")),
    )
    return result.exit_code or unwritten
