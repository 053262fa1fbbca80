"""`socratic-runner calibrate --labels FILE --judge-model ID`: a judge compared with people."""

from collections.abc import Sequence
from functools import partial

from socratic_bench.documents.calibration import CalibrationDocument
from socratic_bench.documents.judge_status import Figure
from socratic_bench.documents.run import RunResult
from socratic_bench.errors import BenchError, UsageError, Words
from socratic_bench.runs import CancelToken, perform
from socratic_bench.studies.calibrate.calibration import (
    Calibration,
    CalibrationRequest,
    document_of,
    keep,
    prepare_calibration,
)
from socratic_bench.types import plural

from . import terminal
from .arguments import Flags, Parser, parse
from .flags import (
    COMMON,
    MATCH_HELP,
    Row,
    add_rows,
    judge_rows,
    read_matches,
    settings_parser,
)
from .output import plain, print_document, print_failure, say, say_table
from .progress import listener_for
from .run_in_thread import run_in_thread, take_signals
from .settings import bucket_region, call_by_flags, read_untested
from .single_run import print_estimate

DESCRIPTION = """\
Measures judge-human agreement: a judge scores replies that people have labelled.
Prints kappa, alpha, error, bias, precision, recall and AUC with 95% confidence
intervals, clustered by scenario.

example:
  socratic-runner calibrate --labels labels.csv --runs results --judge-model ID
"""
EXIT_CODES = """\
exit codes: 0 complete, 2 usage, 3 credentials or access, 4 service or storage
unavailable, 5 too few replies judged, 6 budget, 7 deadline, 128+N signal N
"""
# Flags of a run that asks the tested model.
EXCLUDED = {
    *("fail-under", "fail-over", "calibration", "no-judge", "rubric", "resume-from", "brief"),
    "config",
}
LABELS: tuple[Row, ...] = (
    (
        "labels",
        "--labels",
        "many",
        "FILE",
        "human labels, JSONL or CSV (format: socratic-runner schema label)",
    ),
    (
        *("labels", "--mrbench", "many", "FILE"),
        "labels of MRBench (V1, V2) or BEA 2025; the rubric is mrbench-8",
    ),
    (
        *("labels", "--runs", "many", "RUNS"),
        "stored runs that the labelled turns belong to",
    ),
    ("labels", "--rubric", "word", "NAME|FILE", "rubric: built-in name or TOML file"),
    (
        *("labels", "--match", "many", "LABEL=QUANTITY"),
        MATCH_HELP,
    ),
    (
        *("labels", "--plan", "word", "X"),
        "say how many more labels narrow the CIs to ±X",
    ),
)
LABEL_FLAGS = frozenset(flag.removeprefix("--") for _, flag, *_ in LABELS)
# The figures of a score and of a yes or no, with the heads of their columns.
SCORE_HEADS = {
    "weighted_kappa": "kappa",
    "alpha": "alpha",
    "mean_absolute_error": "error",
    "bias": "bias",
    "deviation": "error SD",
    "spearman": "spearman",
}
ANSWER_HEADS = {
    "precision": "precision",
    "recall": "recall",
    "kappa": "kappa",
    "auc": "auc",
    "auc_within_authors": "author AUC",
}


def main(words: Sequence[str]) -> int:
    """Judge the labelled replies as a run would, compare, print the calibration."""
    flags, problems = parse(build_parser(), words)
    cancel_token = take_signals()
    try:
        calibration = _prepare(flags, problems)
        if flags.get("dry-run"):
            return print_estimate(calibration.plan, flags, cancel_token)
        result = _perform(calibration, flags, cancel_token)
        document = _store_document(calibration, result)
    except BenchError as error:
        error.call_settings(call_by_flags())
        print_failure(error, flags)
        return error.exit_code
    unwritten = print_document(
        document,
        words=partial(_say_calibration, document),
        flags=flags,
        error=result.error or document.error,
    )
    return result.exit_code or unwritten


def build_parser() -> Parser:
    """The flags of a run that a judge has, and those of labels."""
    parser = settings_parser(
        "calibrate", "--labels FILE ... --judge-model ID [options]", DESCRIPTION, EXIT_CODES
    )
    rows = [*LABELS, *judge_rows(EXCLUDED)]
    add_rows(
        parser, [(*row[:4], row[4].replace("newest run", "newest calibration")) for row in rows]
    )
    parser.common = ("labels", "runs", *COMMON)
    return parser


def _prepare(flags: Flags, problems: Sequence[Words]) -> Calibration:
    """Everything that the flags ask for. Raises `UsageError` with every mistake."""
    run_flags = {name: value for name, value in flags.items() if name not in LABEL_FLAGS}
    config, misread = read_untested(run_flags)
    mistakes: list[Words] = [*problems, *misread]
    request = _read_request(flags, mistakes)
    if not (request.labels or request.mrbench):
        no_labels = "No labels: give --labels FILE or --mrbench FILE."
        raise UsageError([*mistakes, no_labels], hint="See socratic-runner calibrate --help.")
    return prepare_calibration(config, request, mistakes, region=bucket_region)


def _read_request(flags: Flags, problems: list[Words]) -> CalibrationRequest:
    return CalibrationRequest(
        labels=tuple(_words(flags, "labels")),
        mrbench=tuple(_words(flags, "mrbench")),
        runs=tuple(_words(flags, "runs")),
        rubric=str(flags.get("rubric", "")),
        matches=read_matches(_words(flags, "match"), problems),
        half_width=_read_half_width(flags, problems),
    )


def _words(flags: Flags, name: str) -> list[str]:
    value = flags.get(name, ())
    return [value] if isinstance(value, str) else [*value] if not isinstance(value, bool) else []


def _read_half_width(flags: Flags, problems: list[Words]) -> float | None:
    word = flags.get("plan")
    if not isinstance(word, str):
        return None
    try:
        half_width = float(word.strip().removeprefix("±").removeprefix("+-"))
    except ValueError:
        half_width = 0.0
    if not 0 < half_width < float("inf"):
        problems.append(f"--plan takes half the width of an interval, such as 0.08, not {word!r}.")
        return None
    return half_width


def _perform(calibration: Calibration, flags: Flags, cancel_token: CancelToken) -> RunResult:
    listener = listener_for(calibration.plan, quiet=bool(flags.get("quiet")))
    return run_in_thread(
        partial(
            perform,
            calibration.plan,
            listener=listener,
            cancel_token=cancel_token,
            is_journal_shown=False,
        )
    )


def _store_document(calibration: Calibration, result: RunResult) -> CalibrationDocument:
    """Make the document, and store it where the run is stored."""
    if result.error is not None:
        result.error.call_settings(call_by_flags())
    document = document_of(calibration, result)
    keep(document, result.config)
    return document


def _say_calibration(document: CalibrationDocument) -> None:
    """Print a line for each dimension and each label of yes or no, with half of each interval."""
    judge, labels = document.judge, document.labels
    say(
        f"{plain(judge.model)} by {plain(judge.rubric)}: {document.n_judged} of "
        f"{plural(labels.n_turns, 'reply', 'replies')} judged, "
        f"{plural(labels.n_dialogues, 'dialogue')}, {plural(labels.n_scenarios, 'scenario')}, "
        f"{plural(len(labels.labellers), 'labeller')}"
    )
    for head, rows, heads in (
        ("score", document.dimensions, SCORE_HEADS),
        ("event", document.events, ANSWER_HEADS),
    ):
        cells = [
            (name, *(_format(getattr(row, key)) for key in heads)) for name, row in rows.items()
        ]
        if cells:
            names = [*heads.values()]
            say_table((head, *names), cells, names[:0:-1])
    more_labels = {name: row.more_labels for name, row in document.dimensions.items()}
    more_labels |= {name: row.more_labels for name, row in document.events.items()}
    for name, counts in more_labels.items():
        if counts:
            needs = ", ".join(f"{n} ({key})" for key, n in counts.items())
            say(f"labels still needed of {plain(name)}: {needs}")
    for notice in document.notices:
        say(f"note: {plain(notice)}")


def _format(figure: Figure) -> str:
    value = terminal.number(figure.value)
    if figure.low is None or figure.high is None:
        return value
    return f"{value}±{(figure.high - figure.low) / 2:#.2g}"
