"""What the heuristics say of one utterance."""

from msgspec import Struct


class Heuristics(Struct, frozen=True):
    """None means "in a language these rules do not know", never "no"."""

    has_question: bool | None
    question_count: int | None
    open_ended: bool | None
    has_advice: bool | None
    is_leading: bool | None


UNKNOWN = Heuristics(None, None, None, None, None)
