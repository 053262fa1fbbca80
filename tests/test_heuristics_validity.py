"""`tools/validity.py` measures with labels that are here, and says so where there are none."""

import json
import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parent.parent / "tools" / "validity.py"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOL), *arguments],
        env={**os.environ, "SOCRATIC_LABELS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def measure(folder: Path) -> str:
    done = run(folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(folder: Path, source: str, rows: list[tuple[str, dict[str, bool]]]) -> None:
    (folder / "own.jsonl").write_text(
        "".join(
            json.dumps({"source": source, "group": f"g{i}", "text": text, "labels": labels}) + "\n"
            for i, (text, labels) in enumerate(rows)
        ),
        encoding="utf-8",
    )


def test_without_labels_it_says_so_and_succeeds(tmp_path: Path) -> None:
    assert measure(tmp_path / "missing").startswith("No labelled utterances here")


def test_it_scores_each_source_and_label(tmp_path: Path) -> None:
    rows = [
        ("Why is that?", {"has_question": True, "open_ended": True}),
        ("Is it late?", {"has_question": True, "open_ended": True}),
        ("It is late.", {"has_question": False, "open_ended": False}),
        ("That is so?", {"has_question": False, "open_ended": False}),
    ]
    write(tmp_path, "own", rows)

    lines = [line.split() for line in measure(tmp_path).splitlines()[1:-1]]

    assert [line[:9] for line in lines] == [
        ["own", "has_question", "4", "2", "0.667", "1.000", "0.800", "0.667", "0.500"],
        ["own", "open_ended", "4", "2", "1.000", "0.500", "0.667", "0.667", "0.500"],
        ["own", "open_ended|questions", "only", "2", "2", "1.000", "0.500", "0.667", "1.000"],
    ]
    low, to, high = lines[0][9:]
    assert to == "to"
    assert float(low) <= 0.5 <= float(high) <= 1.0


ANSWERED = [
    ("Why is that?", {"has_question": True}),
    ("It is late.", {"has_question": False}),
]


def test_it_ends_with_1_where_a_kappa_is_under_its_goal(tmp_path: Path) -> None:
    write(tmp_path, "annomi", ANSWERED)
    reached = run(tmp_path)
    write(tmp_path, "annomi", [*ANSWERED, ("It is late.", {"has_question": True})])
    missed = run(tmp_path)

    assert (reached.returncode, reached.stdout.split("\n")[1].split()[-1]) == (0, "ok")
    assert (missed.returncode, missed.stdout.split("\n")[1].split()[-1]) == (1, "MISSED")


def test_it_tells_what_each_rule_is_worth(tmp_path: Path) -> None:
    write(tmp_path, "own", [*ANSWERED, ("So that is it?", {"has_question": True})])

    lines = run(tmp_path, "--rules").stdout.splitlines()

    assert lines[0].split() == ["question", "mark", "own", "has_question", "0.600"]
    assert "question word order" in lines[1]
    assert lines[1].strip() == "question word order"


def test_rows_in_another_language_are_counted_and_not_scored(tmp_path: Path) -> None:
    rows = [
        {"source": "own", "group": "g", "text": text, "labels": {"has_question": True}}
        for text in ("Why is that?", "Warum denkst du das?")
    ]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    scored, unread = measure(tmp_path).splitlines()[1:]

    assert scored.split()[:3] == ["own", "has_question", "1"]
    assert unread == "Rows in a language that the rules do not know: 1"
