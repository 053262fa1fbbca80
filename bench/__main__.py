"""`make bench`: every row of the table, printed, kept as JSON, and written into the documents.

    python -m bench [--runs 3] [--rounds 31] [--turns 40] [--latency-ms 300] [--page FILE]
                    [--dialogues 64] [--many-turns 10] [--many-rounds 3] [--against TREE]

Exits with 1 if a median misses what it must reach.
"""

import argparse
import sys
from pathlib import Path

from bench.contenders import ROOT
from bench.report import as_json, fill_in, markdown, table
from bench.row import Plan
from bench.rows import measure_all


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    default = Plan()
    parser.add_argument("--turns", type=int, default=default.turns)
    parser.add_argument("--latency-ms", type=float, default=default.latency_ms)
    parser.add_argument("--runs", type=int, default=default.runs, help="of the long dialogue")
    parser.add_argument("--rounds", type=int, default=default.rounds, help="of all else")
    parser.add_argument("--calls", type=int, default=default.calls, help="per round, for CPU")
    parser.add_argument("--load-s", type=float, default=default.load_s)
    parser.add_argument("--dialogues", type=int, default=default.dialogues, help="at once")
    parser.add_argument(
        "--many-turns", type=int, default=default.many_turns, help="of each of them"
    )
    parser.add_argument("--many-rounds", type=int, default=default.many_rounds, help="of them all")
    parser.add_argument(
        "--report-runs", type=int, default=default.report_runs, help="needs Chromium and playwright"
    )
    parser.add_argument("--against", type=Path, metavar="TREE", help="an older one, in turns")
    parser.add_argument("--json", type=Path, default=ROOT / ".bench" / "bench.json")
    parser.add_argument("--page", type=Path, help="fill in its table, such as docs/performance.md")
    found = vars(parser.parse_args())
    kept, page = found.pop("json"), found.pop("page")
    rows = list(measure_all(Plan(**found), lambda text: print(text, file=sys.stderr)))
    print(table(rows))
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(as_json(rows))
    if page:
        fill_in(page, "bench", markdown(rows))
    return 0 if all(row.passes for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
