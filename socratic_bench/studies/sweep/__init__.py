"""A sweep: a grid of cells, each an ordinary run, over shared services."""
