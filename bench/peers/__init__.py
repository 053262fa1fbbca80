"""The same dialogue in other programs, each in a virtual environment of its own."""
