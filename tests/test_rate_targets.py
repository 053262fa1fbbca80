"""Targets of requests and tokens a minute, in a time that tests turn."""

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import pytest

from socratic_bench.catalogue.tokens import PromptBlock
from socratic_bench.emulator.runtime import Throttle
from socratic_bench.errors import ModelError, Stopped
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.cancel import CancelToken
from socratic_bench.models.rate_limiter import RateTargets, Slot
from socratic_bench.models.rate_target import RateTarget
from socratic_bench.ports.provider import Provider
from socratic_bench.types import Message, Request, Usage
from tests.shared_time import SharedTime

MODEL, WHERE = "m", ("bedrock", "us-east-1")
MINUTE_S, TEN_MINUTES_S = 60.0, 600.0


class Estimating(Provider):
    """Estimates tokens to be a quarter of the characters."""

    def sizes(self, model_id: str, request: Request) -> Sequence[PromptBlock]:
        del model_id
        return [PromptBlock((one.text,), len(one.text) // 4) for one in request.messages]


class Sender:
    """Sends requests to one model, and keeps when it did, with the tokens that each took."""

    def __init__(self, targets: RateTargets, cancel_token: CancelToken, model: str = MODEL) -> None:
        self.limiter = targets.of(*WHERE, model)
        self.cancel_token = cancel_token
        self.sent: list[tuple[float, int]] = []
        self.notices: list[str] = []
        self.waits: list[float | None] = []

    def slot(self, *, words: str = "", max_tokens: int = 100) -> AbstractContextManager[Slot]:
        """Permission to send a request."""
        config = GenerateConfig(max_tokens=max_tokens)
        request = Request(messages=(Message.user(words),), config=config)
        size = self.limiter.size_of(Estimating(), request, self.notices.append)
        return self.limiter.slot(
            size, self.cancel_token, lambda _, wait_s: self.waits.append(wait_s)
        )

    def send(
        self, *, words: str = "", max_tokens: int = 100, used: int = 0, takes_s: float = 0.0
    ) -> None:
        """One request, which is answered by so many tokens; by as many as it may have, if 0."""
        with (
            self.limiter.calling(self.cancel_token),
            self.slot(words=words, max_tokens=max_tokens) as slot,
        ):
            self.limiter.record_request(slot)
            usage = Usage(input_tokens=len(words) // 4, output_tokens=used or max_tokens)
            at_s = self.cancel_token.monotonic_s()
            self.sent.append((at_s, usage.input_tokens + usage.output_tokens))
            if takes_s:
                self.cancel_token.sleep(takes_s)
            self.limiter.record_answer(slot, usage)


def most_in_a_minute(sent: Sequence[tuple[float, int]]) -> tuple[int, int]:
    """Requests and tokens of the minute that has most of them, wherever it begins."""
    window: deque[tuple[float, int]] = deque()
    requests = tokens = n_tokens = 0
    for at_s, used in sorted(sent):
        window.append((at_s, used))
        n_tokens += used
        while at_s - window[0][0] > MINUTE_S:
            n_tokens -= window.popleft()[1]
        requests, tokens = max(requests, len(window)), max(tokens, n_tokens)
    return requests, tokens


def target(**per_minute: int) -> list[RateTarget]:
    return [RateTarget(model=MODEL, **per_minute)]


def saturated(
    callers: int,
    targets: Sequence[RateTarget],
    *,
    seconds: float = TEN_MINUTES_S,
    **request: Any,
) -> Sender:
    """Ten minutes of callers who send as soon as they may."""
    shared = SharedTime()
    sender = Sender(RateTargets(targets, monotonic_s=lambda: shared.now_s), shared.cancel_token())

    def call() -> None:
        while shared.now_s < seconds:
            sender.send(**request)

    shared.run([call] * callers)
    sender.sent = [one for one in sender.sent if one[0] < seconds]
    return sender


@pytest.mark.parametrize(("callers", "per_minute"), [(8, 60), (64, 1200), (64, 2400)])
def test_a_short_sweep_uses_most_of_a_target_and_a_service_of_that_quota_refuses_none(
    callers, per_minute
):
    sender = saturated(callers, target(requests_per_minute=per_minute), seconds=80.0, takes_s=1.5)
    clock = [0.0]
    throttle = Throttle(per_minute, lambda: clock[0])

    assert len(sender.sent) >= 0.88 * per_minute * 80 / 60
    assert most_in_a_minute(sender.sent)[0] <= per_minute
    assert all(throttle.wait_ms() is None for clock[0], _ in sender.sent)


@pytest.mark.parametrize("per_minute", [6, 30, 600])
def test_a_target_of_requests_is_met_and_no_minute_is_over_it(per_minute):
    sender = saturated(3, target(requests_per_minute=per_minute))

    assert most_in_a_minute(sender.sent)[0] <= per_minute
    assert 0.97 * 10 * per_minute <= len(sender.sent) <= 10 * per_minute
    # Nor does a service refuse any that allows a tenth of a minute's at once, as the emulator does.
    clock = [0.0]
    throttle = Throttle(per_minute, lambda: clock[0])
    assert all(throttle.wait_ms() is None for clock[0], _ in sender.sent)


@pytest.mark.parametrize(
    ("callers", "request_"),
    [
        (1, {"max_tokens": 100}),
        (8, {"max_tokens": 900, "used": 300, "takes_s": 0.5}),
        (8, {"max_tokens": 900, "used": 300, "takes_s": 0.5, "words": "four" * 500}),
    ],
    ids=["all used", "a third used", "words"],
)
def test_a_target_of_tokens_is_met_and_no_minute_is_over_it(callers, request_):
    """What is not used is given back, and may be used by others in the same minute."""
    per_minute = 60_000
    sender = saturated(callers, target(tokens_per_minute=per_minute), **request_)

    assert most_in_a_minute(sender.sent)[1] <= per_minute
    assert sum(used for _, used in sender.sent) >= 0.97 * 10 * per_minute


def test_what_is_reserved_follows_from_what_was_counted_since_a_request_asked():
    """All ask before the first is answered, when only a bound of their input is known."""
    request = {"words": "four" * 5000, "max_tokens": 2000, "used": 100, "takes_s": 0.3}
    sender = saturated(96, target(tokens_per_minute=300_000), seconds=MINUTE_S, **request)

    assert 0.97 * 300_000 <= sum(used for _, used in sender.sent) <= 300_000


def test_requests_and_tokens_both_bind():
    both = saturated(2, target(requests_per_minute=60, tokens_per_minute=1000), max_tokens=10)
    requests, tokens = most_in_a_minute(both.sent)

    assert requests <= 60
    assert tokens <= 1000
    assert max(requests / 60, tokens / 1000) >= 0.97


def test_requests_go_in_the_order_in_which_they_ask_and_wake_nobody_else():
    shared = SharedTime()
    targets = RateTargets(target(requests_per_minute=60), monotonic_s=lambda: shared.now_s)
    sender = Sender(targets, shared.cancel_token())
    order: list[int] = []
    callers = 40

    def call(number: int) -> None:
        shared.sleep(number / 1000)
        sender.send()
        order.append(number)

    shared.run([lambda number=number: call(number) for number in range(callers)])

    assert order == [*range(callers)]
    # To ask, for its turn, and for its time.
    assert shared.n_wakings <= 3 * callers
    assert sender.waits[-1] == pytest.approx(callers - 1, abs=1)


def test_a_request_larger_than_the_target_is_sent_alone_and_told_of():
    shared = SharedTime()
    targets = RateTargets(target(tokens_per_minute=1000), monotonic_s=lambda: shared.now_s)
    sender = Sender(targets, shared.cancel_token())

    def calls() -> None:
        for max_tokens in (100, 2000, 100):
            sender.send(max_tokens=max_tokens)

    shared.run([calls])

    (_, large, last) = (at_s for at_s, _ in sender.sent)
    assert large >= MINUTE_S
    assert last >= large + MINUTE_S
    assert len(sender.notices) == 1
    assert "more tokens than its target of 1000 a minute" in sender.notices[0]
    problem = targets.problem(MODEL, "us-east-1", 2000)
    assert problem is not None
    assert (
        problem.render()
        == "max_tokens of 2000 is more than the 1000 tokens a minute that are the target of m."
    )
    assert targets.problem(MODEL, "us-east-1", 1000) is None
    assert targets.problem("another", None, 2000) is None


def test_who_is_told_to_end_leaves_the_line_and_takes_nothing():
    shared = SharedTime()
    targets = RateTargets(target(requests_per_minute=6), monotonic_s=lambda: shared.now_s)
    staying = Sender(targets, shared.cancel_token())
    leaving = Sender(targets, shared.cancel_token())
    leaving.cancel_token.start_deadline(15.0)

    def stay() -> None:
        shared.sleep(1.0)
        for _ in range(3):
            staying.send()

    def leave() -> None:
        for _ in range(9):
            leaving.send()

    def ended() -> None:
        with pytest.raises(Stopped):
            leave()

    shared.run([ended, ended, stay])

    at_s = sorted(at_s for at_s, _ in (*staying.sent, *leaving.sent))
    assert at_s == pytest.approx([10.1 * n for n in range(len(at_s))], abs=0.2)
    assert len(staying.sent) == 3


def test_what_was_never_sent_and_what_was_not_billed_counts_no_tokens():
    shared = SharedTime()
    targets = RateTargets(target(tokens_per_minute=1000), monotonic_s=lambda: shared.now_s)
    sender = Sender(targets, shared.cancel_token())
    limiter = sender.limiter

    def calls() -> None:
        with sender.slot(max_tokens=600):
            pass  # the run ends before it is sent
        with sender.slot(max_tokens=600) as slot:
            limiter.record_request(slot)
            limiter.record_failure(slot, "refused_request", maybe_billed=False)
        with sender.slot(max_tokens=600) as slot:
            limiter.record_request(slot)
            limiter.record_failure(slot, "connection_lost", maybe_billed=True)
        assert shared.now_s < 1
        with sender.slot(max_tokens=600):
            assert shared.now_s > MINUTE_S

    shared.run([calls])

    (report,) = targets.report()
    assert report.requests == 2
    assert report.tokens > 600


def test_a_request_counts_when_it_is_sent_and_not_when_it_may_be():
    """A slow store may take some time to note it before it is sent."""
    shared = SharedTime()
    targets = RateTargets(target(requests_per_minute=2), monotonic_s=lambda: shared.now_s)
    sender = Sender(targets, shared.cancel_token())

    def late(wait_s: float) -> None:
        with sender.slot() as slot:
            shared.sleep(wait_s)
            sender.limiter.record_request(slot)
            sender.sent.append((shared.now_s, 1))
            sender.limiter.record_answer(slot, None)

    def calls() -> None:
        for _ in range(4):
            sender.send()

    shared.run([lambda: late(50.0), lambda: late(100.0), calls])

    assert most_in_a_minute(sender.sent)[0] == 2
    assert len(sender.sent) == 6


def test_a_report_has_target_and_actual_pace_over_the_time_from_first_to_last_call():
    shared = SharedTime()
    targets = RateTargets(
        target(requests_per_minute=60, tokens_per_minute=100_000),
        monotonic_s=lambda: shared.now_s,
    )
    sender = Sender(targets, shared.cancel_token())

    def calls() -> None:
        for _ in range(60):
            sender.send(used=50, takes_s=0.5)
        shared.sleep(1000.0)
        for _ in range(61):
            sender.send(used=50, takes_s=0.5)

    shared.run([calls])

    (report,) = targets.report()
    assert report.rpm <= 60
    assert (report.model, report.region, report.stalled) == (MODEL, "us-east-1", False)
    assert (report.target_rpm, report.target_tpm) == (60, 100_000)
    assert (report.requests, report.tokens) == (121, 121 * 50)
    assert report.rpm == pytest.approx(121 / 3, rel=0.03)
    assert report.tpm == pytest.approx(50 * 121 / 3, rel=0.03)
    # Of the pause a minute counts, in which the limit knew of what was sent before.
    assert report.work_s == pytest.approx(60 + 60 + 60, rel=0.03)
    assert report.waited_s == pytest.approx(60, rel=0.05)


@pytest.mark.parametrize(
    ("model", "region", "per_minute"),
    [("m", "us-east-1", 1), ("m", "eu-west-1", 2), ("n", "us-east-1", 3), ("n", "eu-west-1", 4)],
)
def test_the_target_that_names_more_counts(model, region, per_minute):
    targets = RateTargets(
        [
            RateTarget(requests_per_minute=4),
            RateTarget(model="m", region="us-east-1", requests_per_minute=1),
            RateTarget(region="us-east-1", requests_per_minute=3),
            RateTarget(model="m", requests_per_minute=2),
        ]
    )
    targets.of("bedrock", region, model)

    assert [one.target_rpm for one in targets.report()] == [per_minute]


def failing(shared: SharedTime, targets: RateTargets, model: str, *, every_s: float) -> Any:
    """A run that calls the model again and again, of which nothing is answered; when it ended."""
    token = shared.cancel_token()
    sender = Sender(targets, token, model)

    def calls() -> None:
        with sender.limiter.calling(token):
            while True:
                with sender.slot() as slot:
                    sender.limiter.record_request(slot)
                    token.sleep(every_s)
                    sender.limiter.record_failure(slot, "server_error", maybe_billed=True)

    def run() -> tuple[float, ModelError]:
        with pytest.raises(ModelError) as raised:
            calls()
        return shared.now_s, raised.value

    return run


def test_a_model_that_answers_nothing_is_stopped_by_name_and_others_go_on():
    shared = SharedTime()
    targets = RateTargets(stall_s=900, monotonic_s=lambda: shared.now_s)
    fine = Sender(targets, shared.cancel_token())

    def answered() -> None:
        for _ in range(100):
            fine.send()
            shared.sleep(30.0)

    ended = shared.run(
        [
            failing(shared, targets, "dead", every_s=40.0),
            failing(shared, targets, "dead", every_s=1000.0),  # hangs, and ends with the others
            answered,
        ]
    )[:2]
    (_, later) = shared.run([failing(shared, targets, "dead", every_s=1.0)])[0]

    assert [at_s for at_s, _ in ended] == pytest.approx([920.0, 920.0])
    for error in (*(error for _, error in ended), later):
        assert (error.code, error.end_reason, error.retryable) == ("stalled", "unavailable", True)
        assert error.message.startswith("dead in us-east-1 was stopped: it was called for 15 min")
    assert len({id(error) for _, error in ended}) == 2
    assert [(one.model, one.stalled) for one in targets.report()] == [("dead", True), ("m", False)]
    assert shared.now_s >= 3000


def test_time_in_which_nobody_calls_a_model_does_not_count_as_a_stall():
    shared = SharedTime()
    targets = RateTargets(stall_s=900, monotonic_s=lambda: shared.now_s)
    sender = Sender(targets, shared.cancel_token())

    def calls() -> None:
        for pause_s in (0.0, 5000.0, 5000.0):
            shared.sleep(pause_s)
            sender.send(takes_s=500.0)
            with sender.limiter.calling(sender.cancel_token), sender.slot() as slot:
                sender.limiter.record_request(slot)
                shared.sleep(500.0)
                sender.limiter.record_failure(slot, "server_error", maybe_billed=False)

    shared.run([calls])

    assert [one.stalled for one in targets.report()] == [False]
