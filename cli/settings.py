"""The settings of a command: read from flags, the environment, and the user's own files."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.emulator import MODEL_IDS
from socratic_bench.errors import BenchError, Problem, UsageError
from socratic_bench.models.bedrock.session import profile_problem, profile_region
from socratic_bench.setting import Setting
from socratic_bench.settings import (
    OFFLINE_REGION,
    Sources,
    flag_names,
    read_bounded,
    read_config,
    table,
)
from socratic_bench.settings.table import Entry, listed

from .arguments import Flags, Parser
from .flags import VARIABLES, Row
from .output import read_stdin

_VARIABLE = re.compile(
    r"""\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*"""
    r"""(?:(?P<quote>['"])(?P<quoted>.*)(?P=quote)|(?P<plain>[^'"#\s][^#]*?)?)\s*(?:#.*)?"""
)
SDK_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class Options(Struct, frozen=True, kw_only=True):
    """The command's own flags."""

    dry_run: Annotated[
        bool,
        Setting("service", None, "estimate tokens, cost and time; call no model"),
    ] = False
    config: Annotated[
        str | None,
        Setting(
            "service",
            "FILE",
            "TOML config file (write one: socratic-runner init)",
            "read settings from a TOML file; flags and variables override it",
        ),
    ] = None
    env_file: Annotated[
        str | None,
        Setting(
            "service",
            "FILE",
            "environment variables as lines NAME=VALUE; those already set win",
        ),
    ] = None
    profile: Annotated[
        str | None,
        Setting("service", "NAME", "AWS profile of the credentials", variables=("AWS_PROFILE",)),
    ] = None
    endpoint_url: Annotated[
        str | None,
        Setting(
            "service",
            "URL",
            "URL of Bedrock Runtime, such as a VPC endpoint",
            variables=("AWS_ENDPOINT_URL_BEDROCK_RUNTIME",),
        ),
    ] = None
    resume_from: Annotated[
        str | None,
        Setting(
            "output", "FILE", "continue from the JSON document of an interrupted run; - is stdin"
        ),
    ] = None
    json: Annotated[
        bool, Setting("output", None, "print the JSON document, also at a terminal")
    ] = False
    pretty: Annotated[bool, Setting("output", None, "print the JSON document indented")] = False
    brief: Annotated[bool, Setting("output", None, "print a short JSON document")] = False
    junit: Annotated[
        str | None,
        Setting(
            "pipelines and traces", "FILE", "write a JUnit file with a test case per run and gate"
        ),
    ] = None
    github_summary: Annotated[
        bool,
        Setting(
            "pipelines and traces",
            None,
            "write a step summary and annotations of GitHub Actions",
        ),
    ] = False
    otel: Annotated[
        bool,
        Setting("pipelines and traces", None, "send traces by OTLP (OTEL_EXPORTER_OTLP_ENDPOINT)"),
    ] = False
    otel_content: Annotated[
        bool,
        Setting("pipelines and traces", None, "include messages and judges' reasons in traces"),
    ] = False
    trace: Annotated[
        str | None,
        Setting("pipelines and traces", "FILE", "write traces to a file, as OTLP JSON lines"),
    ] = None
    enable_galileo: Annotated[
        bool,
        Setting("pipelines and traces", None, "send traces with content to Galileo"),
    ] = False
    galileo_project: Annotated[
        str | None,
        Setting("pipelines and traces", "NAME", "project in Galileo (GALILEO_PROJECT)"),
    ] = None
    galileo_log_stream: Annotated[
        str | None,
        Setting("pipelines and traces", "NAME", "log stream in Galileo (GALILEO_LOG_STREAM)"),
    ] = None
    quiet: Annotated[bool, Setting("output", None, "no progress on stderr", short="q")] = False
    debug: Annotated[bool, Setting("output", None, "print tracebacks on stderr")] = False


def read(flags: Flags) -> tuple[RunConfig, tuple[Problem, ...]]:
    """The configuration of a run, and every setting that cannot be read."""
    return read_config(RunConfig, sources(flags))


def read_untested(flags: Flags) -> tuple[RunConfig, Sequence[Problem]]:
    """The configuration of a command that tests no model, and so needs no list of models."""
    run_sources = sources({**flags, "model": "none"})
    environ = {**run_sources.environ, "BEDROCK_MODEL_IDS": '["none"]'}
    return read_config(RunConfig, replace(run_sources, environ=environ))


def sources(flags: Flags) -> Sources:
    """Where settings come from: flags, the environment, and the user's own files.

    Raises `UsageError` for a file of variables that cannot be read.
    """
    export_variables(flags)
    return Sources(
        flags=flags,
        environ=os.environ,
        read_stdin=partial(_read_stdin, quiet=bool(flags.get("quiet"))),
        profile_region=profile_region,
        profile_problem=profile_problem,
        offline_models=lambda: MODEL_IDS,
    )


def _export_env_file(path: str) -> None:
    """Set the variables of a file, but for those that are set; a value may be in quotes.

    A line in an error is named by its number alone: it may hold a key.
    """
    try:
        lines = read_bounded(path).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        text = "{env_file} {path} cannot be read: {why}."
        raise UsageError([Problem.of(text, path=path, why=why)]) from error
    variables = {n: _VARIABLE.fullmatch(line) for n, line in enumerate(lines, start=1)}
    wrong = [n for n, line in variables.items() if line is None and not _is_blank(lines[n - 1])]
    if wrong:
        text = "{env_file} {path}: line {numbers} is not NAME=VALUE."
        numbers = ", ".join(map(str, wrong))
        raise UsageError([Problem.of(text, path=path, numbers=numbers)])
    for line in filter(None, variables.values()):
        os.environ.setdefault(line["name"], line["quoted"] or line["plain"] or "")


def _is_blank(line: str) -> bool:
    return not line.partition("#")[0].strip()


def export_variables(flags: Flags) -> None:
    """Set the variables of a file (`--env-file`), and those by which the SDK knows the profile and
    the endpoint of these flags. Raises `UsageError`.
    """
    if isinstance(path := flags.get("env-file"), str):
        _export_env_file(path)
    profile, url = flags.get("profile"), flags.get("endpoint-url")
    if isinstance(profile, str):
        os.environ["AWS_PROFILE"] = profile
        for name in SDK_KEYS:  # the SDK would prefer these to a profile
            os.environ.pop(name, None)
    if isinstance(url, str):
        os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = url


def bucket_region() -> str:
    """The region of the buckets that runs are read from: that of a run without flags."""
    config, _ = read({})
    return config.region or OFFLINE_REGION


def call_by_flags() -> Callable[[str], str]:
    """A function that turns a setting's name into its flag, for messages."""
    return flag_names((RunConfig, Options))


@contextmanager
def calling_flags(parser: Parser) -> Iterator[None]:
    """Make errors in the block name flags instead of settings.

    A setting of a run that the command has no flag for, such as the region, keeps its name.
    """
    try:
        yield
    except BenchError as error:
        error.call_settings(partial(_flag_or_name, parser))
        raise


def table_rows() -> Iterator[Row]:
    """The rows of flags.tsv, made from the table of settings."""
    entries = _entries()
    for entry in entries:
        if entry.flag:
            flag = f"-{entry.short} --{entry.flag}" if entry.short else f"--{entry.flag}"
            is_in_heading = entry.group in entry.owners
            owners = "" if is_in_heading or not entry.owners else f" [{', '.join(entry.owners)}]"
            yield entry.group, flag, entry.form, entry.metavar or "", entry.text + owners
    for entry in entries:
        for variable in entry.variables:
            flag = f"--{entry.flag}" if entry.flag else ""
            yield VARIABLES, variable, "", flag, "" if entry.flag else entry.meaning


@cache
def offered_words() -> Mapping[str, Sequence[str]]:
    """Words that completion offers, by flag."""
    return {f"--{entry.flag}": entry.offers() for entry in _entries() if entry.flag}


def _entries() -> Sequence[Entry]:
    return listed((RunConfig, Options))


def _flag_or_name(parser: Parser, name: str) -> str:
    flag, setting = call_by_flags()(name), table(RunConfig).get(name)
    return name if setting and setting.flag and flag not in parser.flags else flag


def _read_stdin(bound: int, *, quiet: bool) -> bytes:
    return read_stdin(bound, "The student's first message", quiet=quiet)
