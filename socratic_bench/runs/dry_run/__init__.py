"""What a run would take, played through without a model: its calls, tokens, money and time."""

from socratic_bench.runs.dry_run.dry_run import Forecaster, dry_run

__all__ = ["Forecaster", "dry_run"]
