"""What is no document on stdout: help, and a version."""

from .stdout import EXIT_UNWRITTEN, write


def write_words(text: str) -> int:
    """Write help or a version; the exit code."""
    why = write(text.encode())
    if why:
        from .output import say_unwritten

        say_unwritten(why)
    return EXIT_UNWRITTEN if why else 0
