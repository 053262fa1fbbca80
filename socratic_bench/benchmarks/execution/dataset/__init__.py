"""Data sets of programs, and the documents of `socratic-runner dataset`.

`reading` fetches a data set, `rows` checks its problems, `verify` executes them, `mutate` makes the
changed programs.
"""
