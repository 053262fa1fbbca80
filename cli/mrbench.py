"""`socratic-runner mrbench FILE --file labels.jsonl`: MRBench's annotations as labels."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from socratic_bench.benchmarks.socratic.mrbench import Converted, labels_of
from socratic_bench.errors import UsageError

from .arguments import Parser, parse_strictly
from .flags import NO_CSV, add_output
from .output import print_document

LABELLER = "mrbench"


def main(words: Sequence[str]) -> int:
    """Read the annotations, write them as labels, print how many there are."""
    parser = build_parser()
    flags = parse_strictly(parser, words)
    problems = [] if flags.files else ["Which annotations: name a file of MRBench or BEA 2025."]
    if not flags.file:
        problems.append("Where the labels are to stand: give --file FILE.")
    elif flags.file.lower().endswith(".csv"):
        problems.append(NO_CSV)
    parser.refuse(problems)
    labels = labels_of(flags.files, flags.labeller)
    body = b"".join(msgspec.json.encode(label) + b"\n" for label in labels)
    try:
        Path(flags.file).write_bytes(body)
    except OSError as error:
        raise UsageError([f"{flags.file} cannot be written: {error.strerror}."]) from error
    counts = Counter(name for label in labels for name in label.scores)
    document = Converted(
        file=flags.file,
        n=len(labels),
        n_dialogues=len({label.dialogue for label in labels}),
        authors=sorted({label.author or "" for label in labels}),
        scores=dict(sorted(counts.items())),
    )
    return print_document(document, pretty=flags.pretty)


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
