"""A page over a store: set up, queue, watch, analyse and label sweeps.

A view, not a second engine: it starts the ordinary commands as detached processes and reads the
store. Behind the door of the extra `dashboard`.
"""
