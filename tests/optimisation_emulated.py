"""What scripted agents of the emulator know of the fixture's tasks."""

import json

from tests.optimisation_fixtures import PARTS, PROBLEMS, Fixture

_KINDS = {"human": "good", "better": "better", "slower": "slow"}


def teach(fixture: Fixture) -> None:
    """Write it beside the task file."""
    rows = [
        {
            "problem": problem,
            "patches": {
                kind: path.read_text()
                for word, kind in _KINDS.items()
                if (path := PARTS / "patches" / f"{name}.{word}.patch").exists()
            },
            "target": f"textkit/{name}.py",
            "test": "tests/test_textkit.py",
        }
        for name, problem in PROBLEMS.items()
    ]
    (fixture.folder / "emulator.json").write_text(json.dumps(rows, indent=1))
