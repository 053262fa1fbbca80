"""Transcripts as a page has them: an index of runs, and compressed blocks of their turns."""

import base64
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct

from socratic_bench.studies.report.evidence import shown_text, spans_of
from socratic_bench.studies.report.rows import RunRow, TurnRow, VerdictRow
from socratic_bench.studies.report.study import Study

# Large enough to compress well, small enough to open one in no time.
BLOCK_BYTES = 1_000_000
LEVEL = 9
LONGEST_HEURISTICS = 2_000


class Transcripts(Struct, frozen=True, kw_only=True):
    """`index` is JSON that can stand in a page, `blocks` are raw deflate in base64."""

    index: str
    blocks: Sequence[str]


def transcripts(study: Study, left_out: Collection[str] = ()) -> Transcripts:
    """All runs are in the index; those that are left out have no turns."""
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
            pending.append(orjson.dumps([_turn(turn) for turn in run.turns]))
            if sum(map(len, pending)) >= BLOCK_BYTES:
                blocks.append(_packed(pending))
                pending = []
    if pending:
        blocks.append(_packed(pending))
    index = {
        "score": study.primary.title,
        "models": study.ranked,
        "samples": [shown_text(one) for one in samples],
        "events": events,
        "runs": entries,
    }
    return Transcripts(index=_in_page(orjson.dumps(index)), blocks=blocks)


def events_of(run: RunRow) -> set[str]:
    """The events that any judge saw in it."""
    return {name for turn in run.turns for name in turn.events or ()}


def _entry(run: RunRow, study: Study, samples: Sequence[str], events: Sequence[str]) -> list[Any]:
    return [
        run.run_id,
        study.ranked.index(run.model),
        samples.index(run.sample),
        run.stored.repeat,
        len(run.turns),
        run.metrics[study.primary.name],
        [events.index(name) for name in sorted(events_of(run))],
    ]


def _packed(runs: Sequence[bytes]) -> str:
    squeezed = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = squeezed.compress(b"[" + b",".join(runs) + b"]") + squeezed.flush()
    return base64.b64encode(body).decode()


def _in_page(body: bytes) -> str:
    """JSON in which nothing can end the element that it stands in."""
    return body.decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _turn(turn: TurnRow) -> Mapping[str, Any]:
    reply = shown_text(turn.reply)
    return {
        "n": turn.turn,
        "s": None if turn.said is None else shown_text(turn.said),
        "r": reply,
        "p": turn.score,
        "u": None if turn.is_replayed else turn.unjudged_reason,
        "x": turn.is_replayed,
        "o": turn.outcome,
        "h": shown_text("; ".join(_keys(turn)))[:LONGEST_HEURISTICS],
        "v": [_verdict(one, reply) for one in turn.verdicts],
    }


def _keys(turn: TurnRow) -> Iterator[str]:
    for name, value in {**turn.heuristics, **turn.own}.items():
        if value is not None:
            told = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{name.replace('_', ' ')}: {told.lower() if value in (True, False) else told}"


def _verdict(verdict: VerdictRow, reply: str) -> Mapping[str, Any]:
    seen = verdict.events or {}
    return {
        "j": verdict.juror,
        "p": verdict.score,
        "u": verdict.unjudged_reason,
        "d": verdict.scores,
        "w": {name: shown_text(why) for name, why in verdict.rationale.items() if why},
        "s": [[name, shown_text(quote or "")] for name, quote in seen.items()],
        "e": [*spans_of(reply, {**(verdict.quotes or {}), **seen})],
    }
