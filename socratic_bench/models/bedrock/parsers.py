"""Bounds the SDK's parsers, and names what they raise.

Put in at the SDK's own seam: a session's component that makes response parsers.
"""

from collections.abc import Callable, Mapping
from typing import Any

from botocore.parsers import ResponseParserError, ResponseParserFactory

from socratic_bench.models.bedrock.transport import AnswerTooLargeError

# JSON takes far more memory once it is read; prose has a comma in some sixty characters.
VALUES_MAX = 1_000_000
# What the SDK's parsers raise over what they do not expect, such as a number without an end.
_TRIPS = (ValueError, ArithmeticError, AttributeError, KeyError, TypeError, RecursionError)


class Parsers(ResponseParserFactory):
    """Parsers with one exception for what they cannot read: the SDK's own raise many kinds."""

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[str, Any] = {}

    def create_parser(self, protocol_name: str) -> Any:  # noqa: ANN401 -- the SDK's own
        """The SDK asks for one for each answer; they keep nothing of it."""
        if protocol_name not in self._made:
            self._made[protocol_name] = self._new_parser(protocol_name)
        return self._made[protocol_name]

    def _new_parser(self, protocol_name: str) -> Any:  # noqa: ANN401
        parser: Any = super().create_parser(protocol_name)
        for one in (parser, parser._event_stream_parser):  # noqa: SLF001 -- reads each event
            if one is not None:
                one.parse = _named(one.parse)
        return parser


def _named(parse: Callable[..., Any]) -> Callable[..., Any]:
    def parse_or_refuse(response: Mapping[str, Any], shape: Any) -> Any:  # noqa: ANN401 -- the SDK's
        body = response.get("body")
        if isinstance(body, bytes) and _n_values(body) > VALUES_MAX:
            raise AnswerTooLargeError(f"the answer has more than {VALUES_MAX} values")
        try:
            parsed = parse(response, shape)
        except _TRIPS as error:
            raise ResponseParserError(f"{type(error).__name__} in the answer") from error
        told = parsed.get("Error") if isinstance(parsed, dict) else None
        if isinstance(told, dict):
            # These may be no texts if something other than the service answers.
            told.update({name: str(told[name]) for name in ("Code", "Message") if name in told})
        return parsed

    return parse_or_refuse


def _n_values(body: bytes) -> int:
    """At least as many as stand in a body; counting takes its time, and most are short."""
    return len(body) if len(body) <= VALUES_MAX else sum(map(body.count, (b",", b"[", b"{")))
