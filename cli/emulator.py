"""`socratic-runner emulator`: the embedded Bedrock endpoint, served alone."""

import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from errno import EACCES, EADDRINUSE

from socratic_bench.documents.doctor import EmulatorDocument
from socratic_bench.emulator import MODEL_IDS, Fault, Settings, parse_fault, serve
from socratic_bench.emulator.faults import KINDS
from socratic_bench.errors import UsageError
from socratic_bench.settings.reader import parse_number

from .arguments import Parser, parse_strictly
from .flags import add_switches
from .output import print_document, say

MAX_PORT = 65535
MAX_DIGITS = 9
HINT = "socratic-runner emulator --help lists the flags and the faults."


def main(words: Sequence[str]) -> int:
    """Serve until SIGHUP, SIGINT or SIGTERM; the one document says where."""
    flags = parse_strictly(build_parser(), words)
    settings = Settings(
        seed=flags.seed,
        latency_ms=flags.latency_ms,
        ms_per_output_token=flags.ms_per_output_token,
        requests_per_minute=flags.requests_per_minute,
        faults=_parse_faults(flags.fault),
        any_model=flags.any_model,
        context_window_tokens=flags.context_window_tokens,
        allowed_hosts=tuple(flags.allowed_host),
        read_timeout_s=flags.read_timeout,
        max_connections=flags.max_connections,
    )
    try:
        serve(settings, host=flags.host, port=flags.port, ready=_print_url)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a host name"
        is_port = getattr(error, "errno", None) in {EACCES, EADDRINUSE}
        choice = "--port, or 0 for a free one" if is_port else "--host, such as 127.0.0.1"
        raise UsageError(
            [f"Cannot listen on {flags.host}:{flags.port}: {reason}."],
            hint=f"Choose another {choice}.",
        ) from error
    return 0


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner emulator",
        description="Serves a mock of Bedrock with simulated models until it is stopped.\n\n"
        "example:\n  socratic-runner emulator --port 8080 --fault throttled:count=3",
        epilog="A fault is KIND[:FIELD=VALUE]... Fields: role (tutor, student or judge), count "
        "(times it happens), after (calls before the first), p (probability), model (part of the "
        "id), ms (delay), op (Converse or ConverseStream).\n"
        f"Kinds: {', '.join(KINDS)}.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    add_port(parser)
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed of faults with a probability"
    )
    parser.add_argument(
        "--latency-ms", type=_milliseconds, default=0.0, metavar="MS", help="delay of each answer"
    )
    parser.add_argument(
        "--ms-per-output-token",
        type=_milliseconds,
        default=0.0,
        metavar="MS",
        help="delay of each token in a stream",
    )
    parser.add_argument(
        "--requests-per-minute", type=_rate, metavar="N", help="throttle each model above this rate"
    )
    parser.add_argument(
        "--fault",
        nargs="+",
        action="extend",
        default=[],
        metavar="SPEC",
        help="simulate a fault (see below)",
    )
    parser.add_argument("--any-model", action="store_true", help="accept unknown model ids")
    parser.add_argument(
        "--context-window-tokens",
        type=_count,
        metavar="N",
        help="refuse requests with more tokens (default: each model's own limit)",
    )
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        type=_host,
        metavar="NAME[:PORT]",
        help="additional host name that clients may use (localhost is allowed)",
    )
    parser.add_argument(
        "--read-timeout",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="timeout of receiving a request and sending an answer (default 30)",
    )
    parser.add_argument(
        "--max-connections",
        type=_count,
        default=2000,
        metavar="N",
        help="parallel connections (default 2000)",
    )
    add_switches(parser, "debug")
    return parser


def _print_url(url: str) -> None:
    say(f"Serving on {url}; end with Ctrl-C. Use it with any AWS keys and")
    say(f"  export AWS_ENDPOINT_URL_BEDROCK_RUNTIME={url}")
    document = EmulatorDocument(endpoint_url=url, model_ids=list(MODEL_IDS))
    if unwritten := print_document(document, is_always_printed=True):
        sys.exit(unwritten)


def _parse_faults(specs: Sequence[str]) -> tuple[Fault, ...]:
    faults, problems = [], []
    for spec in specs:
        try:
            faults.append(parse_fault(spec))
        except ValueError as error:
            problems.append(f"--fault {spec}: {error}")
    if problems:
        raise UsageError(problems, hint=HINT)
    return tuple(faults)


def add_port(parser: Parser) -> None:
    """Add the port of what a command serves."""
    parser.add_argument("--port", type=_port, default=0, help="port (default: a free one)")


def _port(word: str) -> int:
    if not (word.isascii() and word.isdigit() and int(word) <= MAX_PORT):
        raise ArgumentTypeError(f"{word!r} is not a port number: it takes 0 to {MAX_PORT}")
    return int(word)


def _number(kind: str, takes: str, is_valid: Callable[[float], bool]) -> Callable[[str], float]:
    def parse(word: str) -> float:
        number = parse_number(word)
        if number is None or not is_valid(number):
            raise ArgumentTypeError(f"{word!r} is no {kind}: it takes {takes}")
        return number

    return parse


_milliseconds = _number("time", "milliseconds, 0 or more", lambda number: number >= 0)
_seconds = _number("time", "seconds, over 0", lambda number: number > 0)
_rate = _number("rate", "a number over 0", lambda number: number > 0)


def _count(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= MAX_DIGITS and int(word)):
        raise ArgumentTypeError(f"{word!r} is not a count: it takes a whole number from 1 on")
    return int(word)


def _host(word: str) -> str:
    if not re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d{1,5})?", word, re.ASCII):
        raise ArgumentTypeError(
            f"{word!r} is not a host: it takes NAME or NAME:PORT, without a path"
        )
    return word
