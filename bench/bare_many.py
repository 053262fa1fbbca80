"""The calls of many dialogues with the SDK alone: what is left if nothing is done but the calls.

    python bench/bare_many.py --runs 64 [--turns 10]

A dialogue is played first, by the library; its requests are then sent by so many threads at once,
each verdict beside the next request as in a run, and nothing is kept of the answers. Prints JSON.
"""

import argparse
import json
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import boto3
from botocore.config import Config
from many import config_of  # beside this file, which is run by its path

from socratic_bench import run
from socratic_bench.emulator import Emulator, Settings
from socratic_bench.emulator.service import RequestRecord

URL = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--turns", type=int, default=10)
    found = parser.parse_args()
    calls = _calls(found.turns)
    client: Any = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        config=Config(max_pool_connections=2 * found.runs, parameter_validation=False),
    )
    _call(client, calls[0])
    with ThreadPoolExecutor(found.runs) as judges:
        play = partial(_play, client, calls, judges)
        threads = [threading.Thread(target=play) for _ in range(found.runs)]
        cpu_s, began_s = time.process_time(), time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_s
    print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "requests": found.runs * len(calls)}))


def _calls(turns: int) -> Sequence[RequestRecord]:
    """Those of one dialogue, in their order."""
    elsewhere = os.environ[URL]
    with Emulator(Settings(any_model=True, keep_bodies=True)) as emulator:
        os.environ[URL] = emulator.url
        run(config_of(turns=turns))
        calls = emulator.requests
    os.environ[URL] = elsewhere
    return calls


def _play(client: Any, calls: Sequence[RequestRecord], judges: ThreadPoolExecutor) -> None:  # noqa: ANN401 -- the SDK makes its classes while it runs
    judged = []
    for call in calls:
        if call.role == "judge":
            judged.append(judges.submit(_call, client, call))
        else:
            _call(client, call)
    for one in judged:
        one.result()


def _call(client: Any, call: RequestRecord) -> None:  # noqa: ANN401 -- likewise
    arguments = json.loads(call.body or b"")
    if call.operation == "Converse":
        client.converse(modelId=call.model_id, **arguments)
        return
    for _ in client.converse_stream(modelId=call.model_id, **arguments)["stream"]:
        pass


if __name__ == "__main__":
    os.environ.pop("BEDROCK_MODEL_IDS", None)
    main()
