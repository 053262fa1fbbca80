"""The fixture's tasks for scripted agents of the emulator: what they know, plan and certificate.

`python -m tests.optimisation_emulated FOLDER NAME ...` writes them.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.json import encode

from socratic_bench.benchmarks.optimisation.isolation import make_isolation
from socratic_bench.benchmarks.optimisation.measuring import Ratio
from socratic_bench.benchmarks.optimisation.plan import make_plan
from socratic_bench.benchmarks.optimisation.repository import Source
from socratic_bench.benchmarks.optimisation.task import BenchConfig, hash_of, read_task
from socratic_bench.benchmarks.optimisation.validating import Certificate, ItemCertificate
from tests.optimisation_fixtures import PARTS, PROBLEMS, Fixture, make_fixture

TESTS = tuple(
    f"tests/test_textkit.py::TestTextkit::test_{name}"
    for name in ("common", "mask", "number", "ways")
)
_KINDS = {"human": "good", "better": "better", "slower": "slow"}


def known_tasks() -> list[dict[str, Any]]:
    return [
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


class Prepared(NamedTuple):
    """A fixture that can be run, and the words of a command line that name it."""

    fixture: Fixture
    ids: list[str]
    words: Sequence[str]


def prepare(folder: Path, *names: str, **options: Any) -> Prepared:
    """Write the fixture with a plan and a certificate that says each human is twice as fast."""
    fixture = make_fixture(folder, names, **options)
    (folder / "emulator.json").write_text(json.dumps(known_tasks(), indent=1))
    task, config = read_task(str(fixture.task)), BenchConfig()
    plan = make_plan(task, Source(str(fixture.repo), folder / "cache"), str(fixture.commits))
    level = make_isolation(config, "auto", hidden=(), environment={}).level
    human = Ratio(median=2.0, low=1.9, high=2.1, rounds=9)
    certificate = Certificate(
        task_id=task.task.id,
        task_sha256=task.sha256,
        plan_sha256=hash_of(plan),
        bench_sha256=hash_of(config.container),
        isolation=level,
        items=tuple(
            ItemCertificate(
                item_id=item.item_id,
                status="measurable",
                expected_tests=TESTS,
                noise=None,
                human=human,
            )
            for item in plan.items
        ),
    )
    files = {"plan.json": plan, "certificate.json": certificate}
    for name, value in files.items():
        (folder / name).write_bytes(encode(value))
    return Prepared(
        fixture,
        [item.item_id for item in plan.items],
        (
            *("--benchmark", "optimisation", "--task-file", str(fixture.task)),
            *("--from-plan", str(folder / "plan.json"), "--seed", "1"),
            *("--certificate", str(folder / "certificate.json")),
        ),
    )


if __name__ == "__main__":
    prepare(Path(sys.argv[1]).resolve(), *sys.argv[2:])
