"""What people see of one run: its head, its chart, what came when, and who said what."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from socratic_bench.types import plural

from . import terminal
from .output import plain, say
from .show_chart import SHORT, UNJUDGED, chart, coloured, sign_of

if TYPE_CHECKING:
    from socratic_bench.studies.report.single import Single
    from socratic_bench.studies.rows import TurnRow

LEAST_COLUMNS = 20
INDENT = "  "
BOLD = 1


def say_run(single: "Single", shown: range | None, *, has_transcript: bool) -> None:
    """The whole picture; `shown` are the turns of the transcript, `None` for all."""
    columns = _columns()
    paragraphs = [_head(single), chart(single, columns), _events(single), _findings(single)]
    if has_transcript:
        paragraphs += [
            _turn(single, turn) for turn in single.run.turns if shown is None or turn.turn in shown
        ]
    for lines in paragraphs:
        told = [part for line in lines for part in wrapped(line, columns)]
        if told:
            say("\n".join([*told, ""]))


def _columns() -> int:
    return max(terminal.columns() - 1, LEAST_COLUMNS)


def _head(single: "Single") -> Iterator[str]:
    run, views = single.run, single.benchmark.views
    for part in wrapped(f"{run.run_id}: {plain(run.model)}", _columns()):
        yield terminal.coloured(part, BOLD)
    named = any(part is not None for part in run.sample)
    sample = f"{views.sample} {plain(run.sample_name)}, " if named else ""
    what = "turn" if run.at("items") is None else "item"
    length = f"{plural(run.n_turns, what)} ({run.at('end_reason')})"
    yield f"{sample}{length}, {_judge(single)}"
    known = {one.name: None for one in single.benchmark.metrics}
    metrics: Mapping[str, Any] = {**known, **(run.at("metrics") or {})}
    yield plain(", ".join(single.benchmark.headline(metrics)))
    for group in views.groups:
        told = [
            f"{name.rpartition('.')[2].replace('_', ' ')} {run.metrics[name]:.4g}"
            for name in group.metrics
            if run.metrics.get(name) is not None
        ]
        if told:
            yield f"{group.title}: {', '.join(told)}"
    facts = ((fact, run.at(fact.path)) for fact in views.facts)
    told = [
        f"{fact.title}: {plain(fact.with_unit(_value(found)))}"
        for fact, found in facts
        if found is not None
    ]
    if told:
        yield "; ".join(told)
    yield f"Played {run.at('timestamps.started_at')}, read from {plain(single.place)}"


def _value(found: object) -> str:
    return f"{found:g}" if isinstance(found, float) else str(found)


def _judge(single: "Single") -> str:
    model = single.run.at("judge.model")
    if model is None:
        return "no judge"
    status = single.run.at("judge.calibration.status")
    named = f", judging {single.judging}" if single.judging else ""
    return plain(f"judged by {model}{f' ({status})' if status else ''}{named}")


def _events(single: "Single") -> Iterator[str]:
    """Each with its turns; of runs without a judge, how many turns came to what."""
    found: dict[str, list[int]] = {}
    for turn in single.run.turns:
        for name in turn.events or ():
            found.setdefault(name, []).append(turn.turn)
    for name, turns in found.items():
        yield f"* {plain(name)}: {'turn' if len(turns) == 1 else 'turns'} {_ranges(turns)}"
    results = Counter(filter(None, map(single.result_of, single.run.turns)))
    if results:
        yield ", ".join(f"{plain(name)} {n}" for name, n in results.most_common())
    missing = single.run.at("items.missing")
    if missing:
        yield f"missing: {_ranges(missing)}"


def _ranges(turns: list[int]) -> str:
    """Such as "2, 5-7"."""
    told: list[list[int]] = []
    for turn in turns:
        if told and turn == told[-1][-1] + 1:
            told[-1][1:] = [turn]
        else:
            told.append([turn])
    return ", ".join("-".join(map(str, one)) for one in told)


def _findings(single: "Single") -> Iterator[str]:
    for view in single.benchmark.views.findings:
        found = single.run.at(view.key)
        entries = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        if entries:
            yield f"{view.title}:"
        for one in entries:
            at = "" if one.get("turn") is None else f" at turn {one['turn']}"
            outcome, text = (plain(str(one.get(key))) for key in (view.outcome, view.text))
            yield f"{INDENT}{outcome}{at}: {text}"


def _turn(single: "Single", turn: "TurnRow") -> Iterator[str]:
    """The words of a turn, and what is told of its reply."""
    parts = single.benchmark.parts
    sign = sign_of(single, turn)
    mark = f"{sign} " if sign in (SHORT, UNJUDGED) else ""
    for part in wrapped(f"{mark}turn {turn.turn}: {_told_of(single, turn)}", _columns()):
        yield coloured(part, sign)
    if turn.said is not None:
        yield from _said(single.benchmark.views.said or "prompt", turn.said)
    yield from _said(parts.tested, turn.reply)
    expected = turn.own.get(single.benchmark.views.expected or "")
    if expected is not None and single.falls_short(turn):
        yield from _said("expected", str(expected))
    for name, quote in (turn.events or {}).items():
        yield f"{INDENT}* {plain(name)}" + (f': "{plain(quote)}"' if quote else "")


def _told_of(single: "Single", turn: "TurnRow") -> str:
    views = single.benchmark.views
    told = [single.result_of(turn) or _score(turn)]
    for name, score in turn.scores.items():
        if score is not None:
            told.append(f"{name} {score:g}{SHORT if score == views.fails_at else ''}")
    kinds = ((kind.key, turn.own.get(kind.key)) for kind in views.kinds)
    told += [f"{key} {found}" for key, found in kinds if found is not None]
    if turn.outcome != "answered" and not single.result_of(turn):
        told.append(turn.outcome)
    return plain(", ".join(told))


def _score(turn: "TurnRow") -> str:
    if turn.is_replayed:
        return "replayed"
    if turn.score is not None:
        return f"score {turn.score:g}"
    return f"unjudged: {turn.unjudged_reason}" if turn.unjudged_reason else "not judged"


def _said(speaker: str, text: str) -> Iterator[str]:
    yield f"{INDENT}{terminal.coloured(f'{speaker}:', BOLD)}"
    for line in text.splitlines() or [""]:
        depth = min(len(line) - len(line.lstrip(" ")), LEAST_COLUMNS)
        yield f"{INDENT * 2}{' ' * depth}{plain(line)}"


def wrapped(line: str, columns: int) -> Iterator[str]:
    """A line, broken between words where it is too wide, and within words that are."""
    if "\x1b" in line or terminal.width_of(line) <= columns:
        yield line.rstrip()
        return
    indent = line[: len(line) - len(line.lstrip(" "))][: columns // 2]
    now, width = indent, len(indent)
    for word in line.split():
        room = terminal.width_of(word)
        if width > len(indent) and width + 1 + room > columns:
            yield now
            now, width = indent, len(indent)
        if width > len(indent):
            now, width = f"{now} ", width + 1
        if width + room <= columns:
            now, width = now + word, width + room
            continue
        for sign in word:
            if (one := terminal.width_of(sign)) + width > columns:
                yield now
                now, width = indent, len(indent)
            now, width = now + sign, width + one
    yield now
