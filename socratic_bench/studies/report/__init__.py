"""Reports about stored runs: rows, figures, sections, and the files that show them."""
