# ruff: noqa: INP001 -- a script of the image's build, not a part of a package
"""Prints the part of a compiled requirements file that one package needs, with versions and hashes.

    python docker/closure.py requirements-dev.txt moto

The compiler notes under each package which others asked for it; that graph is followed here.
"""

import re
import sys
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def main(compiled: Path, wanted: str) -> None:
    blocks = re.split(r"\n(?=[A-Za-z0-9])", compiled.read_text(encoding="utf-8"))
    parents = {_name(block): _parents(block) for block in blocks if "==" in block}
    if wanted not in parents:
        sys.exit(f"{wanted} is not pinned in {compiled}.")
    needed = {wanted}
    while more := {name for name, asked in parents.items() if asked & needed} - needed:
        needed |= more
    sys.stdout.write("\n".join(block for block in blocks if _name(block) in needed) + "\n")


def _name(block: str) -> str:
    found = _NAME.match(block)
    return found[0] if found else ""


def _parents(block: str) -> set[str]:
    notes = " ".join(line for line in block.splitlines() if line.lstrip().startswith("#"))
    return set(_NAME.findall(notes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
