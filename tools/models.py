# ruff: noqa: INP001 - a script, not a package
"""Makes socratic_bench/catalogue/models.json of tools/families.toml and the litellm wheel's prices.

    python tools/models.py               downloads the newest wheel with pip
    python tools/models.py --wheel FILE  reads one that is there
    python tools/models.py --families    keeps the prices, and reads families.toml only

Only facts are taken from litellm: model ids, prices, and from how many input tokens on they are
others. A model with prices that belongs to no family in families.toml is an error: look up what it
takes, and add it. litellm is Copyright (c) 2023 Berri AI, MIT licence: see NOTICE.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "socratic_bench" / "catalogue" / "models.json"
FAMILIES = Path(__file__).with_name("families.toml")
TABLE = "litellm/model_prices_and_context_window_backup.json"
PROVIDERS = ("bedrock", "bedrock_converse")
MODES = ("chat", "completion")
TIERS = {"default": "", "priority": "_priority", "flex": "_flex", "batch": "_batches"}
KINDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}
MILLION = 1_000_000

_MODEL_ID = re.compile(r"[a-z0-9-]+\.[a-zA-Z0-9.:_-]+")
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")
_OVER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")

# The embedded endpoint costs nothing. Its stand-in prices let runs without an account show a cost;
# their cache rates, 1.25 and 0.1 of the input's, are those of most Claude models.
OWN_PRICES: Mapping[str, object] = {
    "emulator.*": {
        "default": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
        "priority": {"input": 5.25, "output": 26.25, "cache_read": 0.525, "cache_write": 6.5625},
        "flex": {"input": 1.5, "output": 7.5, "cache_read": 0.15, "cache_write": 1.875},
        "batch": {"input": 1.5, "output": 7.5},
        "optimized": {"input": 3.75, "output": 18.75, "cache_read": 0.375, "cache_write": 4.6875},
        "stand_in": True,
    },
    # Billed by the tokens of both prompts. The page (https://aws.amazon.com/bedrock/pricing/) shows
    # prices in a browser alone, so this one (0.03 USD per 1,000 tokens) could not be compared with
    # it on 2026-11-28.
    "amazon.optimize-prompt*": {"default": {"input": 30, "output": 30}},
}
# One model by two ids: the source knows it only by the second.
ALIASES = {"anthropic.claude-3-5-sonnet-20241022-v1:0": "anthropic.claude-3-5-sonnet-20241022-v2:0"}

Row = Mapping[str, object]


def prices(table: Mapping[str, Row]) -> dict[str, object]:
    """Rows of a price file: USD per million tokens by model id, or by region and model id."""
    rows = {name: _model(row) for name, row in table.items() if _is_text_on_bedrock(row)}
    named = {_name(name): model for name, model in rows.items() if model}
    named.pop(None, None)
    models = {
        name: model
        for name, model in named.items()
        if name and model != named.get(name.rpartition("/")[2] if "/" in name else None)
    }
    models |= {name: models[known] for name, known in ALIASES.items() if known in models}
    return dict(sorted({**models, **OWN_PRICES}.items()))


def families(
    kept: Mapping[str, Any], priced: Mapping[str, object], source: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The rows of the table, each with the prices of its models. Raises `ValueError` for a model
    with prices that no family knows.
    """
    rows = [_family(row, kept["names"], source) for row in kept["family"]]
    for name, model in priced.items():
        _row_of(name, rows)["prices"][name] = model
    return rows


def _family(
    row: Mapping[str, Any], names: Mapping[str, str], source: Mapping[str, str]
) -> dict[str, Any]:
    names = {**names, "litellm": f"{source['name']} {source['version']}"}
    return {
        "family": row["family"],
        "starts": row["starts"],
        "lacks": row["lacks"],
        "no_images": row.get("no_images", []),
        "thinking": None if row["thinking"] == "none" else row["thinking"],
        "cache_minimum": row.get("cache_minimum", 1024),
        "sources": [names.get(one, one) for one in row["sources"]],
        "prices": {},
    }


def _row_of(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    model = _base_id(name.rpartition("/")[2])
    known = [
        (len(start), row) for row in rows for start in row["starts"] if model.startswith(start)
    ]
    if not known:
        raise ValueError(f"{name} has prices and no family: add it to tools/families.toml")
    return max(known, key=lambda found: found[0])[1]


def _base_id(name: str) -> str:
    sys.path.insert(0, str(ROOT))
    from socratic_bench.catalogue.models import base_id

    return base_id(name)


def written(source: Mapping[str, str], rows: list[dict[str, Any]]) -> str:
    """The file's text: a line for each family and model, so that changes can be reviewed."""
    body = ",\n".join(map(_lines, rows))
    return f'{{"prices": {json.dumps(source)}, "families": [\n{body}\n]}}\n'


def _lines(row: Mapping[str, Any]) -> str:
    head = json.dumps({name: value for name, value in row.items() if name != "prices"})
    models = [f"  {json.dumps(name)}: {_compact(model)}" for name, model in row["prices"].items()]
    body = "\n" + ",\n".join(models) + "\n " if models else ""
    return f' {head[:-1]}, "prices": {{{body}}}}}'


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _is_text_on_bedrock(row: Row) -> bool:
    return row.get("litellm_provider") in PROVIDERS and row.get("mode") in MODES


def _name(name: str) -> str | None:
    """A model's id, after its region and a slash if the price holds there only."""
    *places, model_id = name.removeprefix("bedrock/").split("/")
    if not _MODEL_ID.fullmatch(model_id):
        return None
    if not places:
        return model_id
    is_region = len(places) == 1 and _REGION.fullmatch(places[0])
    return f"{places[0]}/{model_id}" if is_region else None


def _model(row: Row) -> dict[str, object]:
    tiers = {tier: _rates(row, suffix) for tier, suffix in TIERS.items()}
    return {tier: rates for tier, rates in tiers.items() if {"input", "output"} <= set(rates)}


def _rates(row: Row, suffix: str) -> dict[str, object]:
    rates: dict[str, object] = dict(_kinds(row, suffix))
    steps = [int(found[1]) for name in row if (found := _OVER.fullmatch(name))]
    if len(steps) > 1:
        raise ValueError(f"more than one step in {row}")
    for step in steps:
        over = dict(_kinds(row, f"_above_{step}k_tokens{suffix}"))
        if over:
            rates["over"] = {"input_tokens": step * 1000, **over}
    return rates


def _kinds(row: Row, suffix: str) -> Iterator[tuple[str, float | int]]:
    for kind, field in KINDS.items():
        value = row.get(field + suffix)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield kind, _per_million(value)


def _per_million(per_token: float) -> float | int:
    exact = Decimal(repr(per_token)) * MILLION
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def read_wheel(wheel: Path) -> tuple[dict[str, Row], str]:
    """The table in the wheel, and the wheel's version."""
    version = wheel.name.split("-")[1]
    with zipfile.ZipFile(wheel) as archive:
        return json.loads(archive.read(TABLE)), version


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "litellm", "-d", str(folder)]
    subprocess.run(command, check=True)  # noqa: S603 -- a command of our own
    return next(folder.glob("litellm-*.whl"))


def kept_prices(table: Path) -> tuple[dict[str, object], dict[str, str]]:
    """The prices in a table that was made before, and their source."""
    found = json.loads(table.read_bytes())
    models = {name: model for row in found["families"] for name, model in row["prices"].items()}
    return dict(sorted({**models, **OWN_PRICES}.items())), found["prices"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help="a litellm wheel; downloaded if left out")
    parser.add_argument("--families", action="store_true", help="keep the prices of the table")
    parser.add_argument(
        "--date", default=datetime.now(UTC).date().isoformat(), help="the day of it"
    )
    parser.add_argument("--output", type=Path, default=TARGET)
    given = parser.parse_args()
    if given.families:
        priced, source = kept_prices(TARGET)
    else:
        with tempfile.TemporaryDirectory() as folder:
            table, version = read_wheel(given.wheel or _download(Path(folder)))
        priced = prices(table)
        source = {"name": "litellm", "version": version, "date": given.date}
    rows = families(tomllib.loads(FAMILIES.read_text("utf-8")), priced, source)
    given.output.write_text(written(source, rows), encoding="utf-8")


if __name__ == "__main__":
    main()
