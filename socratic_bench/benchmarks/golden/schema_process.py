"""Looks whether a JSON text fits a schema, in a process of its own that ends after some seconds.

The schema is a data set's, and its patterns and references may take for ever: neither can be
interrupted in a thread. Only seconds of computing count, so that a busy machine fails no reply.
"""

import signal
import sys

import orjson
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.exceptions import Unresolvable


def schema_fault(schema: dict[str, object], text: str) -> str:
    """What does not fit; empty if all does."""
    # With a registry of its own, so that no schema is fetched.
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        error = next(validator.iter_errors(orjson.loads(text)), None)
    except Unresolvable as unresolvable:
        return f"the schema refers to {unresolvable.ref}, which it does not have"
    except RecursionError:
        return "the schema refers to itself without end, or the reply is nested too deep"
    return f"{error.json_path}: {error.message[:200]}" if error else ""


if __name__ == "__main__":
    signal.setitimer(signal.ITIMER_PROF, float(sys.argv[1]))
    sys.stdout.buffer.write(schema_fault(**orjson.loads(sys.stdin.buffer.read())).encode())
