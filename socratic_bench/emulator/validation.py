"""Checks requests against the service model that botocore ships.

botocore's validator checks types, unknown and missing members and lower bounds. Upper bounds, enums
and patterns it leaves to the service, so they are checked here.
"""

import binascii
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape
from botocore.validate import ParamValidator

from socratic_bench.emulator.errors import ServiceError, invalid

SERVICE = "bedrock-runtime"
SHOWN_CHARACTERS = 100


class Validator:
    """The operations of the service."""

    def __init__(self) -> None:
        self._service = ServiceModel(Loader().load_service_model(SERVICE, "service-2"), SERVICE)

    def check(self, operation: str, model_id: str, body: object) -> None:
        """Raise the service's error for an id or a body that breaks the operation's model."""
        shape = self._service.operation_model(operation).input_shape
        if shape is None or not isinstance(body, dict):
            raise invalid("The value at 'body' is not an object. Send an object and try again.")
        request = {**body, "modelId": model_id}
        report = ParamValidator().validate(request, shape)
        if report.has_errors():
            raise _broken(report.generate_report())
        if problem := next(_broken_constraints(request, shape, ()), None):
            raise _broken(problem)


def _broken(problem: str) -> ServiceError:
    return invalid(f"1 validation error detected: {problem}")


def _broken_constraints(value: Any, shape: Shape, path: tuple[str, ...]) -> Iterator[str]:  # noqa: ANN401
    """What a value of the right type breaks, in the service's words."""
    rules = shape.metadata
    if rule := _broken_rule(value, shape.type_name, rules):
        place = ".".join(path) or "body"
        excerpt = str(value)[:SHOWN_CHARACTERS]
        yield f"Value '{excerpt}' at '{place}' failed to satisfy constraint: Member must {rule}"
    if isinstance(shape, StructureShape) and not _is_document(shape):
        for name, part in value.items():
            yield from _broken_constraints(part, shape.members[name], (*path, name))
    elif isinstance(shape, ListShape):
        for index, item in enumerate(value):
            yield from _broken_constraints(item, shape.member, (*path, str(index)))
    elif isinstance(shape, MapShape):
        for name, part in value.items():
            yield from _broken_constraints(name, shape.key, (*path, name))
            yield from _broken_constraints(part, shape.value, (*path, name))


def _broken_rule(value: Any, kind: str, rules: dict[str, Any]) -> str | None:  # noqa: ANN401
    what, size = ("length", len(value)) if hasattr(value, "__len__") else ("value", value)
    # Put so that NaN, which compares with nothing, fails, too.
    if "max" in rules and not size <= rules["max"]:
        return f"have {what} less than or equal to {rules['max']}"
    if kind == "map" and size < rules.get("min", 0):
        return f"have length greater than or equal to {rules['min']}"
    if "enum" in rules and value not in rules["enum"]:
        return f"satisfy enum value set: [{', '.join(rules['enum'])}]"
    if "pattern" in rules and not re.fullmatch(rules["pattern"], value):
        return f"satisfy regular expression pattern: {rules['pattern']}"
    if kind == "blob":
        try:
            binascii.a2b_base64(value, strict_mode=True)
        except ValueError:
            return "be a base64 string"
    return None


def _is_document(shape: Shape) -> bool:
    return bool(shape.metadata.get("document"))


@cache
def service_validator() -> Validator:
    """The validator of the installed botocore; reading its model takes a moment."""
    return Validator()
