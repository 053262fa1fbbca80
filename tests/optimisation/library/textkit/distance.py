"""Distances of words."""


def ways(text, words):
    """In how many ways a text can be split into the words."""
    if not text:
        return 1
    total = 0
    for word in words:
        if text.startswith(word):
            total += ways(text[len(word) :], words)
    return total
