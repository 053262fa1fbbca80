"""Has the C library keep no freed memory for each thread: of a thousand threads that is 60 MB.

See https://www.gnu.org/software/libc/manual/html_node/Memory-Allocation-Tunables.html: it can only
be said to a process as it starts. It takes no more time: the interpreter's own allocator has most
of what is asked for.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

VARIABLE = "GLIBC_TUNABLES"
TUNABLE = "glibc.malloc.tcache_count"


def without_caches(environment: Mapping[str, str]) -> str | None:
    """What the variable has to be; `None` where it says something of this already, or where there
    is another C library.
    """
    given = environment.get(VARIABLE, "")
    try:
        is_known = bool(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, ValueError, OSError):
        is_known = False
    if TUNABLE in given or not is_known:
        return None
    return ":".join(filter(None, (given, f"{TUNABLE}=0")))


@contextmanager
def said_to_processes() -> Iterator[None]:
    """Processes that are started meanwhile keep none."""
    before, value = os.environ.get(VARIABLE), without_caches(os.environ)
    if value is None:
        yield
        return
    os.environ[VARIABLE] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
