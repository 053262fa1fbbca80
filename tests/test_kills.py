"""A run that is killed at any moment goes on as if nothing had been; see also make torture."""

import pytest

from tests.command import daily
from tests.kills import kill_and_go_on, play_whole
from tests.resuming import Service


@pytest.fixture(scope="module")
def service():
    service = Service()
    yield service
    service.close()


@pytest.fixture(scope="module")
def whole(service, tmp_path_factory):
    return play_whole(service, tmp_path_factory.mktemp("whole"), turns=15)


@pytest.mark.parametrize("seed", daily(range(3), first=1))
def test_a_killed_run_goes_on_as_if_nothing_had_been(service, whole, tmp_path, seed):
    kill_and_go_on(service, tmp_path, whole, seed)
