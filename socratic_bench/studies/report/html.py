"""A report as one self-contained HTML file, and the transcripts in it."""

import base64
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from socratic_bench.errors import Problem, UsageError
from socratic_bench.studies.report.leaderboard import kinds_of
from socratic_bench.studies.report.parts import clean_text, count_text, spans_of
from socratic_bench.studies.report.report import Report
from socratic_bench.studies.report.study import Study
from socratic_bench.studies.report.svg import draw_charts
from socratic_bench.studies.rows import RunRow, TurnRow, VerdictRow
from socratic_bench.version import VERSION

# So that reports of few runs of many models stay under 600 KB.
MOST_DRAWN_BYTES = 380_000
PAGE = Path(__file__).with_name("page")
# Large enough to compress well, small enough to open one in no time.
BLOCK_BYTES = 1_000_000
LEVEL = 9
LONGEST_HEURISTICS = 2_000


class Page(Struct, frozen=True, kw_only=True):
    """The file, and the ids of runs whose transcripts had no room in it."""

    body: bytes
    left_out: Sequence[str]


class _PageTemplate:
    """All of a page but its transcripts; charts are drawn once."""

    def __init__(self, report: Report, call: Callable[[str], str]) -> None:
        import jinja2

        self._report = report
        self._call = call
        self._style = (PAGE / "report.css").read_text(encoding="utf-8")
        self._script = (PAGE / "browser.js").read_text(encoding="utf-8")

        environment = jinja2.Environment(
            autoescape=True,
            finalize=lambda value: clean_text(value) if type(value) is str else value,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        text = (PAGE / "report.html").read_text(encoding="utf-8")
        environment.filters["unbroken"] = _unbroken
        environment.filters["named"] = _emphasis(report.models)
        self._template = environment.from_string(text)
        figures = (figure for section in report.sections for figure in section.figures)
        self._drawings = draw_charts(
            (figure.chart for figure in figures if figure.chart), MOST_DRAWN_BYTES
        )

    def page(self, study: Study, left_out: Collection[str]) -> bytes:
        blocks = transcripts(study, left_out)
        runs = study.rows.runs
        models = count_text(len(study.ranked), "model")
        text = self._template.render(
            policy=self._policy(),
            style=self._style,
            script=self._script,
            kicker=f"{study.rows.benchmark.name} benchmark, {count_text(len(runs), 'run')} of "
            f"{models}",
            opening=self._report.opening,
            sections=self._report.sections,
            drawings=self._drawings,
            transcripts=blocks,
            sample=study.views.sample,
            speakers=_speakers(study),
            instructions=_instructions(len(left_out), len(runs), self._call),
            footer=f"Made by socratic-runner {VERSION} from stored runs. Intervals are 95 %"
            f"{_clustered(study)}.",
        )
        return text.lstrip().encode()

    def _policy(self) -> str:
        return (
            f"default-src 'none'; style-src {_hash(self._style)}; "
            f"script-src {_hash(self._script)}; base-uri 'none'; form-action 'none'"
        )


class Transcripts(Struct, frozen=True, kw_only=True):
    """`index` is JSON that is safe in a page, `blocks` are raw deflate in base64."""

    index: str
    blocks: Sequence[str]


def page_of(study: Study, report: Report, max_bytes: int, call: Callable[[str], str] = str) -> Page:
    """The page; transcripts are left out, those of the last repeats first, until the file is small
    enough. `call` names a setting for sentences.

    Raises `UsageError` if it is too large even without transcripts.
    """
    template = _PageTemplate(report, call)
    order = [run.run_id for run in sorted(study.rows.runs, key=_repeat)]
    whole = template.page(study, ())
    if len(whole) <= max_bytes:
        return Page(body=whole, left_out=())
    empty = template.page(study, order)
    if len(empty) > max_bytes:
        raise UsageError(
            [f"Even without transcripts the report takes {len(empty):,} bytes."],
            hint=Problem.of("Give it more with {max_size}, or report fewer runs."),
        )
    n_kept = bisect_right(
        range(1, len(order) + 1), max_bytes, key=lambda n: len(template.page(study, {*order[n:]}))
    )
    left_out = order[n_kept:]
    return Page(body=template.page(study, {*left_out}), left_out=left_out)


def _repeat(run: RunRow) -> tuple[int, str]:
    return run.repeat or 0, run.run_id


def transcripts(study: Study, left_out: Collection[str] = ()) -> Transcripts:
    """An index of all runs, the worst first, and compressed blocks of the turns of those not in
    `left_out`.
    """
    events = sorted({name for run in study.rows.runs for name in events_of(run)})
    samples = study.rows.samples
    blocks: list[str] = []
    entries: list[list[Any]] = []
    pending: list[bytes] = []
    for run in study.rows.runs:
        is_kept = run.run_id not in left_out
        place = [len(blocks), len(pending)] if is_kept else [None, None]
        entries.append([*_entry(run, study, samples, events), *place])
        if is_kept:
            pending.append(orjson.dumps([_turn(turn, study) for turn in run.turns]))
            if sum(map(len, pending)) >= BLOCK_BYTES:
                blocks.append(_packed(pending))
                pending = []
    if pending:
        blocks.append(_packed(pending))
    index = {
        "score": "Turns held" if study.survival else study.ordering.title,
        "speakers": _speakers(study),
        "models": study.ranked,
        "samples": [clean_text(sample) for sample in samples],
        "events": events,
        "runs": sorted(entries, key=lambda entry: _place(entry, study)),
    }
    return Transcripts(index=_in_page(orjson.dumps(index)), blocks=blocks)


def _entry(run: RunRow, study: Study, samples: Sequence[str], events: Sequence[str]) -> list[Any]:
    return [
        run.run_id,
        study.ranked.index(run.model),
        samples.index(run.sample_name),
        run.repeat,
        len(run.turns),
        run.metrics[study.ordering.name],
        [events.index(name) for name in sorted(events_of(run))],
        _first_short(run, study),
    ]


def _place(entry: Sequence[Any], study: Study) -> tuple[bool, float, str]:
    """Sort key of a run in the index: the worst first, unknown last."""
    run_id, value = entry[0], entry[5]
    sign = 1 if study.ordering.higher_is_better else -1
    return value is None, sign * (value or 0.0), run_id


def _first_short(run: RunRow, study: Study) -> int | None:
    """The first turn under the threshold, or whose result is wrong."""
    views = study.views
    threshold = run.at(views.threshold) if views.threshold else None
    for turn in run.turns:
        is_low = threshold is not None and turn.score is not None and turn.score < threshold
        result = turn.heuristics.get(views.result) if views.result else None
        if not turn.is_replayed and (is_low or result not in (None, views.right)):
            return turn.turn
    return None


def _speakers(study: Study) -> tuple[str, str]:
    """What the two who speak are called: the one who prompts, and the model under test."""
    return study.views.said or study.views.prompt, study.rows.benchmark.parts.tested


def _turn(turn: TurnRow, study: Study) -> Mapping[str, Any]:
    reply = clean_text(turn.reply)
    return {
        "n": turn.turn,
        "s": None if turn.said is None else clean_text(turn.said),
        "r": reply,
        "p": turn.score,
        "u": None if turn.is_replayed else turn.unjudged_reason,
        "x": turn.is_replayed,
        "o": turn.outcome,
        "k": ", ".join(kinds_of(turn, study)),
        "h": clean_text("; ".join(_keys(turn)))[:LONGEST_HEURISTICS],
        "v": [_verdict(verdict, reply) for verdict in turn.verdicts],
    }


def _keys(turn: TurnRow) -> Iterator[str]:
    for name, value in {**turn.heuristics, **turn.own}.items():
        if value is not None:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{name.replace('_', ' ')}: {text.lower() if value in (True, False) else text}"


def _verdict(verdict: VerdictRow, reply: str) -> Mapping[str, Any]:
    seen = verdict.events or {}
    return {
        "j": verdict.juror,
        "p": verdict.score,
        "u": verdict.unjudged_reason,
        "d": verdict.scores,
        "w": {name: clean_text(why) for name, why in verdict.rationale.items() if why},
        "s": [[name, clean_text(quote or "")] for name, quote in seen.items()],
        "e": [*spans_of(reply, {**(verdict.quotes or {}), **seen})],
    }


def _packed(runs: Sequence[bytes]) -> str:
    squeezed = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = squeezed.compress(b"[" + b",".join(runs) + b"]") + squeezed.flush()
    return base64.b64encode(body).decode()


def _in_page(body: bytes) -> str:
    """JSON that cannot end the element around it."""
    return body.decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def events_of(run: RunRow) -> set[str]:
    """Events that any judge saw in the turn."""
    return {name for turn in run.turns for name in turn.events or ()}


def _unbroken(text: str) -> str:
    """Keep a figure and its sign on one line."""
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text)


def _emphasis(models: Sequence[str]) -> Callable[[str], str]:
    """A function that emphasises names of models in a sentence."""
    from markupsafe import Markup

    longest = sorted(models, key=len, reverse=True)
    names, strong = (
        re.compile(f"({'|'.join(map(re.escape, longest))})"),
        Markup("<strong>{}</strong>"),
    )

    def emphasise(text: str) -> str:
        parts = names.split(_unbroken(clean_text(text)))  # every other one is a name
        return Markup("").join(
            strong.format(part) if n % 2 else part for n, part in enumerate(parts)
        )

    return emphasise


def _clustered(study: Study) -> str:
    """What intervals are clustered by, for a sentence; nothing for items, and for prompts of a
    single sample.
    """
    is_of_parts = any(run.parts for run in study.rows.runs)
    if is_of_parts or len(study.rows.samples) == 1:
        return ""
    return f", clustered by {study.views.sample}"


def _instructions(n_left_out: int, n_runs: int, call: Callable[[str], str]) -> list[str]:
    sentences = [
        (
            "The worst run first; a run opens where it first falls short. What the judge bases a "
            "score or an event on is marked in the reply."
        )
    ]
    if n_left_out:
        sentences.append(
            f"The transcripts of {n_left_out:,} of {count_text(n_runs, 'run')} are left out to "
            f"keep the file small ({call('max_size')})."
        )
    return sentences


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
