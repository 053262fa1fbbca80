"""Students to teach: the built-in scenarios, one for any prompt, a teacher's own files."""
