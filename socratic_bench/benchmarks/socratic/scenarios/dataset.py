"""The built-in scenarios as a data set for the Hugging Face Hub: rows, card, hashes, licence."""

import json
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from socratic_bench.benchmarks.socratic.scenarios.loading import DATA, builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.scenarios.scenario import CUSTOM, Scenario
from socratic_bench.benchmarks.socratic.turn import EDITION
from socratic_bench.errors import ArtifactError
from socratic_bench.version import VERSION

ROWS, CARD, HASHES, SOURCES = "scenarios.jsonl", "README.md", "sha256sums.txt", "toml"
# Texts of a student's own words beside the insights; one column of JSON, since few have them.
_NESTED = ("moves", "voice", "pressure")
_CARD = Path(__file__).with_name("dataset_card.md")


def write_dataset(folder: str) -> list[str]:
    """Write the data set; returns the paths of its files. Raises `ArtifactError`."""
    place = Path(folder)
    scenarios = [load_builtin(name) for name in builtin_ids() if name != CUSTOM]
    contents = {
        ROWS: "".join(
            f"{json.dumps(_row(scenario), ensure_ascii=False)}\n" for scenario in scenarios
        ),
        CARD: _card(scenarios),
        "LICENSE": _license(),
        **{
            f"{SOURCES}/{scenario.id}.toml": (DATA / f"{scenario.id}.toml").read_text("utf-8")
            for scenario in scenarios
        },
    }
    sums = {name: sha256(text.encode()).hexdigest() for name, text in contents.items()}
    contents[HASHES] = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    try:
        for name, text in contents.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    except OSError as error:
        raise ArtifactError(f"{folder} cannot be written: {error.strerror}.") from error
    return [str(place / name) for name in contents]


def _row(scenario: Scenario) -> dict[str, Any]:
    values: dict[str, Any] = to_builtins(scenario)
    nested = {name: json.dumps(values[name], ensure_ascii=False) for name in _NESTED}
    return {**values, **nested}


def _card(scenarios: list[Scenario]) -> str:
    return _CARD.read_text("utf-8").format(
        languages=", ".join(sorted({scenario.language.split("-")[0] for scenario in scenarios})),
        n=len(scenarios),
        version=VERSION,
        edition=EDITION,
        rows=ROWS,
        sources=SOURCES,
        hashes=HASHES,
    )


def _license() -> str:
    """The program's own licence, from its checkout or its installed package."""
    checkout = Path(__file__).parents[4] / "LICENSE"
    if checkout.exists():
        return checkout.read_text("utf-8")
    try:
        installed = [path for path in files("socratic-runner") or () if path.name == "LICENSE"]
    except PackageNotFoundError:
        installed = []
    if not installed:
        raise ArtifactError("LICENSE is not in this installation: install the package as a wheel.")
    return installed[0].read_text("utf-8")
