"""`socratic-runner run`: one dialogue, one document."""

import os
import signal
import sys
import time
from collections.abc import Sequence

from cli import signals
from cli.arguments import Flags, Help, Parser, add_switch, add_word, add_words, parse
from cli.commands import COMMANDS
from cli.stdout import EXIT_UNWRITTEN

TYPE_CHECKING = False  # see cli/process.py
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import Any

    from cli.waiting import Waiting
    from socratic_bench.config import RunConfig, Sources
    from socratic_bench.documents import RunResult
    from socratic_bench.errors import BenchError
    from socratic_bench.ports import Entry
    from socratic_bench.runner import Halt, Plan

DESCRIPTION = """\
Plays a dialogue between the model under test (the tutor) and a simulated student, has a judge model
score every tutor turn, and prints one JSON document on stdout.

commands:
  run        (the default) one dialogue
  resume     go on with a run that was cut short
  scenarios  list the built-in scenarios
  schema     print the JSON Schema of a document
  emulator   serve the embedded Bedrock endpoint
"""
EPILOG = """\
variables: BEDROCK_MODEL_IDS (required: a JSON array of the ids that may be tested), AWS_REGION,
AWS_DEFAULT_REGION, BEDROCK_ASSUME_ROLE_ARN, RUNNER_DEFAULT_TURNS, RUNNER_JUDGE_MODEL,
RUNNER_STUDENT_MODEL, RUNNER_S3_BUCKET, RUNNER_S3_PREFIX, RUNNER_S3_KMS_KEY_ID,
RUNNER_OUTPUT_DIR. A flag beats its
variable.

exit codes: 0 complete, 1 defect, 2 usage, 3 credentials or access, 4 service or store unavailable,
5 a gate or the judge coverage failed, 6 deadline or budget, 129 SIGHUP, 130 SIGINT, 143 SIGTERM.
"""


def build_parser() -> Parser:
    """Every flag of the contract; values are read and checked later, all together."""
    parser = Parser(
        prog="socratic-runner",
        usage="socratic-runner [run] --model ID --prompt TEXT [--turns N] [options]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.commands = tuple(COMMANDS)
    _add_dialogue(parser)
    _add_settings(parser)
    _add_judging(parser)
    _add_service(parser)
    _add_output(parser)
    return parser


def _add_dialogue(parser: Parser) -> None:
    group = parser.add_argument_group("dialogue")
    add_word(group, "--model", "ID", "model under test: id, inference-profile id or ARN")
    add_word(group, "--prompt", "TEXT", "the student's opening; - reads standard input")
    add_word(group, "--scenario", "NAME", "a built-in scenario; its first opening without --prompt")
    add_word(group, "--scenario-file", "FILE", "a scenario of your own (docs/scenarios.md)")
    add_word(group, "--turns", "N", "turns to play at most, 1 to 500 (default 40)")
    add_word(group, "--student", "MODE", "scripted (default) or model")
    add_word(group, "--student-model", "ID", "the model that plays the student")
    add_word(
        group, "--pressure", "LEVEL", "none (default), low or high: how often it wants answers"
    )
    add_word(group, "--transcript", "FILE", "replay a recorded dialogue, then hand over")
    add_word(group, "--transcript-turns", "N", "replay only its first N turns (default: all)")
    add_word(group, "--seed", "N", "fixes everything left to chance; drawn and printed otherwise")
    add_word(group, "--system-prompt-file", "FILE", "the tutor's system prompt")
    add_word(group, "--temperature", "T", "the tutor's, 0 to 1 (default: the model's own)")
    add_word(group, "--top-p", "P", "the tutor's, 0 to 1 (default: the model's own)")
    add_word(group, "--max-tokens", "N", "bound of one reply, thinking included (default 1024)")


def _add_settings(parser: Parser) -> None:
    group = parser.add_argument_group("settings of the model under test")
    add_word(group, "--service-tier", "TIER", "default, priority or flex")
    add_word(group, "--latency-profile", "NAME", "standard or optimized")
    add_switch(group, "--enable-thinking", "have it think before it replies")
    add_word(group, "--thinking-budget-tokens", "N", "at most so much (default 1024, the least)")
    add_word(group, "--guardrail", "ID:VERSION", "a guardrail on its calls")
    add_words(group, "--request-metadata", "K=V", "for every role's calls; repeatable, up to 16")
    add_switch(group, "--no-stream", "have whole replies sent; there is no time to first token")
    add_switch(group, "--no-prompt-cache", "send no cache points, for any role")


def _add_judging(parser: Parser) -> None:
    group = parser.add_argument_group("judging")
    add_word(group, "--judge-model", "ID", "the model that scores each turn")
    add_switch(group, "--no-judge", "leave judging out; scores are null")
    add_word(group, "--compliance-threshold", "S", "score of a compliant turn (default 3.0)")
    add_word(group, "--half-life-threshold", "S", "score under which a turn lapses (default 8.0)")
    add_words(group, "--fail-under", "METRIC=VALUE", "exit 5 if a metric is lower; repeatable")
    add_word(
        group, "--min-judge-coverage", "SHARE", "exit 5 if fewer turns are judged (default 0.9)"
    )


def _add_service(parser: Parser) -> None:
    group = parser.add_argument_group("service")
    add_word(group, "--region", "REGION", "AWS region")
    add_word(group, "--assume-role-arn", "ARN", "role taken for Bedrock calls only")
    add_word(group, "--max-attempts", "N", "requests that one call may take (default 10)")
    add_word(group, "--call-timeout", "S", "seconds that one request may take (default 300)")
    add_word(group, "--deadline", "S", "seconds that the run may take (default: no bound)")
    add_word(group, "--max-cost-usd", "USD", "start no call that could cost more than this in all")
    add_word(group, "--prices", "FILE", "prices of your own (docs/cost.md)")
    add_switch(group, "--dry-run", "print what the run would take, and call no model")
    add_switch(group, "--offline", "play on the embedded endpoint, with no account")


def _add_output(parser: Parser) -> None:
    group = parser.add_argument_group("output")
    add_word(group, "--output-dir", "DIR", "keep the artifacts in a folder")
    add_word(group, "--s3-bucket", "NAME", "keep the artifacts in a bucket")
    add_word(group, "--s3-prefix", "PREFIX", "before every key in the bucket")
    add_word(group, "--s3-kms-key-id", "KEY", "encrypt objects with this KMS key")
    add_switch(group, "--resume", "go on with the newest run of this command line, if there is one")
    add_word(
        group, "--resume-from", "FILE", "go on with a partial document; - reads standard input"
    )
    add_switch(group, "--pretty", "indent the document")
    add_switch(group, "--brief", "print the short form of the document")
    add_switch(group, "--quiet", "no progress on stderr")
    add_switch(group, "--debug", "tracebacks on stderr")
    group.add_argument("--version", action="version", version=_version(), help="print the version")


def _version() -> str:
    from socratic_bench.version import VERSION

    return f"socratic-runner {VERSION}"


def main(words: Sequence[str]) -> int:
    """Parse, play, print, and answer with the exit code."""
    flags, problems = parse(build_parser(), words)
    return play(flags, problems)


def play(flags: Flags, problems: Sequence[str], run_id: str | None = None) -> int:
    """The run that the flags ask for; with a `run_id`, one that began earlier."""
    from socratic_bench.config import read_config
    from socratic_bench.errors import BenchError
    from socratic_bench.runner import Halt

    config, misread = read_config(_sources(flags))
    halt = Halt()
    _take_signals(halt)
    try:
        plan, entries = _planned(flags, config, [*problems, *misread], run_id, halt)
        if flags.get("dry-run"):
            return _dry_run(plan, flags)
        result = _perform(plan, halt, entries, quiet=bool(flags.get("quiet")))
    except BenchError as error:
        from cli.output import print_failed_run

        pretty, brief = bool(flags.get("pretty")), bool(flags.get("brief"))
        print_failed_run(error, config, pretty=pretty, brief=brief)
        number = getattr(error, "signal_number", None)
        return _leave(128 + number if number else error.exit_code, halt)
    return _report(result, flags)


def _leave(code: int, halt: "Halt") -> int:
    """At once if the run was told to end: something may still be waited for in another thread."""
    if halt.error is not None:
        from cli.process import leave_now

        leave_now(code)
    return code


def _planned(
    flags: Flags, config: "RunConfig", problems: Sequence[str], run_id: str | None, halt: "Halt"
) -> "tuple[Plan, Sequence[Entry]]":
    from socratic_bench.runner import prepare

    if run_id is None and "resume-from" not in flags:
        return prepare(config, problems), ()
    from msgspec.structs import replace

    from cli.resume import find_earlier
    from socratic_bench.config import continued, read_config

    # What is missing elsewhere may be told by the run's beginning.
    missing = [problem for problem in problems if "BEDROCK_MODEL_IDS is not set" in problem]
    rest = [problem for problem in problems if problem not in missing]
    earlier = find_earlier(flags, config, rest, run_id, halt)
    if earlier and earlier.config.offline and not config.offline:
        config, misread = read_config(_sources({**flags, "offline": True}))
        problems = [*rest, *misread]
    if earlier:
        config = continued(earlier.config, config, flags)
        config = replace(config, resume_run_id=earlier.run_id)
    return prepare(config, problems), earlier.entries if earlier else ()


def _dry_run(plan: "Plan", flags: Flags) -> int:
    from cli.estimate import say_estimate
    from cli.output import print_document, say_error
    from socratic_bench.forecast import dry_run

    document = dry_run(plan, os.environ)
    if not flags.get("quiet"):
        say_estimate(document)
    refusal = _refusal(document)
    if refusal:
        say_error(refusal)
    printed = print_document(document, pretty=bool(flags.get("pretty")))
    code = refusal.exit_code if refusal else 0
    return code if printed else code or EXIT_UNWRITTEN


def _refusal(document: "Mapping[str, Any]") -> "BenchError | None":
    """What the run is known to be refused, so that it would fail."""
    told = document["error"]
    if told is None:
        return None
    from socratic_bench.errors import ModelError

    end_reason = document["end_reason"]
    return ModelError(told["message"], code=told["code"], end_reason=end_reason, hint=told["hint"])


def _report(result: "RunResult", flags: Flags) -> int:
    from cli.output import print_document, print_traceback, say_error
    from cli.process import leave_now
    from socratic_bench.errors import BenchError

    if result.error is not None and flags.get("debug"):
        print_traceback(result.error)
    if result.error is not None:
        say_error(_in_short(result.error) if flags.get("brief") else result.error)
    elif result.shortfalls:
        say_error(BenchError(" ".join(result.shortfalls)))
    document = result.brief if flags.get("brief") else result.document
    printed = print_document(
        document, pretty=bool(flags.get("pretty")), hint=_how_to_print_again(result)
    )
    # Taking the interpreter apart would be the last thing to wait for.
    leave_now(result.exit_code if printed else result.exit_code or EXIT_UNWRITTEN)


def _how_to_print_again(result: "RunResult") -> str:
    from socratic_bench.runner.closing import stored_words

    if result.folder or result.s3:
        return f"Its artifacts are whole; print it: {stored_words(result.config, result.run_id)}"
    return "Nothing else keeps this run: give --output-dir next time."


def _in_short(error: "BenchError") -> "BenchError":
    """The error of a document that will lack what others could be gone on with."""
    from socratic_bench.runner.closing import FROM_DOCUMENT

    if error.hint:
        error.hint = error.hint.replace(
            FROM_DOCUMENT,
            "The short form leaves out what the run could be gone on with: "
            "give --output-dir, or no --brief.",
        )
    return error


def _sources(flags: Flags) -> "Sources":
    from socratic_bench.config import Sources

    return Sources(
        flags=flags,
        environ=os.environ,
        read_stdin=_read_stdin,
        profile_region=_profile_region,
        profile_problem=_profile_problem,
        offline_models=_offline_models,
    )


def _read_stdin(bound: int) -> bytes:
    return sys.stdin.buffer.read(bound) if sys.stdin else b""


def _profile_region() -> str | None:
    from socratic_bench.bedrock.session import profile_region

    return profile_region()


def _profile_problem() -> str | None:
    from socratic_bench.bedrock.session import profile_problem

    return profile_problem()


def _offline_models() -> tuple[str, ...]:
    from socratic_bench.emulator import MODEL_IDS

    return MODEL_IDS


def _perform(plan: "Plan", halt: "Halt", entries: "Sequence[Entry]", *, quiet: bool) -> "RunResult":
    """Play beside the main thread, which stays free to take signals."""
    from cli.beside import beside
    from cli.waiting import import_beside
    from socratic_bench.runner import perform

    listener = _listener(plan.config, quiet=quiet)

    def play() -> "RunResult":
        try:
            return perform(plan, listener=listener, halt=halt, entries=entries)
        finally:
            listener.called.set()

    return beside(play, lambda thread: import_beside(thread, listener.called))


def _listener(config: "RunConfig", *, quiet: bool) -> "Waiting":
    if quiet:
        from cli.waiting import Waiting

        return Waiting()
    from cli.progress import progress

    return progress(config)


def _take_signals(halt: "Halt") -> None:
    """The first signal ends the run, which is then reported; a second one ends the process.

    The handlers stay to the end: what comes while the document is written changes nothing in it.
    """
    first_s: list[float] = []

    def take(number: int, _frame: "FrameType | None") -> None:
        now_s = time.monotonic()
        if not first_s:
            first_s.append(now_s)
            halt.interrupt(number)
        elif number != signal.SIGHUP or now_s - first_s[0] > signals.HANGUP_S:
            os._exit(128 + number)

    for number in signals.taken():
        signal.signal(number, take)
