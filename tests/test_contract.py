"""What users rely on stays: keys and their types, flags, variables, exit codes, file names."""

import json

import pytest

from tests.contract import FILE, contract

FROZEN = json.loads(FILE.read_bytes())


@pytest.fixture(scope="module")
def today():
    return json.loads(json.dumps(contract()))


@pytest.mark.parametrize("kind", FROZEN["schemas"])
def test_a_schema_keeps_its_keys_and_their_types(kind, today):
    kept = {path: today["schemas"][kind].get(path) for path in FROZEN["schemas"][kind]}

    assert kept == FROZEN["schemas"][kind]
    assert set(FROZEN["required"][kind]) <= set(today["required"][kind])


def test_the_command_keeps_its_words(today):
    for name, flags in FROZEN["command"]["flags"].items():
        assert set(flags) <= set(today["command"]["flags"][name])
    assert set(FROZEN["command"]["variables"]) <= set(today["command"]["variables"])
    assert FROZEN["endings"].items() <= today["endings"].items()


def test_files_keep_their_names(today):
    assert FROZEN["keys"].items() <= today["keys"].items()


def test_the_library_keeps_its_keywords_and_its_result(today):
    frozen, now = FROZEN["library"], today["library"]

    assert frozen["RunConfig"].items() <= now["RunConfig"].items()
    assert set(frozen["RunResult"]) <= set(now["RunResult"])
