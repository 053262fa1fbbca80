"""Where programs of data sets, which nobody has reviewed, are executed.

`client` is what the rest of the program calls. It starts `server`, a process that forks one for
each program, watches it, and kills all that it leaves; `child` runs in that fork, under `limits`.
These three use the standard library alone: the server imports them as a package `sandbox` without
anything around it.
"""
