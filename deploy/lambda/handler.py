"""Plays one run in a function of AWS Lambda, and returns its document.

The event has settings of a run, such as {"model": "...", "scenario": "career-change", "seed": 7}.
A run that the function's time cuts short ends with end_reason "deadline"; the same event continues
it.
"""

import os
from typing import Any

from socratic_bench import RunConfig, run

# What is left of the function's time to store the rest and to answer.
ENDING_S = 15.0


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 -- the runtime's
    """Lists in the event are tuples of the configuration, such as several judges."""
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in event.items()}
    config = RunConfig(
        region=os.environ.get("AWS_REGION"),
        s3_bucket=os.environ["RUNNER_S3_BUCKET"],
        s3_prefix=os.environ.get("RUNNER_S3_PREFIX", "runs"),
        resume=True,
        deadline_s=max(1.0, context.get_remaining_time_in_millis() / 1000 - ENDING_S),
        **given,
    )
    return run(config).document
