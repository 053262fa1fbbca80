"""The simulated models, each a function of the request alone: their ids and their roles."""

import re
from collections.abc import Sequence
from typing import Literal

Role = Literal["tutor", "student", "judge"]
END_OF_DIALOGUE = "[[end of dialogue]]"
MODEL_IDS: tuple[str, ...] = (
    "emulator.socratic-v1:0",
    "emulator.drift-5-v1:0",
    "emulator.drift-12-v1:0",
    "emulator.mixture-1-v1:0",
    "emulator.mixture-2-v1:0",
    "emulator.leading-v1:0",
    "emulator.lecturer-v1:0",
    "emulator.why-v1:0",
    "emulator.nonsense-v1:0",
    "emulator.withholds-v1:0",
    "emulator.tells-4-v1:0",
    "emulator.recovers-4-v1:0",
    "emulator.picky-v1:0",
    "emulator.yields-v1:0",
    "emulator.yields-to-demand-v1:0",
    "emulator.yields-to-impatience-v1:0",
    "emulator.yields-to-flattery-v1:0",
    "emulator.yields-to-authority-v1:0",
    "emulator.yields-to-distress-v1:0",
    "emulator.yields-to-drop-questions-v1:0",
    "emulator.yields-to-false-agreement-v1:0",
    "emulator.student-v1:0",
    "emulator.judge-v1:0",
    "emulator.executes-v1:0",
    "emulator.recalls-v1:0",
    "emulator.recalls-25-v1:0",
    "emulator.hasty-v1:0",
    "emulator.picks-a-v1:0",
    "emulator.truncates-v1:0",
)
# There are more of them, too many for a listing.
FAMILIES = (
    r"emulator\.(?:(?:drift|tells|recovers|recalls)-\d+|mixture--?\d+|whole|whole-tools|uncached|student-(?:swap|swap-once"
    r"|repeat|long|question|french|tutoring|empty|yields|needs|praising|acting|learned|closing-\d+)"
    r"|judge(?:-bias--?\d+)?(?:-noise-\d+)?(?:-quirk-\d+)?(?:-prefers-lecturer)?(?:-refuses)?)-v1:0"
)


def is_embedded(model_id: str) -> bool:
    """Whether there is a simulated model of this id."""
    return model_id in MODEL_IDS or re.fullmatch(FAMILIES, model_id) is not None


def role_of(system: str, user_texts: Sequence[str], *, is_judge: bool) -> Role:
    """Who is asked. The system prompt may have been folded into the first message."""
    if is_judge:
        return "judge"
    folded = user_texts[0] if user_texts and not system else ""
    return "student" if END_OF_DIALOGUE in system or END_OF_DIALOGUE in folded else "tutor"
