"""`socratic-runner scenarios`: lists the scenarios, or checks them."""

from argparse import Namespace
from collections.abc import Sequence

from socratic_bench.benchmarks.socratic.scenarios.dataset import write_dataset
from socratic_bench.benchmarks.socratic.scenarios.listing import (
    Checked,
    ScenarioCheck,
    ScenarioList,
    ScenarioRow,
    check_files,
)
from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.scenarios.scenario import CUSTOM
from socratic_bench.errors import ENDINGS, UsageError, shorten
from socratic_bench.types import plural

from .arguments import Parser, parse_strictly
from .flags import add_output
from .output import plain, print_document, say


def main(words: Sequence[str]) -> int:
    """List the built-in scenarios, or check them and files of the user's own."""
    flags = parse_strictly(build_parser(), words)
    if flags.check:
        return _check(flags)
    if flags.export:
        return _export(flags)
    if flags.files:
        raise UsageError(
            ["Files need --check."], hint="Run socratic-runner scenarios --check FILE."
        )
    return _list(flags)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner scenarios",
        usage="%(prog)s [FILE ...] [options]",
        description="Lists the built-in scenarios. With --check, checks them and any FILE."
        "\n\nexample:\n  socratic-runner scenarios --check mine.toml",
        epilog="exit codes: 0 ok, 2 a scenario has problems",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="scenario file to check")
    parser.add_argument("--check", action="store_true", help="check instead of list")
    parser.add_argument(
        "--export", metavar="DIR", help="write them as a Hugging Face data set with its card"
    )
    add_output(parser)
    return parser


def _export(flags: Namespace) -> int:
    written = write_dataset(flags.export)
    scenarios = [load_builtin(name) for name in builtin_ids() if name != CUSTOM]
    document = ScenarioList(scenarios=[ScenarioRow.of(scenario) for scenario in scenarios])
    words = (
        f"{plural(len(scenarios), 'scenario')}, {plural(len(written), 'file')} in {flags.export}"
    )
    return print_document(document, words=lambda: say(plain(words)), flags=vars(flags))


def _list(flags: Namespace) -> int:
    scenarios = [load_builtin(name) for name in builtin_ids()]

    def say_scenarios() -> None:
        for scenario in scenarios:
            say(f"{scenario.id:28s} {scenario.family:18s} {plain(scenario.title)}")

    document = ScenarioList(scenarios=[ScenarioRow.of(scenario) for scenario in scenarios])
    return print_document(document, words=say_scenarios, flags=vars(flags))


def _check(flags: Namespace) -> int:
    """Check all scenarios; the exit code is 2 if there is anything to mend."""
    checked, together = check_files(flags.files)
    document = ScenarioCheck.of(checked, together)

    def say_report() -> None:
        for result in checked:
            _say_result(result)
        _say_lines(together)
        for name, counts in (("families", document.families), ("ages", document.ages)):
            say(f"{name}: {', '.join(f'{word} {count}' for word, count in counts.items())}")
        say(f"{plural(len(checked), 'scenario')}, {plural(document.n_problems, 'problem')}")

    unwritten = print_document(document, words=say_report, flags=vars(flags))
    return unwritten or (0 if document.ok else ENDINGS["usage"].exit_code)


def _say_result(result: Checked) -> None:
    scenario = result.scenario
    name = scenario.id if scenario else plain(result.file or "")
    verdict = "ok" if not result.problems else f"{len(result.problems)} to fix"
    say(f"{name:28s} {scenario.family if scenario else '-':18s} {verdict}")
    _say_lines(result.lines)


def _say_lines(lines: Sequence[str]) -> None:
    for line in shorten(lines):
        say(f"  - {plain(line)}")
