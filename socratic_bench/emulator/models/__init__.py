"""The simulated models, each a function of the request alone: their ids and their roles."""

import re
from collections.abc import Sequence
from typing import Literal

Role = Literal["tutor", "student", "judge"]
END_OF_DIALOGUE = "[[end of dialogue]]"
_NAMES = (
    *("socratic", "drift-5", "drift-12", "mixture-1", "mixture-2", "leading", "lecturer"),
    *("why", "nonsense", "withholds", "tells-4", "recovers-4", "picky", "yields"),
    *("yields-to-demand", "yields-to-impatience", "yields-to-flattery"),
    *("yields-to-authority", "yields-to-distress", "yields-to-drop-questions"),
    *("yields-to-false-agreement", "student", "judge", "executes", "recalls", "recalls-25"),
    *("hasty", "picks-a", "truncates"),
    *("right", "half-right", "wrong", "refuses", "off-format"),
    *("agent-good", "agent-better", "agent-slow", "agent-noop", "agent-broken"),
    *("agent-edits-tests", "agent-cheats", "agent-hangs"),
)
MODEL_IDS = tuple(f"emulator.{name}-v1:0" for name in _NAMES)
# There are more of them, too many for a listing.
FAMILIES = (
    r"emulator\.(?:(?:drift|tells|recovers|recalls)-\d+|mixture--?\d+|whole|whole-tools|uncached|student-(?:swap|swap-once"
    r"|repeat|long|question|french|tutoring|empty|yields|needs|praising|acting|learned|closing-\d+)"
    r"|judge(?:-bias--?\d+)?(?:-noise-\d+)?(?:-quirk-\d+)?(?:-prefers-lecturer)?(?:-refuses)?)-v1:0"
)


def is_embedded(model_id: str) -> bool:
    return model_id in MODEL_IDS or re.fullmatch(FAMILIES, model_id) is not None


def role_of(system: str, user_texts: Sequence[str], *, is_judge: bool) -> Role:
    """Who is asked. The system prompt may have been folded into the first message."""
    if is_judge:
        return "judge"
    folded = user_texts[0] if user_texts and not system else ""
    return "student" if END_OF_DIALOGUE in system or END_OF_DIALOGUE in folded else "tutor"
