"""In a program's own process: evaluates its calls and traces the lines that they execute."""

import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType, ModuleType
from typing import Any

FILE = "<program>"
MAX_CHARACTERS = 65_536
# Names that programs of contests use without importing them.
PREAMBLE: Mapping[str, tuple[str, ...]] = {
    "typing": (
        *("Any", "Callable", "Dict", "Iterable", "Iterator", "List", "Optional", "Sequence"),
        *("Set", "Tuple", "Union"),
    ),
    "collections": ("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"),
    "functools": ("cache", "cmp_to_key", "lru_cache", "partial", "reduce"),
    "itertools": (
        *("accumulate", "chain", "combinations", "count", "cycle", "groupby", "islice"),
        *("pairwise", "permutations", "product", "repeat", "zip_longest"),
    ),
    "math": ("ceil", "comb", "factorial", "floor", "gcd", "inf", "isqrt", "lcm", "log2", "sqrt"),
    "heapq": (
        *("heapify", "heappop", "heappush", "heappushpop", "heapreplace", "nlargest", "nsmallest"),
    ),
    "bisect": ("bisect_left", "bisect_right", "insort"),
    "string": ("ascii_lowercase", "ascii_uppercase", "digits"),
    "operator": ("itemgetter", "xor"),
}
# Programs may use these modules without importing them, too.
MODULES = (*PREAMBLE, "copy", "datetime", "decimal", "fractions", "random", "re", "statistics")
# Other modules that programs import. They may lie where `nobody` cannot read them, so the server
# imports them beforehand.
IMPORTED = (
    *("abc", "array", "base64", "calendar", "cmath", "contextlib", "csv", "dataclasses"),
    *("difflib", "enum", "graphlib", "hashlib", "html", "io", "json", "numbers", "os", "pprint"),
    *("queue", "secrets", "struct", "sys", "textwrap", "threading", "time", "traceback", "types"),
    *("unicodedata", "uuid", "zlib", "zoneinfo"),
)
# Modules that few programs import, and such as the standard library imports only when they are
# needed: the server imports them beforehand where programs run as `nobody`.
SELDOM = (
    *("_pylong", "_strptime", "argparse", "asyncio", "bz2", "cProfile", "cmd", "codecs"),
    *("colorsys", "concurrent.futures.thread", "configparser", "ctypes", "dbm", "doctest"),
    *("email.message", "email.parser", "fcntl", "fileinput", "getopt", "getpass", "gettext"),
    *("glob", "grp", "gzip", "html.parser", "http.client", "importlib.resources", "logging"),
    *("lzma", "mmap", "multiprocessing", "optparse", "pdb", "pickle", "pkgutil", "runpy"),
    *("sched", "selectors", "shelve", "shlex", "shutil", "socket", "sqlite3", "ssl"),
    *("subprocess", "symtable", "sysconfig", "tempfile", "timeit", "tomllib", "trace"),
    *("tracemalloc", "unittest", "urllib.parse", "urllib.request", "wave"),
    *("xml.etree.ElementTree", "xml.sax", "zipfile"),
    *(
        f"encodings.{name}"
        for name in (
            *("ascii", "base64_codec", "big5", "cp1252", "cp437", "euc_jp", "gbk", "hex_codec"),
            *("idna", "iso8859_1", "iso8859_15", "latin_1", "punycode", "raw_unicode_escape"),
            *("rot_13", "shift_jis", "unicode_escape", "utf_16", "utf_16_be", "utf_16_le"),
            *("utf_32", "utf_32_be", "utf_32_le", "utf_7", "utf_8_sig", "zlib_codec"),
        )
    ),
)
# Types of literals, types that hold others, and the depth that a literal can have.
_SCALARS = (bool, int, float, complex, str, bytes, type(None), type(...))
_CONTAINERS = (list, tuple, set, dict)
_MAX_DEPTH = 200
# Taken before a program can replace them.
_REPR, _LEN = repr, len


def evaluate(job: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate each call of `job["calls"]`, with a fresh program each.

    A case is `{"repr", "holds"}`, `{"error", "message"}` or `{"too_long"}`; `lines` and `arcs` are
    those of all calls, if they are traced. `holds` is the class of a value within the result that
    is no literal, whatever its repr says.
    """
    try:
        program = compile(job["code"], FILE, "exec", dont_inherit=True)
        calls = [compile(call, "<call>", "eval", dont_inherit=True) for call in job["calls"]]
    except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError) as error:
        return {"cases": [_error_case(error) for _ in job["calls"]]}
    trace = Trace()
    cases = [_evaluate_call(program, call, trace if job["is_traced"] else None) for call in calls]
    return {"cases": cases, "lines": sorted(trace.lines), "arcs": sorted(trace.arcs)}


class Trace:
    """The lines that a program executes, and from which line to which it goes."""

    def __init__(self) -> None:
        self.lines: set[int] = set()
        self.arcs: set[tuple[int, int]] = set()

    def calling(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        """For `sys.settrace`: follows the program's own frames."""
        del argument
        if event != "call" or frame.f_code.co_filename != FILE:
            return None
        before = -frame.f_code.co_firstlineno

        def executing(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            nonlocal before
            del argument
            if event == "line":
                self.lines.add(frame.f_lineno)
                self.arcs.add((before, frame.f_lineno))
                before = frame.f_lineno
            return executing

        return executing


def _evaluate_call(program: CodeType, call: CodeType, trace: Trace | None) -> dict[str, Any]:
    try:
        # Some of the standard library looks for the module that a class is of.
        sys.modules["program"] = module = ModuleType("program")
        space = vars(module)
        space.update(_preamble(program, call))
        exec(program, space)  # noqa: S102 -- what this process is for
        if trace:
            sys.settrace(trace.calling)
        try:
            value = eval(call, space)  # noqa: S307 -- the same
        finally:
            sys.settrace(None)
        text = _REPR(value)
        if _LEN(text) > MAX_CHARACTERS:
            return {"too_long": _LEN(text)}
        return {"repr": text, "holds": _non_literal(value)}
    except BaseException as error:  # noqa: BLE001 -- SystemExit, too, is what the program did
        return _error_case(error)


def _error_case(error: BaseException) -> dict[str, Any]:
    try:
        message = str(error)[:200]
        if isinstance(error, ModuleNotFoundError) and error.name:
            is_standard = error.name.partition(".")[0] in sys.stdlib_module_names
            message += (
                ", which is not offered to programs"
                if is_standard
                else ": programs have the standard library alone"
            )
    except BaseException:  # noqa: BLE001 -- the program may have made the error
        message = ""
    return {"error": type(error).__name__, "message": message}


def _non_literal(value: object, above: tuple[int, ...] = ()) -> str | None:
    """A class within a value that is no literal's, or the value within itself; else `None`."""
    kind = type(value)
    like = (of for of in (*_SCALARS, *_CONTAINERS) if kind.__repr__ is of.__repr__)
    plain = next(like, None)
    if plain is None:
        return kind.__name__
    if id(value) in above:
        return f"{kind.__name__} within itself"
    if plain not in _CONTAINERS or _LEN(above) == _MAX_DEPTH:
        return None
    whole: Any = value
    # As the type itself has it, of which a class may have made something else.
    parts = [*dict.keys(whole), *dict.values(whole)] if plain is dict else [*plain.__iter__(whole)]
    within = (*above, id(value))
    return next((name for part in parts if (name := _non_literal(part, within))), None)


def _preamble(*codes: CodeType) -> Iterator[tuple[str, Any]]:
    """The names of the preamble that the code uses, with their values."""
    used = {name for code in codes for name in _names(code)}
    for module in MODULES:
        if module in used:
            yield module, __import__(module)
        for name in used.intersection(PREAMBLE.get(module, ())):
            yield name, getattr(__import__(module), name)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
