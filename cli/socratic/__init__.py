"""What the command has for the Socratic benchmark alone."""
