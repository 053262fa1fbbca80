# ruff: noqa: INP001 - a script's part, not a package
"""How the simulations of `make validity` tell what they found: on a page, or on stdout."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def tell(name: str, tables: Callable[[], str], missed: Sequence[str]) -> bool:
    """Put the tables between the comments `name` and `end of name` of the file behind `--page`, or
    else on stdout; name there what is `missed`, which is read last. Whether anything is.
    """
    told = tables()
    if "--page" in sys.argv:
        page = Path(sys.argv[sys.argv.index("--page") + 1])
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, _, rest = page.read_text().partition(begin)
        page.write_text(f"{before}{begin}\n{told}\n{end}{rest.partition(end)[2]}")
    elif "--check" not in sys.argv:
        sys.stdout.write(told + "\n")
    sys.stdout.write("".join(f"MISSED: {line}\n" for line in missed))
    return bool(missed)
