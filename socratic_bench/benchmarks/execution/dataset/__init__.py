"""Data sets of programs: read, verified, mutated; the documents of `socratic-runner dataset`."""
