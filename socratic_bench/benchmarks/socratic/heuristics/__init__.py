"""Reads a turn without a model: does it ask, is it open, does it advise or lead?"""

from .analysis import Heuristics, analyse, is_unknown

__all__ = ["Heuristics", "analyse", "is_unknown"]
