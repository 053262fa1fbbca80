"""The system prompt of the model under test, from a file of the user's."""

from socratic_bench.errors import UsageError
from socratic_bench.settings.files import read_bounded


def read_system_prompt(path: str) -> str:
    """The text of the file, without white space around it. Raises `UsageError`."""
    try:
        text = read_bounded(path).decode("utf-8").strip()
    except OSError as error:
        raise UsageError([f"The system prompt {path} cannot be read: {error.strerror}."]) from error
    except UnicodeDecodeError as error:
        raise UsageError([f"The system prompt {path} is no UTF-8 text."]) from error
    if not text:
        raise UsageError([f"The system prompt {path} is empty."])
    return text
