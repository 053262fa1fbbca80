"""Whole runs through `run` against a scripted service, and what they left."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from socratic_bench import CancelToken, RunConfig, RunResult, run
from socratic_bench.errors import ENDINGS
from socratic_bench.models.events import CallEvent
from socratic_bench.ports.benchmark import Sample
from socratic_bench.turns import Turn
from tests.fakes import (
    FakeBedrock,
    Sent,
    answer,
    breaches,
    refusal,
    scored,
    stored,
)

CONFIG = RunConfig(
    model="tutor",
    prompt="I wonder about trains.",
    turns=3,
    judge_model="judge",
    seed=7,
    region="us-east-1",
    max_attempts=1,
)
GONE = refusal(503, "ServiceUnavailableException")
DENIED = refusal(403, "AccessDeniedException")
ASKS = answer("What do you mean by that?")
GOOD = scored(3, 3, 4)
PROSE = answer("Well done!")
LISTENS = answer("Hm.")


def player(service: FakeBedrock, out: Path) -> Any:
    """Plays a run with the scripts that it is given, and keeps it in the folder `out`."""

    def played(
        *,
        tutor: Any = (ASKS,),
        judge: Any = (GOOD,),
        student: Any = (LISTENS,),
        cancel_token: CancelToken | None = None,
        listener: Any = None,
        **config: Any,
    ) -> RunResult:
        service.scripts = {"tutor": tutor, "judge": judge, "student": student}
        whole = replace(CONFIG, output_dir=str(out), **config)
        return run(whole, cancel_token=cancel_token, listener=listener)

    return played


@dataclass(frozen=True)
class Ending:
    end_reason: str
    status: str
    exit_code: int
    n_turns: int
    curated: bool


def ending(result: RunResult, out: Path) -> Ending:
    """How a run ended, after a look at everything that every ending has in common."""
    document = result.document
    kept = stored(out)
    raw = {key for key in kept if key.startswith("raw/")}
    assert breaches("run", document) == []
    for key in raw:
        kind = next((kind for kind in ("turn", "closing_verdict") if f"/{kind}" in key), "judge")
        assert breaches(kind, kept[key]) == []
    turns = {
        f"raw/runs/{result.run_id}/turn_{index:03d}.json" for index in range(len(result.turns))
    }
    assert turns <= raw
    assert ENDINGS[result.end_reason].exit_code == result.exit_code or result.shortfalls
    assert (document["error"] is None) is (result.exit_code == 0)
    curated = f"curated/runs/{result.run_id}.json" in kept
    assert (document["output_artifacts"]["curated"] is not None) is curated
    return Ending(result.end_reason, result.status, result.exit_code, document["n_turns"], curated)


def texts(sent: Sent) -> list[str]:
    """The words of each message, without the cache points between them."""
    return [
        "".join(part["text"] for part in one["content"] if "cachePoint" not in part)
        for one in sent.body["messages"]
    ]


@dataclass
class Ear:
    """A listener that keeps what it hears and can act on it."""

    heard: list[str] = field(default_factory=list)
    after_turn: dict[int, Any] = field(default_factory=dict)

    def on_start(self, run_id: str, config: RunConfig, opening: Sample) -> None:
        self.heard.append(f"start {opening.id}")

    def on_call(self, event: CallEvent) -> None: ...

    def on_wait(self, what: str) -> None: ...

    def on_turn(self, turn: Turn) -> None:
        self.heard.append(f"turn {turn.index}")
        self.after_turn.get(turn.index, lambda: None)()

    def on_judged(self, turn: Turn) -> None:
        self.heard.append(f"judged {turn.index}")

    def on_notice(self, text: str) -> None:
        self.heard.append(text)

    def on_end(self) -> None:
        self.heard.append("end")
