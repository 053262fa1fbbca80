"""`socratic-runner init [run|sweep] [FILE]`: a commented config file."""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents.report import ConfigDocument
from socratic_bench.documents.sweep_plan import PlanKey, plan_keys
from socratic_bench.errors import UsageError
from socratic_bench.setting import GROUPS
from socratic_bench.studies.sweep.settings import SweepSettings

from .arguments import Parser, parse_strictly
from .flags import add_output
from .output import plain, print_document, say

DESCRIPTION = """\
Writes a TOML config file with every setting, its meaning and its default. Flags
and environment variables override the file.

examples:
  socratic-runner init run && socratic-runner --config run.toml
  socratic-runner init sweep && socratic-runner sweep sweep.toml
"""
RUN, SWEEP = "run", "sweep"
COMMANDS = {RUN: "socratic-runner --config {}", SWEEP: "socratic-runner sweep {}"}
# What the file sets; all other settings are comments.
VALUES = {
    RUN: {"model": "emulator.drift-5-v1:0", "scenario": "milk-price", "offline": True}
    | {"output_dir": "results"},
    SWEEP: {"models": ["emulator.drift-5-v1:0", "emulator.socratic-v1:0"], "repeats": 3}
    | {"scenarios": ["milk-price", "career-change"], "offline": True, "output_dir": "results"},
}


def main(words: Sequence[str]) -> int:
    """Write the file; it must not exist yet."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    kind = flags.kind or RUN
    if kind not in COMMANDS:
        parser.refuse([f"The config is for {RUN} or {SWEEP}, not {kind!r}."])
    path = Path(flags.file or f"{kind}.toml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write("\n".join([*_lines(kind, str(path)), ""]))
    except FileExistsError as error:
        raise UsageError([f"{path} exists: choose another file."]) from error
    except OSError as error:
        raise UsageError([f"{path} cannot be written: {error.strerror}."]) from error
    command = COMMANDS[kind].format(path)
    document = ConfigDocument(file=str(path), command=command)
    words_of = partial(say, plain(f"wrote {path}; edit it, then run: {command}"))
    return print_document(document, words=words_of, flags=vars(flags))


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner init",
        usage="%(prog)s [KIND] [FILE] [options]",
        description=DESCRIPTION,
        epilog="exit codes: 0 written, 2 usage, or the file exists\n",
    )
    parser.add_argument("kind", metavar="KIND", nargs="?", help=f"{RUN} (default) or {SWEEP}")
    parser.offers["kind"] = (RUN, SWEEP)
    parser.add_argument("file", metavar="FILE", nargs="?", help="file to write (default KIND.toml)")
    add_output(parser)
    return parser


def _lines(kind: str, path: str) -> Iterator[str]:
    """The lines of the file: what it sets, then each other setting as a comment, by group."""
    values = VALUES[kind]
    kinds = (RunConfig,) if kind == RUN else (SweepSettings, RunConfig)
    keys = {**plan_keys(kinds, has_axes=kind == SWEEP)}
    yield f"# Config of a {kind}: {COMMANDS[kind].format(path)}"
    yield "# offline uses the built-in mock of Bedrock: remove it, and name models of your account."
    for name, value in values.items():
        yield f"{name} = {json.dumps(value)}"
    by_group: dict[str, list[PlanKey]] = {group: [] for group in GROUPS}
    for key in keys.values():
        by_group.setdefault(key.setting.setting.group, []).append(key)
    for group, members in by_group.items():
        lines = [_comment(key) for key in members if key.name not in values]
        yield from ("", f"# {group}", *lines) if lines else ()


def _comment(key: PlanKey) -> str:
    text = key.switch.text if key.switch else key.setting.fill(key.setting.setting.text)
    return f"# {key.name} = {_example(key)}  # {text.partition(' (default')[0]}"


def _example(key: PlanKey) -> str:
    """The default in TOML, or the form of a value."""
    if key.kind is bool:
        return "true"
    default = None if key.switch else key.setting.default
    if isinstance(default, int | float | str) and default != "":
        return json.dumps(default)
    metavar = (key.switch.metavar if key.switch else key.setting.setting.metavar) or ""
    form = metavar if key.kind in (int, float) else json.dumps(metavar)
    return f"[{form}]" if key.is_many else form
