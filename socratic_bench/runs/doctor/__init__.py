"""Looks at what a run needs before it is played: credentials, stores, every model in its role."""

from socratic_bench.runs.doctor.diagnosis import diagnose
from socratic_bench.runs.doctor.targets import Target, targets_of

__all__ = ["Target", "diagnose", "targets_of"]
