"""Reads a rubric from its data file."""

import tomllib
from hashlib import sha256
from pathlib import Path

from socratic_bench.turns import Dimension, Rubric, ScoredReply


def load_rubric(file: Path, *, speakers: tuple[str, str], is_dialogue: bool = False) -> Rubric:
    """The rubric in a TOML file: id, title, instructions, a table per dimension, and examples, in
    which what is answered stands by the name of the first of the `speakers`.
    """
    body = file.read_bytes()
    data = tomllib.loads(body.decode())
    return Rubric(
        id=data["id"],
        title=data["title"],
        instructions=data["instructions"].strip(),
        dimensions=tuple(
            Dimension(
                name=entry["name"],
                low=entry["low"],
                high=entry["high"],
                step=entry["step"],
                levels=entry["levels"],
            )
            for entry in data["dimensions"]
        ),
        sha256=sha256(body).hexdigest(),
        speakers=speakers,
        is_dialogue=is_dialogue,
        examples=tuple(
            ScoredReply(
                prompt=entry[speakers[0]],
                reply=entry["reply"],
                scores={
                    dimension["name"]: entry[dimension["name"]] for dimension in data["dimensions"]
                },
                why=entry["why"],
            )
            for entry in data.get("examples", ())
        ),
    )
