"""What prompt caching takes off the bill, at an endpoint that counts as the service does."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from socratic_bench.emulator import Emulator, Settings
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.bedrock.capabilities import Options
from socratic_bench.models.prompt_cache import MAX_WAIT_S, PromptCacheGate
from socratic_bench.types import CLOSING, CallKey, Message, Request, Usage
from tests.fakes import FakeBedrock, Said, Sent, answer, refusal
from tests.test_bedrock_model import Around, Bench, connected

TUTOR = "emulator.socratic-v1:0"
JUDGE = CallKey(role="judge", index=0)
WRITE, READ = 1.25, 0.1
# Requests that wait for each other arrive together once the gate gives up, which shows nothing.
MEETING_S = MAX_WAIT_S / 4


def text(tokens: int, mark: str) -> str:
    """So many tokens as the emulator counts them: of four characters each, and three a block."""
    return mark.ljust(4 * (tokens - 3), "x")


def played(turns: int, minimum: int) -> list[Usage]:
    """A dialogue: system 400 tokens, each student's words 60, each reply 200."""
    usages: list[Usage] = []
    messages: tuple[Message, ...] = ()
    with (
        Emulator(Settings(cache_minimum_tokens=minimum)) as emulator,
        connected(emulator.url) as client,
    ):
        model = Bench(client).model(TUTOR)
        for turn in range(turns):
            messages += (Message.user(text(60, f"s{turn}")),)
            request = Request(
                system=text(400, "system"),
                messages=messages,
                config=GenerateConfig(max_tokens=1024),
                is_cacheable_prefix=True,
            )
            usage = model.complete(request, CallKey(role="tutor", index=turn)).usage
            assert usage is not None
            usages.append(usage)
            messages += (Message.assistant(text(200, f"t{turn}")),)
    return usages


def share_of_uncached(usages: list[Usage]) -> float:
    billed = sum(
        one.input_tokens
        - one.cache_read_tokens
        - one.cache_write_tokens
        + WRITE * one.cache_write_tokens
        + READ * one.cache_read_tokens
        for one in usages
    )
    return billed / sum(one.input_tokens for one in usages)


@pytest.mark.parametrize(
    ("turns", "minimum", "at_most"),
    [(40, 1024, 0.17), (80, 1024, 0.14), (40, 4096, 0.29), (80, 4096, 0.17)],
)
def test_a_dialogue_costs_a_fraction(turns, minimum, at_most):
    usages = played(turns, minimum)

    assert usages[0].input_tokens == 460
    assert sum(one.input_tokens for one in usages) == turns * 460 + 260 * turns * (turns - 1) // 2
    assert share_of_uncached(usages) <= at_most


def test_each_turn_reads_all_that_the_last_one_wrote():
    usages = played(12, 1024)
    first = next(at for at, one in enumerate(usages) if one.cache_write_tokens)

    for before, one in zip(usages[first:], usages[first + 1 :], strict=False):
        assert one.cache_read_tokens == before.input_tokens
        assert one.cache_write_tokens == one.input_tokens - one.cache_read_tokens


# --- a prefix that many requests share ---

VERDICT = Request(
    system=text(1200, "rubric"),
    messages=(Message.user("The reply."),),
    config=GenerateConfig(max_tokens=100),
)


def judged(index: int) -> tuple[Request, CallKey]:
    request = replace(VERDICT, messages=(Message.user(f"Reply {index}."),))
    return request, replace(JUDGE, index=index)


def test_a_long_rubric_is_written_once_however_many_verdicts_go_at_once():
    with Emulator(Settings(latency_ms=30)) as emulator, connected(emulator.url) as client:
        model = Bench(client).model()
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda index: model.complete(*judged(index)), range(8)))
    usages = [one.usage for one in found if one.usage]

    assert sorted(one.cache_write_tokens for one in usages) == [0] * 7 + [1200]
    assert sorted(one.cache_read_tokens for one in usages) == [0] + [1200] * 7


def test_no_verdict_has_a_point_after_its_message():
    with (
        Emulator(Settings(keep_bodies=True)) as emulator,
        connected(emulator.url) as client,
    ):
        Bench(client).model().complete(*judged(0))
        (sent,) = emulator.requests
    body = json.loads(sent.body or b"")

    assert body["system"][1:] == [{"cachePoint": {"type": "default"}}]
    assert body["messages"] == [{"role": "user", "content": [{"text": "Reply 0."}]}]


@pytest.mark.parametrize("change", ["short rubric", "no prompt cache"])
def test_verdicts_do_not_wait_where_nothing_is_cached(change):
    """Two requests that only get their answers once both of them are there."""
    both = threading.Barrier(2, timeout=MEETING_S)

    def serve(sent: Sent) -> Said:
        assert b"cachePoint" not in sent.raw
        both.wait()
        return answer("Fine.")

    with told(serve) as bench:
        model = bench.model("m")
        request = VERDICT
        if change == "short rubric":
            request = replace(VERDICT, system=text(700, "rubric"))
        else:
            model = with_options(bench, Options(prompt_cache=False))
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda _: model.complete(request, JUDGE), range(2)))

    assert [one.message.text for one in found] == ["Fine."] * 2


def test_closing_calls_of_runs_that_end_together_do_not_wait_for_each_other():
    """Each run has one: two that only get their answers once both of them are there."""
    arrived = threading.Barrier(2, timeout=MEETING_S)

    def serve(sent: Sent) -> Said:
        assert b"cachePoint" in sent.raw
        arrived.wait()
        return answer("Fine.")

    with told(serve) as bench:
        model = bench.model("m")
        closing = replace(JUDGE, part=CLOSING)
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda _: model.complete(VERDICT, closing), range(2)))

    assert [completion.message.text for completion in answers] == ["Fine."] * 2


def test_others_do_not_wait_for_the_retries_of_a_first_verdict():
    """The next one takes its place, and those behind it wait no longer than for that."""
    serve = [refusal(500, "InternalServerException"), answer("Fine.")]
    with told(serve) as bench:
        model = bench.model("m")
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda index: model.complete(*judged(index)), range(4)))

    assert sorted(len(one.attempts) for one in found) == [1, 1, 1, 2]


def test_who_waits_for_a_prefix_is_ended_with_the_run():
    gate = PromptCacheGate(monotonic_s=time.monotonic)

    class EndError(Exception):
        pass

    def end(*_: Any) -> Any:
        raise EndError

    with gate.turn("rubric", never, bool):
        with pytest.raises(EndError), gate.turn("rubric", end, bool):
            pytest.fail("it did not wait")
        with gate.turn("another", never, bool):
            pass


def test_who_waits_too_long_goes_alone():
    gate = PromptCacheGate(monotonic_s=time.monotonic)
    waits: list[float] = []

    def too_long(_: Any, most_s: float) -> Any:
        waits.append(most_s)
        raise TimeoutError

    with gate.turn("rubric", never, bool), gate.turn("rubric", too_long, bool):
        assert len(waits) == 1
    with gate.turn("rubric", never, bool):
        pass


def never(*_: Any) -> Any:
    raise AssertionError("There is nothing to wait for.")


@contextmanager
def told(serve: Any) -> Iterator[Bench]:
    with FakeBedrock({"m": serve}) as service, connected(service.url) as client:
        yield Bench(client)


def with_options(bench: Bench, options: Options) -> Any:
    return Around().model(bench.client, options=options)
