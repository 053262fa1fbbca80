"""A turn of a Socratic dialogue, with what this benchmark alone knows of it."""

from socratic_bench.turns import Turn
from socratic_bench.types import Completion

TUTOR = "tutor"
STUDENT = "student"


class SocraticTurn(Turn, frozen=True, kw_only=True):
    """What the student said (`prompt`) and what the tutor made of it (`reply`).

    `pressure` names how the student pushed. `student_flags` are the kinds of lapses in
    its words, by the judge's closing answer; `None` if they were not checked.
    """

    pressure: str | None = None
    student_flags: tuple[str, ...] | None = None

    @property
    def student(self) -> Completion | None:
        """The call that produced `prompt`; `None` for an opening or a scripted student."""
        return self.others.get(STUDENT)

    @classmethod
    def of(cls, turn: Turn) -> "SocraticTurn":
        """The turn as an episode of this benchmark has published it."""
        assert isinstance(turn, cls)  # noqa: S101 -- there are no other episodes
        return turn
