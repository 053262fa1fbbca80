"""Names a run: `run-` and a ULID, which sorts by time (https://github.com/ulid/spec).

Two numbers in base 32 do not pay for a package, which would take a fiftieth of a run's start-up.
"""

import time
from secrets import randbits

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: no I, L, O, U
CHARS, BITS_OF_CHANCE, BITS_A_CHAR = 26, 80, 5


def new_run_id() -> str:
    return f"run-{ulid(time.time_ns() // 1_000_000, randbits(BITS_OF_CHANCE))}"


def ulid(now_ms: int, chance: int) -> str:
    """48 bits of Unix time in milliseconds, then 80 bits of chance; 26 characters."""
    value = now_ms << BITS_OF_CHANCE | chance
    places = range(BITS_A_CHAR * (CHARS - 1), -1, -BITS_A_CHAR)
    return "".join(ALPHABET[value >> place & 31] for place in places)
