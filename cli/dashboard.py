"""`socratic-runner dashboard`: a page over a store, served on this machine."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from socratic_bench.documents.doctor import DashboardDocument
from socratic_bench.errors import UsageError
from socratic_bench.studies.sweep.request import SweepRequest

from .arguments import Parser, parse_strictly
from .emulator import add_port
from .flags import add_switches
from .list import default_place
from .output import plain, print_document, say
from .process import SignalledError
from .settings import bucket_region
from .sweep_run import flag_of, read_request

DESCRIPTION = """\
Serves a web page for a folder or bucket: set up, queue and watch sweeps, compare
models, make reports, label turns. Sweeps run as separate commands and continue
when the dashboard is closed. Open the printed URL; it contains a token. Needs:
  pip install "socratic-runner[dashboard]"

examples:
  socratic-runner dashboard --store results
  socratic-runner dashboard --store s3://BUCKET/PREFIX --port 8500
"""
EPILOG = "exit codes: 0 ended (Ctrl-C), 2 usage, 4 storage cannot be read\n"
DEFAULT_STORE = "results"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
LEAST_TOKEN = 16
TOKEN_VARIABLE = "RUNNER_DASHBOARD_TOKEN"  # noqa: S105 -- a name
NO_EXTRA = 'The dashboard needs nicegui: pip install "socratic-runner[dashboard]".'


def main(words: Sequence[str]) -> int:
    """Serve until Ctrl-C or a signal."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    # The door of the extra `dashboard`.
    try:
        from socratic_bench.dashboard.server import Address, serve
        from socratic_bench.dashboard.workspace import Command, Workspace
    except ImportError as error:
        raise UsageError([f"{NO_EXTRA} ({error})"]) from error
    place = flags.store or default_place() or DEFAULT_STORE
    token = os.environ.get(TOKEN_VARIABLE) or None
    if flags.host not in LOOPBACK and not token:
        parser.refuse([f"--host {flags.host} needs a token of your own in {TOKEN_VARIABLE}."])
    if token and len(token) < LEAST_TOKEN:
        parser.refuse([f"{TOKEN_VARIABLE} must have at least {LEAST_TOKEN} characters."])
    package = __package__ or ""
    isolated = ("-I",) if sys.flags.isolated else ()
    if not isolated:  # commands find this package wherever they are started
        root = str(Path(__file__).resolve().parents[1])
        paths = (root, os.environ.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = Command(
        program=(sys.executable, *isolated, "-m", package),
        read_plan=_read_plan,
        call=flag_of,
        region=bucket_region,
    )
    workspace = Workspace(place, command)
    address = Address(host=flags.host, port=flags.port, token=token, hosts=flags.allowed_host)

    def print_url(url: str) -> None:
        say(f"Open {url}")
        say("End it with Ctrl-C; sweeps that it has started continue.")
        print_document(DashboardDocument(url=url, store=plain(workspace.place)))

    with suppress(SignalledError):
        serve(workspace, address, print_url)
    return 0


def build_parser() -> Parser:
    parser = Parser(prog="socratic-runner dashboard", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "--store",
        metavar="PLACE",
        help=f"folder or s3://BUCKET/PREFIX (default: that of list, else {DEFAULT_STORE})",
    )
    add_port(parser)
    parser.add_argument(
        "--host",
        default=LOOPBACK[0],
        help=f"address to listen on (default {LOOPBACK[0]}); others need {TOKEN_VARIABLE}",
    )
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="additional host name in URLs (localhost is allowed)",
    )
    add_switches(parser, "debug")
    return parser


def _read_plan(path: str) -> SweepRequest:
    """The sweep of a plan file. Raises `UsageError` with every mistake."""
    return read_request({"plan": path, "dry-run": True}, [])
