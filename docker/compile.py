# ruff: noqa: INP001 -- a script of the image's build, not a part of a package
"""Compiles Python files to bytecode that is the same in every build. For the image's build only.

    python docker/compile.py ROOT        everything under ROOT, as it will lie under /
    python docker/compile.py ROOT whole  the same with docstrings, which numpy and scipy read
    python docker/compile.py ROOT stdlib the standard library, its bytecode written under ROOT
    python docker/compile.py ROOT stdlib NAME...    of what is left out there, these

Bytecode is found unchecked: the image is read-only, so that no source changes under it. It lacks
the docstrings of functions, which stand in the source; those of classes go into JSON Schemas.
"""

import ast
import marshal
import os
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

# Folders and modules that no run comes near; what is left out is compiled when it is imported.
SKIPPED = {
    "_osx_support", "_pydatetime", "_pydecimal", "_pyio", "aifc", "bdb", "cgi", "cgitb", "config",
    "ctypes", "curses", "dbm", "distutils", "doctest", "dom", "ensurepip", "filecmp",
    "ftplib", "handlers", "idlelib", "imaplib", "lib2to3", "mailbox", "mailcap", "modulefinder",
    "msilib", "nntplib", "optparse", "pdb", "pickletools", "plistlib", "poplib",
    "proactor_events", "profile", "pstats", "pyclbr", "pydoc", "pydoc_data", "robotparser", "sax",
    "shelve", "site-packages", "smtplib", "sndhdr", "sqlite3", "sunau", "symtable", "tabnanny",
    "tarfile", "telnetlib", "test", "tests", "timeit", "tkinter", "trace", "turtle", "turtledemo",
    "unittest", "venv", "wave", "webbrowser", "windows_events", "windows_utils", "wsgiref",
    "xmlrpc",
}  # fmt: skip
# Of a hundred character sets, those that messages, files and addresses come in.
ENCODINGS = {
    "__init__", "aliases", "ascii", "cp1252", "idna", "iso8859_1", "latin_1", "punycode",
    "raw_unicode_escape", "unicode_escape", "utf_16", "utf_16_be", "utf_16_le", "utf_8",
    "utf_8_sig",
}  # fmt: skip

# A hash of the source stands behind it that nobody checks (PEP 552).
_HEADER = MAGIC_NUMBER + (0b01).to_bytes(4, "little")


def main(root: Path, what: str = "", names: Sequence[str] = ()) -> None:
    if os.environ.get("PYTHONHASHSEED") != "0":
        sys.exit("PYTHONHASHSEED=0 is needed: the order inside sets goes into the bytecode.")
    stdlib = what == "stdlib"
    top = Path(sysconfig.get_path("stdlib")) if stdlib else root
    for source in sorted(top.rglob("*.py")):
        parts = source.relative_to(top).with_suffix("").parts
        if stdlib and (parts[0] not in names if names else _is_seldom(parts)):
            continue
        place = source if stdlib else Path("/", source.relative_to(root))
        _compile(source, place, root, is_whole=what == "whole")


def _is_seldom(parts: Sequence[str]) -> bool:
    is_rare_encoding = parts[0] == "encodings" and parts[-1] not in ENCODINGS
    return is_rare_encoding or not SKIPPED.isdisjoint(parts)


def _compile(source: Path, place: Path, root: Path, *, is_whole: bool) -> None:
    target = Path(root, *place.parts[1:-1], "__pycache__", f"{place.stem}.{_tag()}.pyc")
    content = source.read_bytes()
    tree = ast.parse(content, source)
    for node in () if is_whole else ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            # In place, so that the lines of a traceback stay; a lone docstring leaves nothing.
            node.body[0] = ast.copy_location(ast.Pass(), node.body[0])
    code = compile(tree, str(place), "exec", dont_inherit=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(_HEADER + source_hash(content) + marshal.dumps(code))


def _tag() -> str:
    return str(sys.implementation.cache_tag)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3], names=sys.argv[3:])
