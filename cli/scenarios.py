"""`socratic-runner scenarios`: what there is to talk about."""

from collections.abc import Sequence

from cli.arguments import Parser


def main(words: Sequence[str]) -> int:
    """List the built-in scenarios: a table for people, a document for programs."""
    from cli.output import plain, print_document, say
    from socratic_bench.benchmarks.socratic.scenarios import builtin_ids, load_builtin
    from socratic_bench.documents.run import SCHEMA_VERSION

    parser = Parser(
        prog="socratic-runner scenarios",
        description="Lists the built-in scenarios: a table on stderr, a JSON document on stdout.",
    )
    parser.add_argument("--quiet", action="store_true", help="no table on stderr")
    parser.add_argument("--debug", action="store_true", help="tracebacks on stderr")
    quiet = parser.parse_args(words).quiet
    scenarios = [load_builtin(name) for name in builtin_ids()]
    if not quiet:
        for scenario in scenarios:
            say(f"{scenario.id:28s} {scenario.family:18s} {plain(scenario.title)}")
    printed = print_document(
        {
            "kind": "scenarios",
            "schema_version": SCHEMA_VERSION,
            "scenarios": [dict(scenario.summary()) for scenario in scenarios],
        }
    )
    return 0 if printed else 1
