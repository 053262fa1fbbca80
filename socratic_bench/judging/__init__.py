"""Has a judge model score a reply against a rubric; for any rubric, knowing no benchmark."""

from socratic_bench.judging.judge import Judge
from socratic_bench.judging.rubric import load_rubric

__all__ = ["Judge", "load_rubric"]
