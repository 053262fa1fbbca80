"""A data set as a file."""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import orjson
from msgspec.structs import asdict

from socratic_bench.benchmarks.execution.problem import Problem
from socratic_bench.errors import ArtifactError

Row = Mapping[str, Any]
_OUTPUT, _OUTPUTS = "mutated_output", "mutated_outputs"
_OPTIONS = orjson.OPT_NON_STR_KEYS


def write_rows(rows: Sequence[Row], path: str) -> str:
    """Writes JSON Lines to a new file; its sha256. Raises `ArtifactError`."""
    # Tables hold values that JSON has not, such as decimal numbers and bytes.
    content = b"".join(orjson.dumps(row, default=str, option=_OPTIONS) + b"\n" for row in rows)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be written: {error.strerror}.", hint="Name another file."
        ) from error
    return sha256(content).hexdigest()


def mutated_row(row: Row, problem: Problem) -> Row:
    """A row with the problem's mutation in place of its own, and all else as it was."""
    outputs = problem.mutated_outputs
    is_text = outputs is not None and len(outputs) == 1 and not _has_lists(row)
    found = {
        "mutated_code": problem.mutated_code,
        _OUTPUTS if _OUTPUTS in row else _OUTPUT: outputs[0] if outputs and is_text else outputs,
        "has_mutation": problem.mutated_code is not None,
        "mutation_info": asdict(problem.mutation) if problem.mutation else None,
    }
    kept = {name: value for name, value in row.items() if name not in (_OUTPUT, _OUTPUTS)}
    return {**kept, **found}


def _has_lists(row: Row) -> bool:
    """Whether calls or outputs are lists there."""
    names = ("input", "inputs", "output", "outputs", "correct_condition")
    return any(isinstance(row.get(name), list) for name in names)
