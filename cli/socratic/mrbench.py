"""`socratic-runner mrbench FILE --file labels.jsonl`: MRBench's annotations as labels."""

from collections import Counter
from collections.abc import Sequence

from ..arguments import Parser, parse_strictly
from ..stored_runs import NO_CSV, add_output

LABELLER = "mrbench"


def main(words: Sequence[str]) -> int:
    """Read, write the labels, print what there is of each."""
    from pathlib import Path

    import msgspec

    from socratic_bench.benchmarks.socratic.mrbench import Converted, labels_of
    from socratic_bench.errors import UsageError

    from ..output import print_document

    parser = build_parser()
    found = parse_strictly(parser, words)
    problems = [] if found.files else ["Which annotations: name a file of MRBench or BEA 2025."]
    if not found.file:
        problems.append("Where the labels are to stand: give --file FILE.")
    elif found.file.lower().endswith(".csv"):
        problems.append(NO_CSV)
    parser.refuse(problems)
    labels = labels_of(found.files, found.labeller)
    body = b"".join(msgspec.json.encode(one) + b"\n" for one in labels)
    try:
        Path(found.file).write_bytes(body)
    except OSError as error:
        raise UsageError([f"{found.file} cannot be written: {error.strerror}."]) from error
    counts = Counter(name for one in labels for name in one.scores)
    document = Converted(
        file=found.file,
        n=len(labels),
        n_dialogues=len({one.dialogue for one in labels}),
        authors=sorted({one.author or "" for one in labels}),
        scores=dict(sorted(counts.items())),
    )
    return print_document(document, pretty=found.pretty)


def build_parser() -> Parser:
    parser = Parser(
        prog="socratic-runner mrbench",
        description="Turns the published annotations of MRBench, or those of the BEA 2025 shared "
        "task, into labels for socratic-runner calibrate --rubric mrbench-8. None are part of the "
        "program.",
    )
    parser.add_argument("files", metavar="JSON", nargs="*", help="a file of annotations")
    parser.add_argument("--file", metavar="FILE", help="where to write the labels, JSON Lines")
    parser.add_argument(
        "--labeller", metavar="NAME", default=LABELLER, help="whose they are (default mrbench)"
    )
    add_output(parser, None)
    return parser
