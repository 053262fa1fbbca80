"""Data sets of problems: read from files and the Hub, verified and mutated."""
