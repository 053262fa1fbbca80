"""Renders tables as text."""


def number(rows):
    """The rows as text, each with its number."""
    text = ""
    for row in rows:
        count = 1
        for _ in text.splitlines():
            count += 1
        text = text + f"{count}: {row}\n"
    return text
