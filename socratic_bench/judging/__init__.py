"""Has judge models score replies against a rubric, and asks them once about a whole episode.

For any rubric of any benchmark: `jury` is what a run judges with.
"""
