"""What a turn looks like without asking a model: questions, openness, advice, leading."""

from .analysis import Heuristics, analyse, is_unknown

__all__ = ["Heuristics", "analyse", "is_unknown"]
