# ruff: noqa: INP001 - a script, not a package
"""Writes what is generated from the program: cli/flags.tsv, tables in docs/flags.md,
docs/output.md and docs/bedrock.md, and what type checkers know of `RunConfig`: `make docs`.

A test fails while these are not what this would write.
"""

from argparse import SUPPRESS
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pages import filled_in

from cli.commands import COMMANDS
from cli.flags import STORED
from cli.settings import Options, table_rows
from socratic_bench import retrying
from socratic_bench.benchmarks import BENCHMARKS, RunConfig, load_benchmark
from socratic_bench.benchmarks.socratic.student import model as student
from socratic_bench.documents.journal import TTL_MAX_S
from socratic_bench.documents.report import RunRecord, TurnRecord, VerdictRecord
from socratic_bench.documents.schema import Documents
from socratic_bench.errors import Problem
from socratic_bench.judging import request as judge
from socratic_bench.models.bedrock.error_table import ERROR_KINDS
from socratic_bench.models.bedrock.session import CONNECT_TIMEOUT_S
from socratic_bench.models.call import RETRY_WINDOW_S
from socratic_bench.setting import GROUPS
from socratic_bench.settings import flag_names
from socratic_bench.settings.table import listed
from socratic_bench.storage import s3
from socratic_bench.storage.delivery import MEMORY_BYTES, UploadPolicy
from socratic_bench.storage.lease import RENEWALS_PER_TTL
from socratic_bench.studies.report.tables import FURTHER, kind_of
from socratic_bench.studies.sweep.settings import SweepSettings

ROOT = Path(__file__).resolve().parents[1]
FLAGS, OUTPUT, BEDROCK = (ROOT / "docs" / f"{name}.md" for name in ("flags", "output", "bedrock"))
STUB = ROOT / "socratic_bench" / "benchmarks" / "run_config.py"
STUB_FORM = """\
\"\"\"What type checkers know of `RunConfig`, made by `make docs`. Nothing imports it.\"\"\"

{imports}
from socratic_bench.settings import WholeConfig


class RunConfig(
    {bases},
    WholeConfig,
    frozen=True,
    kw_only=True,
):
    \"\"\"Everything that one run depends on; what a field means stands beside it.\"\"\"
"""
PLAIN_TEXT = "| `--version`, `-V`, `--help`, `-h` | | | plain text on stdout |"
# Where the pages say more of a key.
LINKS = {
    "turns": "#turns",
    "cost": "#cost",
    "latency": "#latency",
    "end_reason": "#end-reasons-and-exit-codes",
    "timestamps": "bedrock.md#resuming-a-run",
    "journal": "bedrock.md#resuming-a-run",
    "error": "#errors",
    "metrics": "benchmark.md#metrics",
    "heuristics": "dev/heuristics.md",
    "unjudged_reason": "benchmark.md#turns-without-a-score",
    "pressure": "scenarios.md#pressure",
    "student_flags": "scenarios.md#fidelity-of-a-model-student",
    "injection_suspected": "benchmark.md#what-the-judge-sees",
}


def made() -> dict[Path, str]:
    """Each file with the content that it should have."""
    return {
        FLAGS: _filled(FLAGS, {"settings": _settings(), "flags of commands": _command_flags()}),
        OUTPUT: _filled(OUTPUT, {**_keys(), "columns": _columns()}),
        BEDROCK: _filled(BEDROCK, {"error kinds": _error_kinds(), "limits": _limits()}),
        Path(STORED): "".join("\t".join(row) + "\n" for row in table_rows()),
        STUB: _stub(),
    }


def _filled(page: Path, tables: Mapping[str, Iterator[str]]) -> str:
    text = page.read_text(encoding="utf-8")
    for name, lines in tables.items():
        text = filled_in(text, name, "\n".join(lines))
    return text


def _row(*cells: str) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _head(*cells: str) -> str:
    return f"{_row(*cells)}\n{'|---' * len(cells)}|"


def _settings() -> Iterator[str]:
    """The flags and variables of a run, by group."""
    for group, entries in groupby(listed((RunConfig, Options)), lambda entry: entry.group):
        yield f"### {group.capitalize()}\n"
        yield _head("flag", "variable", "default", "meaning")
        for entry in entries:
            flag = " ".join(filter(None, (f"--{entry.flag}", entry.metavar)))
            flag = f"`{flag}`" if entry.flag else ""
            flag += f", `-{entry.short}`" if entry.short else ""
            variables = ", ".join(f"`{name}`" for name in entry.variables)
            is_in_heading = entry.group in entry.owners
            owners = "`, `".join(entry.owners)
            suffix = f" (`{owners}` alone)" if owners and not is_in_heading else ""
            yield _row(flag, variables, entry.default, entry.meaning + suffix)
        if group == GROUPS[-1]:
            yield PLAIN_TEXT
        yield ""


def _command_flags() -> Iterator[str]:
    """The flags that other commands have beside those of a run, or with another value."""
    run_flags = {f"--{entry.flag}": entry.metavar for entry in listed((RunConfig, Options))}
    run_flags |= {"--help": None, "--version": None}
    for name, (module, _) in COMMANDS.items():
        rows = []
        parser = import_module(module, "cli").build_parser()
        for action in parser._actions:  # noqa: SLF001
            metavar = action.metavar or (action.dest if not action.option_strings else None)
            flag = action.option_strings[-1] if action.option_strings else ""
            if action.help != SUPPRESS and (flag or 0, metavar) not in run_flags.items():
                words = " ".join(filter(None, (flag, str(metavar or ""))))
                text = (action.help or "") % {"default": action.default}
                rows.append(
                    _row(
                        *(
                            cell.replace("|", "\\|")
                            for cell in (f"`{words}`", " ".join(text.split()))
                        )
                    )
                )
        if rows:
            yield "\n".join((f"### {name}\n", _head("flag", "meaning"), *rows, ""))


def _keys() -> dict[str, Iterator[str]]:
    """The keys of a run's document and of a turn in it, from their types."""
    benchmark = load_benchmark(RunConfig(model="").benchmark)
    run = Documents(benchmark, RunConfig, SweepSettings).schema("run")
    definitions = run["$defs"]
    return {
        "keys of a run": _key_rows(run["properties"], definitions),
        "keys of a turn": _key_rows(definitions["TurnEntry"]["properties"], definitions),
    }


def _key_rows(properties: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    """A key, the types that it may have, what it means, the words or keys that it may hold."""
    yield _head("key", "type", "meaning")
    for key, node in properties.items():
        forms = [_target(form, definitions) for form in node.get("anyOf", [node])]
        types = dict.fromkeys(name for form in forms for name in _types(form))
        words = [word for form in forms for word in form.get("enum", ()) if isinstance(word, str)]
        keys = [name for form in forms for name in form.get("properties", ())]
        meaning = next(
            (form["description"] for form in (node, *forms) if "description" in form), ""
        )
        meaning = meaning.rstrip(".").replace("|", "\\|")
        if key in LINKS:
            meaning = f"{meaning} ([more]({LINKS[key]}))".lstrip()
        elif words or keys:
            names = ", ".join(f"`{name}`" for name in [*words, *keys])
            meaning = f"{meaning}: {names}".lstrip(": ")
        yield _row(f"`{key}`", " or ".join(types), meaning)


def _target(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    name = node.get("$ref", "").rpartition("/")[2]
    return {**definitions[name], **node} if name else node


def _types(form: Mapping[str, Any]) -> list[str]:
    if "type" in form:
        return [form["type"]]
    names = {str: "string", int: "integer", type(None): "null"}
    return [names[type(word)] for word in form.get("enum", ())]


def _columns() -> Iterator[str]:
    """The columns of each exported table, and what further ones are called."""
    yield _head("table", "column", "type", "meaning")
    records = (("runs", RunRecord), ("turns", TurnRecord), ("verdicts", VerdictRecord))
    for table, record in records:
        plain = get_type_hints(record)
        for name, hint in get_type_hints(record, include_extras=True).items():
            yield _row(table, f"`{name}`", kind_of(plain[name]), _description(hint))
    for start, tables, meaning in FURTHER:
        yield _row(tables, f"`{start}…`", "by column", meaning)


def _description(hint: object) -> str:
    """The description beside a field's type, or else within it."""
    texts = [meta.description for meta in getattr(hint, "__metadata__", ()) if meta.description]
    inner = (_description(argument) for argument in get_args(hint))
    return texts[-1] if texts else next(filter(None, inner), "")


def _error_kinds() -> Iterator[str]:
    yield _head("code", "what happened", "retried", "may be billed", "end reason")
    call = flag_names((RunConfig,))
    for name, kind in ERROR_KINDS.items():
        retried, billed = ("yes" if is_so else "no" for is_so in (kind.retried, kind.maybe_billed))
        meaning = Problem(kind.meaning).render(call)
        yield _row(f"`{name}`", meaning, retried, billed, f"`{kind.end_reason}`")


def _limits() -> Iterator[str]:
    """Time limits, waits and sizes, as the program has them."""
    config, policy, upload = RunConfig(model=""), retrying.RetryPolicy(), UploadPolicy()
    tokens = f"{student.MAX_TOKENS}, {judge.MAX_TOKENS_WITH_QUOTES}"
    yield _head("limit", "value")
    for limit, value in {
        "connecting to Bedrock": f"{CONNECT_TIMEOUT_S} s",
        "one request to a model (`--call-timeout`)": f"{config.call_timeout_s:g} s",
        "requests of one call (`--max-attempts`)": f"{config.max_attempts}",
        "last retry of a call after": f"{RETRY_WINDOW_S / 60:g} minutes",
        "first wait before a retry, random": f"up to {policy.wait_base_s:g} s, then doubled",
        "longest wait before a retry": f"{policy.wait_max_s:g} s",
        "longest wait that a service asks for": f"{retrying.SERVER_WAIT_MAX_S:g} s",
        "`maxTokens` of the tutor (`--max-tokens`)": f"{config.max_tokens}",
        "`maxTokens` of a model student, of the judge": tokens,
        "connecting to S3, an answer of S3": f"{s3.CONNECT_TIMEOUT_S} s, {s3.READ_TIMEOUT_S} s",
        "the check of the bucket before a run": f"{s3.CHECK_TIMEOUT_S} s",
        "attempts for each file after the dialogue": f"{upload.tries}",
        "giving up S3 after no write has succeeded for": f"{upload.grace_s:g} s",
        "files that wait in memory for S3": f"{MEMORY_BYTES // 2**20} MiB",
        "lease on a run in a bucket, renewed every": f"{TTL_MAX_S / RENEWALS_PER_TTL:g} s",
        "lease on a run in a bucket, expires after": f"{TTL_MAX_S:g} s",
    }.items():
        yield _row(limit, value)


def _stub() -> str:
    """What type checkers know of `RunConfig`: the settings of each benchmark that has some."""
    rooms = {name: room for name, room in BENCHMARKS.items() if find_spec(f"{room}.settings")}
    lines = [
        f"from {room}.settings import Settings as {name.title().replace('_', '')}Settings"
        for name, room in sorted(rooms.items(), key=lambda pair: pair[1])
    ]
    bases = [line.rpartition(" ")[2] for line in lines]
    return STUB_FORM.format(imports="\n".join(lines), bases=",\n    ".join(bases))


if __name__ == "__main__":
    for path, content in made().items():
        path.write_text(content, encoding="utf-8")
