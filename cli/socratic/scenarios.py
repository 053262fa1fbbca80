"""`socratic-runner scenarios`: lists the scenarios, or checks them."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..arguments import Parser, parse_strictly
from ..flags import add_switches

if TYPE_CHECKING:
    from socratic_bench.benchmarks.socratic.scenarios.listing import Checked, Report


def main(words: Sequence[str]) -> int:
    """List the built-in scenarios, or check them and files of one's own."""
    from socratic_bench.errors import UsageError

    found = parse_strictly(build_parser(), words)
    if found.check:
        return _check(found.files, quiet=found.quiet)
    if found.files:
        raise UsageError(
            ["Files are given without --check."],
            hint="socratic-runner scenarios --check FILE checks them.",
        )
    return _list(quiet=found.quiet)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner scenarios",
        description="Lists the built-in scenarios: a table on stderr, a JSON document on stdout. "
        "With --check, looks them over, and files of your own along with them.",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="a scenario of your own")
    parser.add_argument("--check", action="store_true", help="check instead of list; exit 0 or 2")
    add_switches(parser, "quiet", "debug")
    return parser


def _list(*, quiet: bool) -> int:
    from socratic_bench.benchmarks.socratic.scenarios.listing import ScenarioList, ScenarioRow
    from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin

    from ..output import plain, print_document, say

    scenarios = [load_builtin(name) for name in builtin_ids()]

    def words() -> None:
        for scenario in scenarios:
            say(f"{scenario.id:28s} {scenario.family:18s} {plain(scenario.title)}")

    document = ScenarioList(scenarios=[ScenarioRow.of(scenario) for scenario in scenarios])
    return print_document(document, words=words, quiet=quiet)


def _check(files: Sequence[str], *, quiet: bool) -> int:
    """Exit code 2 if there is anything to mend."""
    from socratic_bench.benchmarks.socratic.scenarios.listing import ScenarioCheck, check_files
    from socratic_bench.errors import ENDINGS

    from ..output import print_document

    report = check_files(files)
    words = partial(_say_report, report)
    unwritten = print_document(ScenarioCheck.of(report), words=words, quiet=quiet)
    return unwritten or (ENDINGS["usage"].exit_code if report.n_problems else 0)


def _say_report(report: "Report") -> None:
    from socratic_bench.types import plural

    from ..output import say

    for one in report.checked:
        _say_checked(one)
    _say_lines(report.problems)
    for name, counts in (("families", report.families), ("ages", report.ages)):
        say(f"{name}: {', '.join(f'{word} {count}' for word, count in counts.items())}")
    say(f"{plural(len(report.checked), 'scenario')}, {plural(report.n_problems, 'problem')}")


def _say_checked(one: "Checked") -> None:
    from ..output import plain, say

    name = one.scenario.id if one.scenario else plain(one.file or "")
    family = one.scenario.family if one.scenario else "-"
    word = "ok" if not one.problems else f"{len(one.problems)} to mend"
    say(f"{name:28s} {family:18s} {word}")
    _say_lines(one.lines)


def _say_lines(lines: Sequence[str]) -> None:
    from socratic_bench.errors import shorten

    from ..output import plain, say

    for line in shorten(lines):
        say(f"  - {plain(line)}")
