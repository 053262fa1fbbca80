"""What a turn looks like without asking a model: questions, openness, advice, leading."""

from .analysis import analyse, is_unknown
from .types import Heuristics

__all__ = ["Heuristics", "analyse", "is_unknown"]
