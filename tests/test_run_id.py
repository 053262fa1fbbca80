from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from socratic_bench.runner.run_id import new_run_id, ulid


@given(now_ms=st.integers(0, 2**48 - 1), chance=st.integers(0, 2**80 - 1))
def test_ulid_is_that_of_the_package(now_ms, chance):
    whole = now_ms.to_bytes(6, "big") + chance.to_bytes(10, "big")

    assert ulid(now_ms, chance) == str(ULID.from_bytes(whole))


def test_run_ids_differ_and_hold_the_time():
    first, second = new_run_id(), new_run_id()

    assert first != second
    assert ULID.from_str(first.removeprefix("run-")).timestamp > 1_700_000_000
