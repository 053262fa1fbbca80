"""Data sets of problems: read from files and the Hub."""

from socratic_bench.benchmarks.execution.dataset.reading import SHIPPED, DataSet, read_problems

__all__ = ["SHIPPED", "DataSet", "read_problems"]
