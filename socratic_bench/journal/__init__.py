"""The calls of a run, recorded so that another process can resume it.

`log` writes them, `replay` reads them back, `identity` says which runs are the same.
"""
