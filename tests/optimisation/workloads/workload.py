"""Plays a workload by the protocol of the benchmark: ready, go, done."""

import os
import random
import sys
import time
from hashlib import sha256

sys.path.insert(0, os.getcwd())


def play(make_input, work):
    given = make_input(random.Random(int(sys.argv[1])), int(sys.argv[2]))
    operations = 0

    def count(frame, event, argument):
        nonlocal operations
        operations += event == "line"
        return count

    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    if "--count" in sys.argv:
        sys.settrace(count)
    result = work(given)
    sys.settrace(None)
    seconds = time.perf_counter() - start
    checksum = sha256(repr(result).encode()).hexdigest()[:16]
    counted = f" operations={operations}" if "--count" in sys.argv else ""
    print(f"done {checksum} seconds={seconds:.6f}{counted}", flush=True)
