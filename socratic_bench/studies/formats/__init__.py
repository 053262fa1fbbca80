"""Formats of other tools: dialogues that are read, and results that are written."""
