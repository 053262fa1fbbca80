"""What the command has for the benchmark `execution` alone."""
