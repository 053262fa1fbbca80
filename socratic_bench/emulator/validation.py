"""Checks requests against the service model that botocore ships, read as a data file."""

import gzip
import json
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from socratic_bench.emulator.shapes import MismatchError, Shapes

MODEL_FOLDER = Path("bedrock-runtime", "2023-09-30")


class Validator:
    """The operations of a service model; without a model everything passes."""

    def __init__(self, model: Mapping[str, Any] | None) -> None:
        self.active = model is not None
        self._inputs: dict[str, str] = {}
        if model is not None:
            self._model = model
            self._shapes = Shapes(model["shapes"])
            self._inputs = {
                name: operation["input"]["shape"]
                for name, operation in model["operations"].items()
                if "input" in operation
            }
        self._good_ids: set[tuple[str, str]] = set()

    def check(self, operation: str, model_id: str, body: object) -> None:
        """Raise the service's error for an id or a body that breaks the operation's model."""
        if operation not in self._inputs:
            return
        try:
            if (operation, model_id) not in self._good_ids:
                self._check_id(operation, model_id)
            self._shapes.check(self._inputs[operation])(body)
        except MismatchError as error:
            raise error.as_service_error() from None

    def _check_id(self, operation: str, model_id: str) -> None:
        members = self._model["shapes"][self._inputs[operation]]["members"]
        try:
            self._shapes.check(members["modelId"]["shape"])(model_id)
        except MismatchError as error:
            error.path.append("modelId")
            raise
        self._good_ids.add((operation, model_id))


@cache
def service_validator() -> Validator:
    """A validator by the installed botocore, which is not imported; one that is off without it."""
    spec = find_spec("botocore")
    if spec is None or spec.origin is None:
        return Validator(None)
    return Validator(read_model(Path(spec.origin).parent / "data" / MODEL_FOLDER))


def read_model(folder: Path) -> Mapping[str, Any] | None:
    """Read the plain or the compressed file, whichever is there."""
    plain, packed = folder / "service-2.json", folder / "service-2.json.gz"
    model: Mapping[str, Any] | None = None
    if plain.is_file():
        model = json.loads(plain.read_bytes())
    elif packed.is_file():
        model = json.loads(gzip.decompress(packed.read_bytes()))
    return model
