"""A sweep that is killed at any moment goes on as if nothing had been; see also make torture."""

import pytest

from tests.command import daily
from tests.resuming import Service
from tests.sweep_kills import kill_and_go_on, play_whole


@pytest.fixture(scope="module")
def service():
    service = Service()
    yield service
    service.close()


@pytest.fixture(scope="module")
def whole(service, tmp_path_factory):
    return play_whole(service, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("seed", daily(range(100), first=1))
def test_a_killed_sweep_repeats_no_cell_and_no_call_but_those_under_way(
    service, whole, tmp_path, seed
):
    kill_and_go_on(service, tmp_path, whole, seed)
