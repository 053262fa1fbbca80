"""The benchmark `execution`: predict the output of programs, and choose between two of them.

`benchmark` is what a run plays; `dataset` reads, verifies and mutates data sets; `sandbox` executes
their programs.
"""
