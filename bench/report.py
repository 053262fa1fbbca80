"""The table for people, the JSON for programs, and a part of docs/performance.md."""

import json
import platform
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from os import cpu_count
from pathlib import Path
from typing import Any

from bench.row import Row

SHOWN = {
    "x": "{:.3f}",
    "s": "{:.2f} s",
    "ms": "{:.2f} ms",
    "MB": "{:.2f} MB",
    "/s": "{:.0f}",
    "%": "{:.2f} %",
    "": "{:.0f}",
}
PACKAGES = ("boto3", "botocore", "orjson", "tenacity")


def table(rows: Sequence[Row]) -> str:
    """Aligned columns for a terminal."""
    heads = ("what", "measure", "best", "median", "must", "aim", "")
    cells = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def markdown(rows: Sequence[Row]) -> str:
    lines = [f"{context()}", "", "| what | measure | best | median | must | aim | |"]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows]
    return "\n".join(lines)


def as_json(rows: Sequence[Row]) -> bytes:
    document: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": cpu_count(), "cpu": _cpu_model(), "system": platform.system()},
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
        "rows": [
            {
                "name": row.name,
                "measure": row.measure,
                "unit": row.unit,
                "best": row.best,
                "median": row.median,
                "must": row.must,
                "aim": row.aim,
                "passes": row.passes,
                "reaches_aim": row.reaches_aim,
                "values": row.values,
            }
            for row in rows
        ],
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def context() -> str:
    """One sentence: when, on what, with which versions."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with {cpu_count()} cores ({_cpu_model()}), "
        f"{platform.system()}, Python {platform.python_version()}, {packages}."
    )


def fill_in(page: Path, name: str, content: str) -> None:
    """Replace what stands between the page's two comments of that name."""
    text = page.read_text(encoding="utf-8")
    page.write_text(filled_in(text, name, content), encoding="utf-8")


def filled_in(text: str, name: str, content: str) -> str:
    """A page's text with `content` between its two comments of that name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if start not in text or end not in text:
        sys.exit(f"There is no place for {name}.")
    head, rest = text.split(start, 1)
    tail = rest.split(end, 1)[1]
    return f"{head}{start}\n{content}\n{end}{tail}"


def _cells(row: Row) -> tuple[str, ...]:
    shown = SHOWN[row.unit]
    bound = "≥ {:g}" if row.more_is_better else "{:g}"
    word = "aim" if row.reaches_aim else "pass" if row.passes else "FAIL"
    return (
        row.name,
        row.measure,
        shown.format(row.best),
        shown.format(row.median),
        bound.format(row.must),
        bound.format(row.aim),
        word,
    )


def _cpu_model() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()
