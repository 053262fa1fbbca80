"""A call of a model: one path from the question to the answer, and one stream of its events."""
