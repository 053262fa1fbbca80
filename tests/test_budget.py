"""What is set aside, what waits, and what is refused, request by request."""

import json
import re
import threading
from concurrent.futures import Future
from contextlib import nullcontext

import pytest
from msgspec.structs import replace

from socratic_bench.catalogue.price_file import load_prices
from socratic_bench.catalogue.prices import PricingTier, builtin_prices
from socratic_bench.catalogue.tokens import most_input_tokens
from socratic_bench.documents.cost import Billing, CostEntry
from socratic_bench.documents.usage import RoleUsage
from socratic_bench.errors import InternalError, Stopped
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.budget import Budget, SpendingLimit
from socratic_bench.models.events import AttemptBegan, CallFailed
from socratic_bench.types import Attempt, CallKey, Message, Request, Usage
from tests.fakes import NOON, PATIENCE_S, completion

MODEL = "emulator.socratic-v1:0"
REQUEST = Request(messages=(Message.user("Hello?"),), config=GenerateConfig(max_tokens=1000))
WORST_USD = (most_input_tokens(REQUEST) * 3.75 + 1000 * 15) / 1e6
USED = completion(usage=Usage(input_tokens=10, output_tokens=10))
USED_USD = (10 * 3 + 10 * 15) / 1e6
TUTOR, JUDGE = CallKey(role="tutor", index=0), CallKey(role="judge", index=0)


def budget(times: float, wait=Future.result) -> Budget:
    """One of so many times the worst case of the request."""
    return Budget(SpendingLimit(times * WORST_USD), table=builtin_prices(), region=None, wait=wait)


def never(_future):
    pytest.fail("nobody was under way to be waited for")


def test_a_request_is_admitted_as_long_as_its_worst_case_fits():
    budget(1.0, never).reserve(MODEL, REQUEST, TUTOR)
    with pytest.raises(Stopped) as refused:
        budget(0.999, never).reserve(MODEL, REQUEST, TUTOR)

    assert (refused.value.end_reason, refused.value.retryable) == ("budget", False)
    assert f"{WORST_USD:.6f} USD" in refused.value.message


def test_what_a_call_did_not_use_can_be_spent_on_others():
    cost_limit = budget(1.5, never)

    for _ in range(1 + int(0.5 * WORST_USD / USED_USD)):
        cost_limit.reserve(MODEL, REQUEST, TUTOR).settle_answer(USED)

    with pytest.raises(Stopped):
        cost_limit.reserve(MODEL, REQUEST, TUTOR)


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (lambda reservation: reservation.settle(None), 0),
        (lambda reservation: reservation.settle(0.0), 1),
        (lambda reservation: reservation.settle_answer(completion(usage=None)), 0),
    ],
    ids=["maybe billed", "not billed", "not counted"],
)
def test_what_is_not_known_to_be_cheaper_costs_all_it_could(end, left):
    cost_limit = budget(1.5, never)
    end(cost_limit.reserve(MODEL, REQUEST, TUTOR))

    if left:
        cost_limit.reserve(MODEL, REQUEST, TUTOR)
    else:
        with pytest.raises(Stopped):
            cost_limit.reserve(MODEL, REQUEST, TUTOR)


def test_what_is_read_at_an_unknown_price_counts_as_input_and_not_as_all_it_could():
    models = {MODEL: {"default": {"input": 3, "output": 15, "cache_write": 3.75}}}
    table = load_prices(json.dumps({"models": models}).encode(), "own.json")
    used = completion(usage=Usage(input_tokens=10, output_tokens=10, cache_read_tokens=9))
    cost_limit = Budget(SpendingLimit(1.5 * WORST_USD), table=table, region=None, wait=never)

    for _ in range(1 + int(0.5 * WORST_USD / USED_USD)):
        cost_limit.reserve(MODEL, REQUEST, TUTOR).settle_answer(used)

    with pytest.raises(Stopped):
        cost_limit.reserve(MODEL, REQUEST, TUTOR)


def test_what_is_under_way_counts_in_full_in_the_most_that_was_spent():
    spending = SpendingLimit(2 * WORST_USD)
    cost_limit = Budget(spending, table=builtin_prices(), region=None, wait=never)
    first = cost_limit.reserve(MODEL, REQUEST, TUTOR)

    assert spending.spent_usd == 0
    assert spending.most_usd == pytest.approx(WORST_USD, abs=1e-9)
    first.settle_answer(USED)
    assert spending.most_usd == spending.spent_usd == pytest.approx(USED_USD, abs=1e-9)


def test_a_request_that_does_not_fit_beside_another_waits_for_it():
    waiting = threading.Event()

    def wait(future):
        waiting.set()
        future.result(PATIENCE_S)

    cost_limit = budget(1.5, wait)
    first = cost_limit.reserve(MODEL, REQUEST, JUDGE)
    outcome: Future = Future()

    def second() -> None:
        try:
            outcome.set_result(cost_limit.reserve(MODEL, REQUEST, TUTOR))
        except Stopped as stopped:
            outcome.set_exception(stopped)

    threading.Thread(target=second, daemon=True).start()
    assert waiting.wait(PATIENCE_S)
    assert not outcome.done()
    first.settle_answer(USED)

    assert outcome.result(PATIENCE_S)


@pytest.mark.parametrize("is_begun", [True, False])
def test_what_a_run_reserved_and_never_sent_can_be_spent_by_others(is_begun):
    """Its run has ended while the request waited for its turn: it is on no bill."""
    cost_limit, whose = budget(1.0, never), {"key": TUTOR, "model_id": MODEL}
    cost_limit.reserve(MODEL, REQUEST, TUTOR)
    if is_begun:
        cost_limit.on_call(AttemptBegan(**whose, request=REQUEST, input_tokens_at_most=1))
    cost_limit.on_call(CallFailed(**whose, request_sha256="", error=InternalError("no answer")))

    with pytest.raises(Stopped) if is_begun else nullcontext():
        cost_limit.reserve(MODEL, REQUEST, JUDGE)


def test_what_waits_is_not_overtaken_by_what_would_fit_at_once():
    """A large request that waits for others is the next one, however many small ones come."""
    asked = threading.Semaphore(0)

    def wait(future):
        asked.release()
        future.result(PATIENCE_S)

    cost_limit = budget(1.5, wait)
    first = cost_limit.reserve(MODEL, REQUEST, TUTOR)
    small = Request(messages=REQUEST.messages, config=GenerateConfig(max_tokens=10))
    order: list[str] = []
    admissions: list = []

    def ask(request, key) -> None:
        admissions.append(cost_limit.reserve(MODEL, request, key))
        order.append(key.role)

    threads = []
    for request, key in ((REQUEST, JUDGE), (small, TUTOR)):
        threads.append(threading.Thread(target=ask, args=(request, key), daemon=True))
        threads[-1].start()
        assert asked.acquire(timeout=PATIENCE_S)
    first.settle_answer(USED)
    for thread in threads:
        thread.join(PATIENCE_S)

    assert order == ["judge", "tutor"]


def test_who_gives_up_waiting_makes_room_for_the_next():
    class EndedError(Exception):
        pass

    asked, ended = threading.Semaphore(0), threading.Event()

    def wait(future):
        if threading.current_thread().name == "impatient":
            asked.release()
            assert ended.wait(PATIENCE_S)
            raise EndedError
        asked.release()
        future.result(PATIENCE_S)

    cost_limit = budget(1.5, wait)
    cost_limit.reserve(MODEL, REQUEST, TUTOR)
    small = Request(messages=REQUEST.messages, config=GenerateConfig(max_tokens=10))
    outcomes: dict[str, str] = {}

    def ask(request) -> None:
        name = threading.current_thread().name
        try:
            cost_limit.reserve(MODEL, request, JUDGE)
            outcomes[name] = "admitted"
        except EndedError:
            outcomes[name] = "ended"

    threads = [
        threading.Thread(target=ask, args=(REQUEST,), name="impatient", daemon=True),
        threading.Thread(target=ask, args=(small,), name="next", daemon=True),
    ]
    for thread in threads:
        thread.start()
        assert asked.acquire(timeout=PATIENCE_S)
    ended.set()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert outcomes == {"impatient": "ended", "next": "admitted"}


def test_after_a_refusal_only_verdicts_are_asked_for():
    cost_limit = budget(1.5, never)
    cost_limit.reserve(MODEL, REQUEST, TUTOR).settle(None)
    small = Request(messages=REQUEST.messages, config=GenerateConfig(max_tokens=10))
    cost_limit.reserve(MODEL, small, TUTOR).settle_answer(USED)
    with pytest.raises(Stopped) as first:
        cost_limit.reserve(MODEL, REQUEST, TUTOR)

    with pytest.raises(Stopped) as second:
        cost_limit.reserve(MODEL, small, TUTOR)
    cost_limit.reserve(MODEL, small, JUDGE)

    assert second.value.message == first.value.message


def test_after_a_refusal_a_verdict_still_waits_for_those_under_way():
    waited = []

    def wait(future):
        waited.append(future)
        first.settle_answer(USED)
        future.result(PATIENCE_S)

    cost_limit = budget(1.5, wait)
    small = Request(messages=REQUEST.messages, config=GenerateConfig(max_tokens=10))
    dear = Request(messages=REQUEST.messages, config=GenerateConfig(max_tokens=9000))
    cost_limit.reserve(MODEL, small, TUTOR).settle_answer(USED)
    with pytest.raises(Stopped):
        cost_limit.reserve(MODEL, dear, TUTOR)
    first = cost_limit.reserve(MODEL, REQUEST, JUDGE)
    cost_limit.reserve(MODEL, REQUEST, JUDGE)

    assert len(waited) == 1


def test_what_was_spent_before_counts():
    lost = Attempt(
        started_at=NOON,
        duration_ms=1.0,
        wait_ms=0.0,
        error="process_ended",
        may_have_been_billed=True,
        input_tokens_at_most=most_input_tokens(REQUEST),
        output_tokens_at_most=1000,
    )
    cost_limit = budget(2.0, never)
    cost_limit.limit.add(cost_limit.earlier_usd(MODEL, [USED], [lost], tier=PricingTier()))

    with pytest.raises(Stopped) as refused:
        cost_limit.reserve(MODEL, REQUEST, TUTOR)
    assert f"up to {WORST_USD + USED_USD:.6f} USD" in refused.value.message


def bounded(error: str | None) -> Attempt:
    return Attempt(
        started_at=NOON,
        duration_ms=1.0,
        wait_ms=0.0,
        error=error,
        may_have_been_billed=True,
        input_tokens_at_most=most_input_tokens(REQUEST),
        output_tokens_at_most=1000,
    )


def spent_before(calls=(), failed_before=(), *, model=MODEL, tier=None) -> float:
    """What counts as spent, by the words of a budget that is too small for anything more."""
    cost_limit = Budget(SpendingLimit(1e-9), table=builtin_prices(), region=None, wait=never)
    earlier = cost_limit.earlier_usd(model, calls, failed_before, tier=PricingTier(tier))
    cost_limit.limit.add(earlier)
    with pytest.raises(Stopped) as refused:
        cost_limit.reserve(MODEL, REQUEST, TUTOR)
    return float(re.search("up to ([0-9.]+) USD", refused.value.message)[1])


@pytest.mark.parametrize(
    ("usage", "usd"), [(None, WORST_USD), (USED.usage, USED_USD)], ids=["not counted", "counted"]
)
def test_an_answer_without_counters_costs_all_it_could_in_a_later_process_too(usage, usd):
    call = completion(usage=usage, attempts=[bounded("internal"), bounded(None)])

    assert spent_before([call]) == pytest.approx(WORST_USD + usd, abs=1e-6)


def test_what_was_lost_before_is_priced_at_the_tier_that_was_asked_for():
    nova = "amazon.nova-premier-v1:0"
    usual = spent_before((), [bounded("internal")], model=nova)

    assert spent_before((), [bounded("internal")], model=nova, tier="priority") > usual


def test_an_answer_that_names_no_tier_is_billed_at_the_one_asked_for():
    nova = "amazon.nova-premier-v1:0"
    unnamed = completion(usage=Usage(input_tokens=5000, output_tokens=5000))
    named = replace(unnamed, served_tier="priority")

    assert spent_before([unnamed], model=nova, tier="priority") == spent_before([named], model=nova)
    assert spent_before([unnamed], model=nova) < spent_before([named], model=nova)
    tallies = {"student": RoleUsage(), "judge": RoleUsage()} | {
        "tutor": RoleUsage(completions=(unnamed,))
    }
    models = {"tutor": nova, "student": None, "judge": None}
    usual, dear = (
        CostEntry.of(
            Billing(
                models=models,
                table=builtin_prices(),
                region=None,
                tiers={"tutor": PricingTier(tier)},
            ),
            tallies,
        )
        .roles["total"]
        .total_usd
        for tier in (None, "priority")
    )
    assert dear > usual


def test_what_ends_the_run_meanwhile_ends_the_waiting():
    class EndedError(Exception):
        pass

    def wait(_future):
        raise EndedError

    cost_limit = budget(1.5, wait)
    cost_limit.reserve(MODEL, REQUEST, JUDGE)

    with pytest.raises(EndedError):
        cost_limit.reserve(MODEL, REQUEST, TUTOR)
