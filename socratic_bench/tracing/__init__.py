"""Traces of runs by OpenTelemetry's conventions for generative AI: `spans` makes them of what the
listener of a run hears, `exporting` sends or writes them. Both need the extra `otel`.
"""
