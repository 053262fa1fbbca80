"""Cleans lines of text."""

import re


def mask(lines, words):
    """The lines with each of the words replaced by asterisks."""
    cleaned = []
    for line in lines:
        re.purge()
        pattern = re.compile("|".join(sorted(map(re.escape, words), key=len, reverse=True)))
        cleaned.append(pattern.sub(lambda match: "*" * len(match[0]), line))
    return cleaned
