"""Starts the command again in its own place, where many threads will be at work in it."""

import os
import sys
from collections.abc import Sequence


def in_little_memory(words: Sequence[str]) -> None:
    """As the same process, with the same words, but with no memory kept for each thread. Returns
    where that is so already, cannot be had, or where these are not the words of the process.
    """
    from socratic_bench.studies.sweep.thread_caches import VARIABLE, without_caches

    value = without_caches(os.environ)
    is_own = [*words] == sys.argv[-len(words) :] and bool(sys.executable and sys.orig_argv)
    if value is None or not is_own:
        return
    environment = {**os.environ, VARIABLE: value}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606
