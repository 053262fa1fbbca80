"""Client CPU per call with a short and a long history, in a process of its own.

    python -m bench.calls URL [--calls 40] [--rounds 5]

The model is the one that a run calls through. Rounds of short and long calls take turns. Prints
JSON: `short_ms` and `long_ms`, the CPU milliseconds per call of each round.
"""

import argparse
import json
import time

from bench.contenders import TUTOR
from socratic_bench import CancelToken, RunConfig
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.call import CalledModel
from socratic_bench.models.context import CallContext, CallServices
from socratic_bench.models.prompt_cache_gate import PromptCacheGate
from socratic_bench.models.providers import load_provider
from socratic_bench.models.rate_limiter import RateLimiter
from socratic_bench.ports import Model
from socratic_bench.provider_ports import Provider
from socratic_bench.retrying import RetryPolicy
from socratic_bench.runs.clock import utc_now
from socratic_bench.threads import RequestThreads
from socratic_bench.types import CallKey, Message, Request, Text

SHORT, LONG = 1, 81
# 60 tokens of a student and 200 of a tutor, at five characters each.
WORDS = {"user": "and " * 75, "assistant": "and " * 250}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    found = parser.parse_args()
    config = RunConfig(model=TUTOR, prompt="I am stuck.", region="us-east-1", seed=1)
    provider = load_provider(config.provider)
    with provider.open(config, None, time.monotonic) as opened:
        model = _called(opened)
        short, long = _request(SHORT), _request(LONG)
        _cpu_ms(model, long, found.calls)
        rounds = [
            (_cpu_ms(model, short, found.calls), _cpu_ms(model, long, found.calls))
            for _ in range(found.rounds)
        ]
    print(json.dumps({"short_ms": [r[0] for r in rounds], "long_ms": [r[1] for r in rounds]}))


def _called(provider: Provider) -> CalledModel:
    cancel_token, rate_limiter = CancelToken(), RateLimiter(monotonic_s=time.monotonic)
    services = CallServices(
        provider=lambda: provider,
        rate_limiter=lambda _: rate_limiter,
        cache_gate=PromptCacheGate(monotonic_s=time.monotonic),
        threads=RequestThreads(),
    )
    context = CallContext(
        now=utc_now,
        cancel_token=cancel_token,
        retry_policy=RetryPolicy(max_attempts=10),
        timeout_s=300.0,
        notice=print,
    )
    return CalledModel(TUTOR, services, context)


def _request(n_messages: int) -> Request:
    roles = ("user", "assistant")
    messages = tuple(
        Message(roles[number % 2], (Text(f"{number} {WORDS[roles[number % 2]]}"),))
        for number in range(n_messages)
    )
    return Request(system="and " * 500, messages=messages, config=GenerateConfig(max_tokens=1024))


def _cpu_ms(model: Model, request: Request, calls: int) -> float:
    started_s = time.process_time()
    for number in range(calls):
        model.complete(request, CallKey(role="tutor", index=number))
    return (time.process_time() - started_s) / calls * 1000


if __name__ == "__main__":
    main()
