"""`tools/validity.py` measures with labels that are here, and says so where there are none."""

import json
import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parent.parent / "tools" / "validity.py"


def measure(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(TOOL)],
        env={**os.environ, "SOCRATIC_LABELS": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_without_labels_it_says_so_and_succeeds(tmp_path: Path) -> None:
    assert measure(tmp_path / "missing").startswith("No labelled utterances here")


def test_it_scores_each_source_and_label(tmp_path: Path) -> None:
    rows = [
        ("Why is that?", {"has_question": True, "open_ended": True}),
        ("Is it late?", {"has_question": True, "open_ended": True}),
        ("It is late.", {"has_question": False, "open_ended": False}),
        ("That is so?", {"has_question": False, "open_ended": False}),
    ]
    (tmp_path / "own.jsonl").write_text(
        "".join(
            json.dumps({"source": "own", "group": f"g{i}", "text": text, "labels": labels}) + "\n"
            for i, (text, labels) in enumerate(rows)
        ),
        encoding="utf-8",
    )

    lines = [line.split() for line in measure(tmp_path).splitlines()[1:-1]]

    assert [line[:7] for line in lines] == [
        ["own", "has_question", "4", "2", "0.667", "1.000", "0.800"],
        ["own", "open_ended", "4", "2", "1.000", "0.500", "0.667"],
        ["own", "open_ended|questions", "only", "2", "2", "1.000", "0.500"],
    ]


def test_rows_in_another_language_are_counted_and_not_scored(tmp_path: Path) -> None:
    rows = [
        {"source": "own", "group": "g", "text": text, "labels": {"has_question": True}}
        for text in ("Why is that?", "Warum denkst du das?")
    ]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    scored, unread = measure(tmp_path).splitlines()[1:]

    assert scored.split()[:3] == ["own", "has_question", "1"]
    assert unread == "Rows in a language that the rules do not know: 1"
