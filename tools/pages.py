# ruff: noqa: INP001 - a script's part, not a package
"""How the simulations of `make validity` tell what they found: on a page, or on stdout."""

import sys
from collections.abc import Callable
from pathlib import Path

SEED = 20261122
MISSED: list[str] = []  # what is not as the pages promise


def hold(value: float, bounds: tuple[float, float], what: str) -> None:
    """Note among `MISSED` what is not within its bounds."""
    if not bounds[0] <= value <= bounds[1]:
        MISSED.append(f"{what}: {value:.3f}, not in {bounds[0]:g} to {bounds[1]:g}")


def filled_in(text: str, name: str, content: str) -> str:
    """A page's text with `content` between its two comments of that name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if start not in text or end not in text:
        sys.exit(f"There is no place for {name}.")
    head, rest = text.split(start, 1)
    tail = rest.split(end, 1)[1]
    return f"{head}{start}\n{content}\n{end}{tail}"


def tell(name: str, tables: Callable[[], str]) -> bool:
    """Put the tables between the comments `name` and `end of name` of the file behind `--page`, or
    else on stdout; name there what is `MISSED`. Whether anything is.
    """
    told = tables()
    if "--page" in sys.argv:
        page = Path(sys.argv[sys.argv.index("--page") + 1])
        page.write_text(filled_in(page.read_text(), name, told))
    elif "--check" not in sys.argv:
        sys.stdout.write(told + "\n")
    sys.stdout.write("".join(f"MISSED: {line}\n" for line in MISSED))
    return bool(MISSED)
