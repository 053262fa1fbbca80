# ruff: noqa: INP001 -- a script of the image's build, not a part of a package
"""Compiles Python files to bytecode that is the same in every build. For the image's build only.

    python docker/compile.py ROOT        everything under ROOT, as it will lie under /
    python docker/compile.py ROOT stdlib the standard library, its bytecode written under ROOT

Bytecode is found unchecked: the image is read-only, so that no source changes under it.
"""

import os
import sys
import sysconfig
from pathlib import Path
from py_compile import PycInvalidationMode, compile  # noqa: A004 -- its name

# Folders and modules that no run comes near; what is left out is compiled when it is imported.
SKIPPED = {
    "_pydatetime", "_pydecimal", "_pyio", "aifc", "bdb", "cgi", "config", "ctypes", "curses",
    "dbm", "distutils", "doctest", "dom", "ensurepip", "ftplib", "idlelib", "imaplib",
    "lib2to3", "mailbox", "modulefinder", "msilib", "nntplib", "optparse", "pdb", "pickletools",
    "pstats", "pydoc", "pydoc_data", "sax", "site-packages", "smtplib", "sqlite3", "telnetlib",
    "test", "tests", "tkinter", "trace", "turtle", "turtledemo", "unittest", "venv", "wave",
    "webbrowser", "wsgiref", "xmlrpc",
}  # fmt: skip


def main(root: Path, *, stdlib: bool) -> None:
    if os.environ.get("PYTHONHASHSEED") != "0":
        sys.exit("PYTHONHASHSEED=0 is needed: the order inside sets goes into the bytecode.")
    top = Path(sysconfig.get_path("stdlib")) if stdlib else root
    for source in sorted(top.rglob("*.py")):
        parts = source.relative_to(top).with_suffix("").parts
        if stdlib and SKIPPED.intersection(parts):
            continue
        place = source if stdlib else Path("/", source.relative_to(root))
        _compile(source, place, root)


def _compile(source: Path, place: Path, root: Path) -> None:
    target = Path(root, *place.parts[1:-1], "__pycache__", f"{place.stem}.{_tag()}.pyc")
    compile(
        str(source),
        cfile=str(target),
        dfile=str(place),
        doraise=True,
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )


def _tag() -> str:
    return str(sys.implementation.cache_tag)


if __name__ == "__main__":
    main(Path(sys.argv[1]), stdlib=sys.argv[2:] == ["stdlib"])
