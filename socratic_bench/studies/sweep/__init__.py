"""Many runs as one: a grid of cells, each an ordinary run, over services that they share."""
