"""`socratic-runner schema KIND`: the JSON Schema of a document."""

from collections.abc import Sequence

from .arguments import Parser, parse_strictly
from .stdout import EXIT_UNWRITTEN


def main(words: Sequence[str]) -> int:
    """Print the schema of one kind of document."""
    from socratic_bench.documents.schemas import load_schema

    from .output import print_document

    found = parse_strictly(build_parser(), words)
    return 0 if print_document(load_schema(found.kind)) else EXIT_UNWRITTEN


def build_parser() -> Parser:
    from socratic_bench.documents.schemas import KINDS

    parser = Parser(
        prog="socratic-runner schema",
        description="Prints the JSON Schema (2020-12) of a kind of document.",
    )
    parser.add_argument("kind", choices=KINDS, help="the document's kind")
    parser.add_argument("--debug", action="store_true", help="tracebacks on stderr")
    return parser
