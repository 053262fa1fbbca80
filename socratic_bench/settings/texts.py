"""Mistakes in settings that are words of the user's own."""

import os
from collections.abc import Iterator

from socratic_bench.errors import LONGEST_SHOWN, Problem
from socratic_bench.settings.core import CoreConfig
from socratic_bench.settings.files import MAX_TEXT_BYTES
from socratic_bench.types import is_text


def text_problems(config: CoreConfig) -> Iterator[Problem]:
    """What cannot be sent, or name a folder. Half of a character in a prompt is replaced, as in all
    that is said.
    """
    folder = config.output_dir or ""
    if not is_text(folder):
        yield Problem.of("{output_dir} is no UTF-8 text: {word!r}.", word=_undecoded(folder))
    if config.prompt is not None and not config.prompt.strip():
        yield Problem.of("The prompt is empty: give the opening words.")
    if config.prompt and len(config.prompt.encode(errors="replace")) > MAX_TEXT_BYTES:
        yield Problem.of(f"The prompt has more than {MAX_TEXT_BYTES} bytes.")


def _undecoded(word: str) -> bytes | str:
    """The bytes that a command was given; of what can have been none, the word itself."""
    try:
        return os.fsencode(word)[:LONGEST_SHOWN]
    except UnicodeEncodeError:
        return word[:LONGEST_SHOWN]
