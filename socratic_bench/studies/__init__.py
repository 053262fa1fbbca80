"""What many runs say together."""
