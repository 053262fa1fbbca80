"""Plays here what a command line says: for facts that parser, streams and exit add nothing to."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any

import pytest
import vl_convert

from cli import doctor, report, resume, sweep, sweep_run
from cli.arguments import parse, parse_strictly
from cli.flags import build_parser
from cli.output import escaped
from cli.settings import call_by_flags, calling_flags
from cli.settings import read as read_flags
from cli.single_run import with_earlier_run
from cli.sweep_display import display_for
from socratic_bench import RunConfig
from socratic_bench.documents import encode
from socratic_bench.documents.document import ErrorDocument, ErrorEntry
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.documents.run import RunResult
from socratic_bench.emulator import MODEL_IDS
from socratic_bench.errors import BenchError
from socratic_bench.runs import CancelToken, perform, prepare, run
from socratic_bench.runs import dry_run as forecast
from socratic_bench.runs.context import utc_now
from socratic_bench.settings import Sources, fields_of, read_config
from socratic_bench.studies.sweep.sweep import perform_sweep
from tests.command import Outcome, environment

DRAW = vl_convert.vegalite_to_svg


def read(words: Sequence[str], env: Mapping[str, str], patch: pytest.MonkeyPatch) -> RunConfig:
    """What the words and variables ask for, in this process's environment from now on."""
    for name, value in env.items():
        patch.setenv(name, value)
    flags, misused = parse(build_parser(), words)
    sources = Sources(
        flags=flags,
        environ={**env, "BEDROCK_MODEL_IDS": json.dumps([flags["model"]])},
        read_stdin=str,
        profile_region=lambda: None,
        offline_models=lambda: MODEL_IDS,
    )
    config, misread = read_config(RunConfig, sources)
    assert [*misused, *misread] == []
    return config


@contextmanager
def _asked(words: Sequence[str], env: Mapping[str, str] | None) -> Iterator[RunConfig]:
    with pytest.MonkeyPatch.context() as patch:
        yield read(words, environment() if env is None else env, patch)


def played(*words: str, env: Mapping[str, str] | None = None) -> Outcome:
    """What the command would leave, but for words for people; it may go on with an earlier run."""
    if words[0] == "resume" or "--resume-from" in words:
        result = _gone_on(words, environment() if env is None else env)
    else:
        with _asked(words, env) as config:
            result = run(config)
    if result.error:
        result.error.call_settings(call_by_flags())
    document = escaped(encode(dict(result.document)))
    return Outcome(result.exit_code, document + b"\n", "")


def _gone_on(words: Sequence[str], env: Mapping[str, str]) -> RunResult:
    is_named = words[0] == "resume"
    parser = resume.build_parser() if is_named else build_parser()
    flags, misused = parse(parser, words[is_named:])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        config, misread = read_flags(flags)
        problems = [*misused, *misread]
        run_id = str(flags["run-id"]) if is_named else None
        config, found, entries = with_earlier_run(flags, config, problems, run_id, CancelToken())
        plan = prepare(config, found, flagged=fields_of(type(config), flags))
        return perform(plan, entries=entries)


def diagnosed(*words: str, env: Mapping[str, str] | None = None) -> Outcome:
    """What `doctor` would leave, but for words for people."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (environment() if env is None else env).items():
            patch.setenv(name, value)
        flags, misused = parse(doctor.parser_for(words), words)
        asked = doctor.read_targets(flags, misused, is_sweep=doctor.is_sweep(words))
        token = CancelToken()
        document = doctor.diagnose_targets(*asked, token)
    body = escaped(encode(plain_keys(document)))
    return Outcome(doctor.exit_code(document, token), body + b"\n", "")


def swept(
    *words: str,
    env: Mapping[str, str] | None = None,
    now: Callable[[], datetime] = utc_now,
    cancel_token: CancelToken | None = None,
) -> Outcome:
    """What `sweep` would leave, but for words for people."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (environment() if env is None else env).items():
            patch.setenv(name, value)
        try:
            asked = sweep_run.read_request(*parse(sweep.build_parser(), words))
            result = perform_sweep(
                asked,
                display=display_for(quiet=True),
                cancel_token=cancel_token or CancelToken(),
                now=now,
                call=sweep_run.flag_of,
            )
        except BenchError as error:
            error.call_settings(sweep_run.flag_of)
            return _failed(error)
        document, code = sweep_run.document_and_exit_code(result)
    return Outcome(code, escaped(encode(plain_keys(document))) + b"\n", "")


def reported(*words: str, env: Mapping[str, str] | None = None) -> Outcome:
    """What `report` would leave, but for words for people: what draws is begun once for all, and
    draws each chart once. Commands draw their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "vegalite_to_svg", _svg)
        for name, value in (environment() if env is None else env).items():
            patch.setenv(name, value)
        parser = report.build_parser()
        found = parse_strictly(parser, words)
        try:
            with calling_flags(parser):
                document = report.write(found, report.check(found, parser.prog))
        except BenchError as error:
            return _failed(error)
    return Outcome(0, escaped(encode(plain_keys(document))) + b"\n", "")


def _svg(spec: Any, **more: Any) -> str:
    return _drawn_once(json.dumps([spec, more]))


@lru_cache(maxsize=128)
def _drawn_once(asked: str) -> str:
    spec, more = json.loads(asked)
    drawn: str = DRAW(spec, **more)
    return drawn


def _failed(error: BenchError) -> Outcome:
    failure = ErrorDocument(end_reason=error.end_reason, error=ErrorEntry.of(error))
    return Outcome(error.exit_code, escaped(encode(plain_keys(failure))) + b"\n", "")


def predicted(*words: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The document of its dry run."""
    with _asked(words, env) as config:
        document: dict[str, Any] = forecast.dry_run(prepare(config), call_by_flags())
    return document
