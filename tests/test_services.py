"""Many runs of one process that share their services, each played in a thread of its own."""

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from socratic_bench import (
    CancelToken,
    RateTarget,
    RateTargets,
    RunConfig,
    RunResult,
    Services,
    run,
)
from socratic_bench.emulator import Emulator, Settings, parse_fault
from socratic_bench.errors import UsageError
from socratic_bench.models.adaptive_rate import START_PER_S, RateNarrowed
from socratic_bench.models.events import CallEvent, CallWaits
from socratic_bench.runs.context import Listener
from tests.command import account
from tests.fakes import PATIENCE_S
from tests.owned_clock import OwnedClock

TUTOR, JUDGE, PICKY = "emulator.socratic-v1:0", "emulator.judge-v1:0", "emulator.picky-v1:0"
RUNS = 12


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Emulator]:
    """An emulator that all runs of this process call."""
    started: list[Emulator] = []

    def start(clock: Callable[[], float] = time.monotonic, **settings: Any) -> Emulator:
        emulator = Emulator(Settings(any_model=True, **settings), clock=clock)
        started.append(emulator)
        for name, value in account(emulator.url).items():
            monkeypatch.setenv(name, value)
        return emulator

    yield start
    for emulator in started:
        emulator.close()


def config(seed: int = 0, **settings: Any) -> RunConfig:
    usual = {"model": TUTOR, "judge_model": JUDGE, "scenario": "career-change", "turns": 2}
    return RunConfig(**{**usual, "region": "us-east-1", "seed": seed, **settings})


def play(configs: Sequence[RunConfig], services: Services, **more: Any) -> list[RunResult]:
    with ThreadPoolExecutor(len(configs)) as pool:
        playing = [pool.submit(run, one, services=services, **more) for one in configs]
        return [one.result() for one in playing]


def test_runs_at_once_share_connections_and_write_a_judges_cache_once(served, tmp_path):
    emulator = served(latency_ms=20)
    configs = [config(seed, output_dir=str(tmp_path)) for seed in range(RUNS)]
    with Services() as services:
        results = play(configs, services)

    written = [result.document["usage"]["judge"]["cache_write_tokens"] for result in results]
    assert [result.status for result in results] == ["completed"] * RUNS
    assert len({result.run_id for result in results}) == RUNS
    assert len([tokens for tokens in written if tokens]) == 1
    calls = {record.connection for record in emulator.requests}
    # Two turns, their verdicts, and one on the dialogue as a whole, beside the last verdict's.
    assert len(emulator.requests) == RUNS * 5
    assert len(calls) <= RUNS * 3


@pytest.mark.parametrize("timeouts_s", [(60.0, 0.5, 3600.0), (0.5, 60.0, 3600.0)])
def test_runs_that_share_services_have_each_their_own_call_timeout(served, timeouts_s):
    """The model that does not answer is asked by the run that waits for half a second."""
    served(faults=(parse_fault(f"hang:ms=600000:model={PICKY}"),))
    with Services() as services:
        results = [
            run(
                config(
                    model=PICKY if timeout_s == 0.5 else TUTOR,
                    judge_model=None,
                    turns=1,
                    max_attempts=1,
                    call_timeout_s=timeout_s,
                ),
                services=services,
            )
            for timeout_s in timeouts_s
        ]

    by_time = dict(zip(timeouts_s, results, strict=True))
    late = by_time.pop(0.5).document["error"]
    assert (late["code"], "ReadTimeoutError" in late["message"]) == ("read_timeout", True)
    assert [one.status for one in by_time.values()] == ["completed"] * 2


def test_a_prompt_cache_is_written_by_one_run_again_once_it_has_expired(served):
    """Entries are kept for five minutes without being read, by the services' and the emulator's
    clock: each wave of runs comes later than the one before.
    """
    later_s = 0.0

    def clock() -> float:
        return time.monotonic() + later_s

    served(latency_ms=20, clock=clock)
    n_written = []
    with Services(monotonic_s=clock) as services:
        for pause_s in (0.0, 200.0, 200.0, 400.0):
            later_s += pause_s
            configs = [config(seed, turns=1) for seed in range(6)]
            results = play(configs, services)
            written = [one.document["usage"]["judge"]["cache_write_tokens"] for one in results]
            n_written.append(len([tokens for tokens in written if tokens]))

    assert n_written == [1, 0, 0, 1]


def test_a_file_of_prices_is_read_once_for_all_runs_that_name_it(served, tmp_path):
    served()
    prices = tmp_path / "prices.json"
    rates = {"default": {"input": 1.0, "output": 2.0}}
    prices.write_text(json.dumps({"models": {TUTOR: rates, JUDGE: rates}}))
    configs = [config(seed, prices_file=str(prices), prompt_cache=False) for seed in range(3)]
    with Services() as services:
        first = run(configs[0], services=services)
        prices.unlink()
        others = play(configs[1:], services)

    costs = [result.document["cost"]["total"]["total_usd"] for result in (first, *others)]
    assert len(costs) == 3
    assert min(costs) > 0
    with Services() as services, pytest.raises(UsageError, match="cannot be read"):
        run(configs[0], services=services)


def test_what_a_model_refuses_is_found_out_once_and_told_by_all(served):
    emulator = served()
    with Services() as services:
        first = run(config(1, judge_model=PICKY), services=services)
        n_first = len(emulator.requests)
        others = play([config(seed, judge_model=PICKY) for seed in range(2, 6)], services)
    n_refused = sum(record.status == 400 for record in emulator.requests)
    n_refused_first = sum(record.status == 400 for record in emulator.requests[:n_first])
    with Services() as services:
        run(config(9, judge_model=PICKY), services=services)

    assert 0 < n_refused_first == n_refused
    assert first.notices
    assert [other.notices for other in others] == [first.notices] * len(others)
    # Nothing learnt outlives the services.
    assert sum(record.status == 400 for record in emulator.requests) > n_refused


def test_throttling_of_one_run_slows_all_that_call_the_model(served):
    # Six at once, and one a second: on no machine do sixteen calls keep to that by themselves.
    emulator = served(requests_per_minute=60)
    told: list[RateNarrowed] = []
    with Services(on_narrowed=told.append) as services:
        play([config(seed, turns=1, judge_model=None) for seed in range(16)], services)

    n_refused = sum(record.status == 429 for record in emulator.requests)
    assert n_refused <= 2 * 16
    pattern = rf"{TUTOR} in us-east-1 throttled: \d+\.\d -> \d+\.\d+ requests a second"
    assert told
    assert all(re.fullmatch(pattern, str(one)) for one in told)
    assert all(one.before_per_s > one.after_per_s for one in told)
    with Services() as services:
        per_s = services.rate_targets.of("bedrock", "us-east-1", TUTOR).per_s
    assert per_s == START_PER_S


def test_a_run_without_a_token_goes_by_the_clock_of_its_services(served):
    """Else its refusals would seem to be older than what the limiter knows."""
    served(faults=(parse_fault("throttled:count=1"),))
    clock = {"monotonic_s": lambda: time.monotonic() + 1000.0}
    narrowed: list[RateNarrowed] = []
    with Services(**clock, on_narrowed=narrowed.append) as services:
        result = run(config(turns=1, judge_model=None), services=services)

    assert result.status == "completed"
    assert len(narrowed) == 1


def together(configs: Sequence[RunConfig], targets: Sequence[RateTarget] = (), **more: Any) -> Any:
    """Runs at an emulator, on a clock of their own; results, requests, and what the pace was."""
    waited = []

    class Listening(Listener):
        def on_call(self, event: CallEvent) -> None:
            if isinstance(event, CallWaits):
                waited.append(event.cause)

    settings = {"latency_ms": 200, **{name: more.pop(name) for name in ("faults",) if name in more}}
    quota = Settings(any_model=True, requests_per_minute=60, **settings)
    with (
        OwnedClock() as clock,
        clock.emulator(quota) as emulator,
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(len(configs)) as pool,
    ):
        for name, value in account(emulator.url).items():
            patch.setenv(name, value)
        time_ = {"monotonic_s": lambda: clock.now_s}
        paced = RateTargets(targets, **more, **time_)
        with Services(**time_, rate_targets=paced) as services:
            shared = {"services": services, "listener": Listening()}
            playing = [
                pool.submit(run, one, cancel_token=clock.cancel_token(), **shared)
                for one in configs
            ]
            results = [one.result() for one in playing]
        return results, emulator.requests, paced.report(), waited


def test_runs_keep_to_targets_so_that_a_service_refuses_none():
    """Tutor and judge have a target each, and quotas that are no more: one a second."""
    targets = [RateTarget(requests_per_minute=60, tokens_per_minute=500_000)]
    configs = [config(seed, turns=1) for seed in range(8)]
    results, requests, pace, waited = together(configs, targets)

    assert [result.status for result in results] == ["completed"] * 8
    assert [record.status for record in requests] == [200] * 8 * 3
    judge, tutor = pace
    assert (judge.model, tutor.model) == (JUDGE, TUTOR)
    assert (judge.requests, tutor.requests, judge.throttled) == (16, 8, 0)
    assert judge.work_s == pytest.approx(16, abs=1.5)
    used = [result.document["usage"] for result in results]
    for role, found in (("tutor", tutor), ("judge", judge)):
        kinds = ("input_tokens", "output_tokens")
        assert found.tokens == sum(one[role][kind] for one in used for kind in kinds)
    assert "rate_target" in waited


def test_each_juror_keeps_to_the_target_of_its_own_model(tmp_path):
    """Seven requests of each: six at six a minute take a minute."""
    slow, wordy = "emulator.judge-bias-5-v1:0", "emulator.judge-noise-5-v1:0"
    targets = [
        RateTarget(model=slow, requests_per_minute=6),
        RateTarget(model=wordy, tokens_per_minute=10_000),
    ]
    jury = config(turns=6, judge_model=(JUDGE, slow, wordy), output_dir=str(tmp_path))
    (result,), requests, pace, waited = together([jury], targets)

    assert (result.status, result.document["judge"]["coverage"]) == ("completed", 1)
    found = {one.model: one for one in pace}
    assert {name: one.requests for name, one in found.items()} == {
        TUTOR: 6,
        **dict.fromkeys((JUDGE, slow, wordy), 7),
    }
    assert [record.status for record in requests] == [200] * 27
    used = result.document["usage"]["judge"]
    n_tokens = sum(found[one].tokens for one in (JUDGE, slow, wordy))
    assert n_tokens == used["input_tokens"] + used["output_tokens"]
    # Slots are a hundredth further apart than the target; no minute has more tokens than its own.
    assert found[slow].work_s == pytest.approx(6 * 10.1, rel=0.05)
    assert found[wordy].tokens > 30_000
    assert found[wordy].work_s >= 3 * 60
    assert found[JUDGE].target_rpm is None
    assert {one.throttled for one in pace} == {0}
    assert "rate_target" in waited


def test_a_model_that_answers_nothing_ends_its_runs_and_no_others():
    dead = "emulator.dead-v1:0"
    configs = [
        config(1, model=dead),
        config(2, judge_model=dead, turns=12),
        config(3, turns=12, judge_model=None),
    ]
    faults = (parse_fault(f"unavailable:model={dead}"),)
    (tutor, judge, fine), *_ = together(configs, faults=faults, stall_s=5)

    assert fine.status == "completed"
    for result in (tutor, judge):
        error = result.document["error"]
        assert (result.end_reason, error["code"], result.exit_code) == ("unavailable", "stalled", 4)
        assert error["message"].startswith(f"{dead} in us-east-1 was stopped")
    assert judge.document["n_turns"] < 12


def test_a_runs_fatal_error_its_budget_and_its_cancel_token_are_its_own(served):
    served(latency_ms=20, faults=(parse_fault("access_denied:model=emulator.denied-v1:0"),))
    ended = CancelToken()
    ended.interrupt(15)
    fine = [config(seed) for seed in range(4)]
    with Services() as services, ThreadPoolExecutor(8) as pool:
        playing = [pool.submit(run, one, services=services) for one in fine]
        denied = pool.submit(run, config(5, model="emulator.denied-v1:0"), services=services)
        spent = pool.submit(run, config(6, turns=9, max_cost_usd=1e-3), services=services)
        told = pool.submit(run, config(7), services=services, cancel_token=ended)

        assert denied.result().error.end_reason == "access"
        assert spent.result().end_reason == "budget"
        assert told.result().end_reason == "interrupted"
        assert [one.result().status for one in playing] == ["completed"] * 4
        assert run(config(8), services=services).status == "completed"


def test_a_connection_that_fails_fails_each_run_and_is_tried_anew_by_the_next(served, monkeypatch):
    served()
    with Services() as services, monkeypatch.context() as patch:
        patch.setenv("AWS_PROFILE", "missing")
        failed = play([config(seed) for seed in range(3)], services)
        patch.undo()
        later = run(config(4), services=services)

    assert [result.error.end_reason for result in failed] == ["credentials"] * 3
    assert len({id(result.error) for result in failed}) == 3
    assert later.status == "completed"


def test_the_services_cancel_token_ends_all_runs_each_with_an_error_of_its_own(served):
    emulator = served(latency_ms=600_000)
    with Services() as services, ThreadPoolExecutor(4) as pool:
        playing = [pool.submit(run, config(seed), services=services) for seed in range(4)]
        while len(emulator.requests) < len(playing):
            threading.Event().wait(0.01)
        services.cancel_token.interrupt(15)
        results = [one.result() for one in playing]

    assert [result.exit_code for result in results] == [143] * 4
    assert len({id(result.error) for result in results}) == 4


def test_services_that_are_closed_end_the_runs_that_go_on(served):
    emulator = served(latency_ms=600_000)
    services = Services()
    with ThreadPoolExecutor(1) as pool:
        playing = pool.submit(run, config(), services=services)
        while not emulator.requests:
            threading.Event().wait(0.01)
        services.close()

    assert playing.result(PATIENCE_S).end_reason == "interrupted"


def test_services_that_were_closed_begin_no_run():
    services = Services()
    services.close()
    result = run(config(offline=True), services=services)

    assert (result.document["end_reason"], result.document["n_turns"]) == ("interrupted", 0)
    assert "services" in result.document["error"]["message"]


def test_offline_runs_share_one_embedded_endpoint():
    seen: set[int] = set()

    def n_endpoints() -> int:
        return [one.name for one in threading.enumerate()].count("bedrock-emulator")

    before = n_endpoints()

    class Listening:
        def __getattr__(self, name: str) -> Callable[..., None]:
            def hear(*args: object) -> None:
                seen.add(n_endpoints() - before)

            return hear

    with Services() as services:
        configs = [config(seed, offline=True) for seed in range(4)]
        results = play(configs, services, listener=Listening())

    assert [result.status for result in results] == ["completed"] * 4
    assert 1 in seen <= {0, 1}
    assert n_endpoints() == before


def test_the_threads_of_many_runs_are_shared_and_end_with_their_services(served):
    served()
    before = set(threading.enumerate())
    with Services() as services:
        for _ in range(3):
            play([config(seed) for seed in range(4)], services)
        workers = [one for one in threading.enumerate() if one not in before]
    for worker in workers:
        worker.join(PATIENCE_S)

    # At most six at a time for each of four: what is read, played, measured, judged, and two calls.
    assert len(workers) <= 24
    assert not any(worker.is_alive() for worker in workers)
