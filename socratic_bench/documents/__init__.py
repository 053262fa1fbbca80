"""What a run prints and stores, as plain JSON values, and the schemas that describe them."""

from socratic_bench.documents.encoding import encode

__all__ = ["encode"]
