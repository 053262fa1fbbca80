"""`socratic-runner show RUN`: one stored run at the terminal."""

import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from socratic_bench.documents.judge_status import agreement_text
from socratic_bench.settings import CoreConfig, Reader
from socratic_bench.studies.reading import Single, read_single
from socratic_bench.studies.rows import TurnRow
from socratic_bench.types import plural

from . import terminal
from .arguments import Parser, parse_strictly
from .flags import add_judging, add_settings, add_switches
from .output import plain, print_document, say, waiting_for
from .settings import bucket_region, calling_flags, sources

DESCRIPTION = """\
Prints one complete stored run: its scores, a chart by turn, events, and the
transcript (on stderr), and a JSON document (on stdout). Calls no model.

example:
  socratic-runner show run-01K9ZN5V2E3T4R5Y6U7J8K9M0N -o results --turns 5-8
"""
EPILOG = "exit codes: 0 shown, 2 usage, 4 storage cannot be read\n"
_TURNS = re.compile(r"(\d+)(?:-(\d+))?")
_OF_IDS = "where the run is stored"
# The settings of a run that say where an id is looked for, each with its help here.
_WHERE = {
    "output_dir": _OF_IDS,
    "s3_bucket": _OF_IDS,
    "s3_prefix": "prefix of the bucket's keys",
}
LEAST_COLUMNS = 20
INDENT = "  "
BOLD = 1
# What marks a turn in the chart, beside its colour.
SHORT, UNJUDGED, RIGHT, UNSCORED, EVENT = "!", "?", "+", ".", "*"
COLOURS = {SHORT: terminal.RED, UNJUDGED: terminal.YELLOW}
# A line of the chart: turn, sign and event, then the bar.
LABEL_COLUMNS, BAR_COLUMNS = 8, 40
BLOCK, ASCII_BLOCK = "█", "#"
THRESHOLD = "|"


def main(words: Sequence[str]) -> int:
    """Draw the run on stderr, and print its figures."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    turns = _read_turns(flags, parser)
    with waiting_for("the stored run", quiet=flags.quiet), calling_flags(parser):
        single = read_single(flags.run, _roots(flags), bucket_region, flags.judging)
    picture = partial(_say_run, single, turns, has_transcript=not flags.no_transcript)
    return print_document(single.document, words=picture, flags=vars(flags), is_always_printed=True)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner show",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="id, document or folder of a run, or a folder or s3:// prefix with one run",
    )
    add_settings(parser, **_WHERE)
    add_judging(parser)
    parser.add_argument("--turns", metavar="A-B", help="show only these turns, counted from 0")
    parser.add_argument("--no-transcript", action="store_true", help="omit the transcript")
    add_switches(parser, "pretty", "quiet", "debug", quiet="print only the document")
    return parser


def _read_turns(flags: Namespace, parser: Parser) -> range | None:
    """The turns whose words are shown, `None` for all. Raises `UsageError` with every mistake."""
    problems = [] if flags.run else ["Missing argument RUN: an id, a file or a folder."]
    turns = None
    if flags.turns is not None:
        match = _TURNS.fullmatch(flags.turns)
        if match:
            turns = range(int(match[1]), int(match[2] or match[1]) + 1)
        if not turns:
            problems.append(f"--turns takes a turn or a range such as 5-12, not {flags.turns!r}.")
    parser.refuse(problems)
    return turns


def _roots(flags: Namespace) -> list[str]:
    """The stores in which an id is looked for: those of flags, or else those of variables."""
    given = {name: word for name in _WHERE if (word := getattr(flags, name))}
    settings = sources({name.replace("_", "-"): word for name, word in given.items()})
    if "output_dir" in given or "s3_bucket" in given:
        settings = replace(settings, environ={})
    folder, bucket, prefix = map(Reader(CoreConfig, settings).read, _WHERE)
    place = "/".join(part for part in (bucket, prefix.strip("/")) if part)
    return [root for root in (folder, f"s3://{place}" if bucket else None) if root]


def _say_run(single: Single, turns: range | None, *, has_transcript: bool) -> None:
    """Draw the whole picture; `turns` are those of the transcript, `None` for all."""
    columns = _columns()
    paragraphs = [
        *(_head_lines(single), _chart_lines(single, columns)),
        *(_event_lines(single), _finding_lines(single)),
    ]
    if has_transcript:
        paragraphs += [
            _turn_lines(single, turn)
            for turn in single.run.turns
            if turns is None or turn.turn in turns
        ]
    for lines in paragraphs:
        parts = [part for line in lines for part in _wrapped(line, columns)]
        if parts:
            say("\n".join([*parts, ""]))


def _columns() -> int:
    return max(terminal.columns() - 1, LEAST_COLUMNS)


def _head_lines(single: Single) -> Iterator[str]:
    run, views = single.run, single.benchmark.views
    for part in _wrapped(f"{run.run_id}: {plain(run.model)}", _columns()):
        yield terminal.coloured(part, BOLD)
    has_sample = any(part is not None for part in run.sample)
    sample = f"{views.sample} {plain(run.sample_name)}, " if has_sample else ""
    what = "turn" if run.at("items") is None else "item"
    length = f"{plural(run.n_turns, what)} ({run.at('end_reason')})"
    yield f"{sample}{length}, {_judge_line(single)}"
    unknown = {metric.name: None for metric in single.benchmark.metrics}
    metrics: Mapping[str, Any] = {**unknown, **(run.at("metrics") or {})}
    yield plain(", ".join(single.benchmark.headline(metrics)))
    for group in views.groups:
        figures = [
            f"{name.rpartition('.')[2].replace('_', ' ')} {run.metrics[name]:.3g}"
            for name in group.metrics
            if run.metrics.get(name) is not None
        ]
        if figures:
            yield f"{group.title}: {', '.join(figures)}"
    facts = ((fact, run.at(fact.path)) for fact in views.facts)
    texts = [
        f"{fact.title}: {plain(fact.with_unit(_value(value)))}"
        for fact, value in facts
        if value is not None
    ]
    if texts:
        yield "; ".join(texts)
    yield f"Started at {run.at('timestamps.started_at')}, read from {plain(single.place)}"


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _judge_line(single: Single) -> str:
    model = single.run.at("judge.model")
    if model is None:
        return "no judge"
    calibration = single.run.at("judge.calibration") or {}
    status = calibration.get("status")
    if status in ("calibrated", "stale"):
        status = f"{status}: {agreement_text(calibration)}"
    judging = f", judging {single.judging}" if single.judging else ""
    return plain(f"judged by {model}{f' ({status})' if status else ''}{judging}")


def _event_lines(single: Single) -> Iterator[str]:
    """Events with their turns; then how many turns had each result, where no judge scores them."""
    turns_by_event: dict[str, list[int]] = {}
    for turn in single.run.turns:
        for name in turn.events or ():
            turns_by_event.setdefault(name, []).append(turn.turn)
    for name, turns in turns_by_event.items():
        yield f"* {plain(name)}: {'turn' if len(turns) == 1 else 'turns'} {_ranges(turns)}"
    results = Counter(filter(None, map(single.result_of, single.run.turns)))
    if results:
        yield ", ".join(f"{plain(name)} {n}" for name, n in results.most_common())
    missing = single.run.at("items.missing")
    if missing:
        yield f"missing: {_ranges(missing)}"


def _ranges(turns: Sequence[int]) -> str:
    """Numbers of turns, such as "2, 5-7"."""
    ranges: list[list[int]] = []
    for turn in turns:
        if ranges and turn == ranges[-1][-1] + 1:
            ranges[-1][1:] = [turn]
        else:
            ranges.append([turn])
    return ", ".join("-".join(map(str, ends)) for ends in ranges)


def _finding_lines(single: Single) -> Iterator[str]:
    for view in single.benchmark.views.findings:
        value = single.run.at(view.key)
        findings = (
            [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
        )
        if findings:
            yield f"{view.title}:"
        for finding in findings:
            turn = "" if finding.get("turn") is None else f" at turn {finding['turn']}"
            outcome, text = (plain(str(finding.get(key))) for key in (view.outcome, view.text))
            yield f"{INDENT}{outcome}{turn}: {text}"


def _turn_lines(single: Single, turn: TurnRow) -> Iterator[str]:
    """The words of a turn, its score and its events."""
    parts = single.benchmark.parts
    sign = _sign_of(single, turn)
    mark = f"{sign} " if sign in (SHORT, UNJUDGED) else ""
    for part in _wrapped(f"{mark}turn {turn.turn}: {_turn_title(single, turn)}", _columns()):
        yield _coloured(part, sign)
    if turn.said is not None:
        yield from _speech(single.benchmark.views.said or "prompt", turn.said)
    yield from _speech(parts.tested, turn.reply)
    expected = turn.own.get(single.benchmark.views.expected or "")
    if expected is not None and single.falls_short(turn):
        yield from _speech("expected", str(expected))
    for name, quote in (turn.events or {}).items():
        yield f"{INDENT}* {plain(name)}" + (f': "{plain(quote)}"' if quote else "")


def _turn_title(single: Single, turn: TurnRow) -> str:
    views = single.benchmark.views
    parts = [single.result_of(turn) or _score(turn)]
    for name, score in turn.scores.items():
        if score is not None:
            parts.append(f"{name} {score:g}{SHORT if score == views.fails_at else ''}")
    kinds = ((kind.key, turn.own.get(kind.key)) for kind in views.kinds)
    parts += [f"{key} {kind}" for key, kind in kinds if kind is not None]
    if turn.outcome != "answered" and not single.result_of(turn):
        parts.append(turn.outcome)
    return plain(", ".join(parts))


def _score(turn: TurnRow) -> str:
    if turn.is_replayed:
        return "replayed"
    if turn.score is not None:
        return f"score {turn.score:g}"
    return f"unjudged: {turn.unjudged_reason}" if turn.unjudged_reason else "not judged"


def _speech(speaker: str, text: str) -> Iterator[str]:
    yield f"{INDENT}{terminal.coloured(f'{speaker}:', BOLD)}"
    for line in text.splitlines() or [""]:
        depth = min(len(line) - len(line.lstrip(" ")), LEAST_COLUMNS)
        yield f"{INDENT * 2}{' ' * depth}{plain(line)}"


def _wrapped(line: str, columns: int) -> Iterator[str]:
    """A line broken between words where it is too wide, and within words that are too wide."""
    if "\x1b" in line:
        yield line.rstrip()
        return
    indent = line[: len(line) - len(line.lstrip(" "))][: columns // 2]
    line = line.rstrip()
    while terminal.width_of(line) > columns:
        end = next(n for n in range(columns, 0, -1) if terminal.width_of(line[:n]) <= columns)
        space = line.rfind(" ", len(indent) + 1, end + 1)
        end = end if space < 0 else space
        yield line[:end].rstrip()
        line = indent + line[end:].lstrip()
    yield line


def _sign_of(single: Single, turn: TurnRow) -> str:
    """The mark of a turn."""
    if turn.unjudged_reason and not turn.is_replayed:
        return UNJUDGED
    falls_short = single.falls_short(turn)
    if falls_short is None:
        return UNSCORED if turn.score is None else RIGHT
    return SHORT if falls_short else RIGHT


def _coloured(text: str, sign: str) -> str:
    return terminal.coloured(text, COLOURS.get(sign)) if text.strip() else text


def _chart_lines(single: Single, columns: int) -> Iterator[str]:
    """A bar for each turn where a judge scores turns, or else a sign for each."""
    turns = single.run.turns
    has_scores = any(turn.score is not None for turn in turns)
    signs = [_coloured(sign, sign) for sign in (_sign_of(single, turn) for turn in turns)]
    if has_scores:
        for turn, sign in zip(turns, signs, strict=True):
            event = EVENT if turn.events else " "
            bar = _bar(single, turn.score, min(columns - LABEL_COLUMNS, BAR_COLUMNS))
            yield f"{turn.turn:4d} {sign}{event} {bar}".rstrip()
    else:
        length = max(1, columns - LABEL_COLUMNS)
        for start in range(0, len(turns), length):
            yield f"{turns[start].turn:4d} {''.join(signs[start : start + length])}"
    yield f"     {_legend(single, has_scores=has_scores)}"


def _bar(single: Single, score: float | None, columns: int) -> str:
    """A score as a bar of at most so many columns, with the threshold where that is beyond it."""
    low, high = single.bounds
    full = BLOCK if _can_show(BLOCK) else ASCII_BLOCK

    def place(value: float) -> int:
        return round((value - low) / ((high - low) or 1.0) * columns)

    n_full = 0 if score is None else min(max(place(score), 1), columns)
    bar = [full] * n_full + [" "] * (columns - n_full)
    if single.threshold is not None and n_full < (at := place(single.threshold)) <= columns:
        bar[at - 1] = THRESHOLD
    return "".join(bar)


def _legend(single: Single, *, has_scores: bool) -> str:
    signs = {_sign_of(single, turn) for turn in single.run.turns}
    parts = [f"{sign} {meaning}" for sign, meaning in _meanings(single).items() if sign in signs]
    if any(turn.events for turn in single.run.turns):
        parts.append(f"{EVENT} event")
    if has_scores and single.threshold is not None:
        parts.append(f"{THRESHOLD} threshold")
    return ", ".join(parts)


def _meanings(single: Single) -> dict[str, str]:
    """What each sign of a turn means, in the order of the legend."""
    right = single.benchmark.views.right
    bound = "" if single.threshold is None else f"{single.threshold:g}"
    return {
        RIGHT: right or (f"score {bound} or more" if bound else "judged"),
        SHORT: f"not {right}" if right else f"score below {bound}",
        UNJUDGED: "no verdict",
        UNSCORED: "not judged",
    }


def _can_show(signs: str) -> bool:
    """Whether stderr takes them."""
    try:
        signs.encode((sys.stderr and sys.stderr.encoding) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
