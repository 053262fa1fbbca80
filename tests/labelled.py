"""Labels for tests: replies of the project's own, what two people say of them, as files."""

import csv
import json
from pathlib import Path
from random import Random

REPLIES = {
    "What makes you think so?": (3, 2.5, 4),
    "You should simply divide by two. The answer is 4.": (0, 0, 0),
    "Don't you think it would be better to wait?": (1, 1, 1),
    "What would follow if that were false, and why?": (3, 3, 4),
    "Is that right?": (2, 1, 3),
}
DIMENSIONS = {"form": 3, "substance": 3, "purity": 4}
HISTORY = [
    {"role": "user", "text": "Hello, I have a question."},
    {"role": "assistant", "text": "Which one?"},
]


def labels(n_dialogues=12, n_turns=4, seed=3, people=("anna", "ben"), **more):
    """A row for each reply and person; people differ by half a point now and then."""
    dice = Random(seed)
    rows = []
    for dialogue in range(n_dialogues):
        for turn in range(n_turns):
            reply, true = dice.choice([*REPLIES.items()])
            rows += [
                {
                    "dialogue": f"d{dialogue}",
                    "author": f"author-{dialogue % 3}",
                    "labeller": who,
                    "history": HISTORY,
                    "prompt": f"I think that the answer is {turn}.",
                    "reply": reply,
                    "scores": {
                        name: max(0, min(high, score + dice.choice((-0.5, 0, 0.5))))
                        for (name, high), score in zip(DIMENSIONS.items(), true, strict=True)
                    },
                    "events": {"answer_disclosed": true[2] == 0, "tells": true[2] < 2},
                    "reasons": {"form": f"{who} has a reason"},
                    **more,
                }
                for who in people
            ]
    return rows


def write_jsonl(path: Path, rows) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def write_csv(path: Path, rows) -> str:
    flat = [
        {
            **{key: value for key, value in row.items() if not isinstance(value, dict | list)},
            "history": json.dumps(row["history"]),
            **{f"scores.{name}": value for name, value in row["scores"].items()},
            **{f"events.{name}": "yes" if yes else "No" for name, yes in row["events"].items()},
            **{f"reasons.{name}": text for name, text in row["reasons"].items()},
        }
        for row in rows
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*flat[0]])
        writer.writeheader()
        writer.writerows(flat)
    return str(path)
