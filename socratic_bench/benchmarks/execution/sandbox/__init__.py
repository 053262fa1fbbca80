"""Where programs of data sets are executed, which nobody has looked over.

`server` is a process of its own that forks one for each program, watches it, and kills all that it
leaves. It, and the modules that it imports, know the standard library alone: they are imported as
a package `sandbox` without anything around it. `client` is what the rest of the program calls.
"""
