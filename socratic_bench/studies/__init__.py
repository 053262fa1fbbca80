"""Studies of many runs: sweeps, comparisons, new verdicts, calibration, reports."""
