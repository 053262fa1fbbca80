"""Finds secrets in text, in whatever way they are written there."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cached_property

MASK = "***"
# Nothing shorter is known by its value: it would be found in ordinary words.
SHORTEST = 8
# A stand-in for a key, such as people give to an emulator: nothing that AWS gives out is a word.
_WORD = re.compile(r"[a-z]{1,15}")

_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}


class Secrets:
    """Values that are secret. `passwords` are so at any length, and in fewer forms.

    A text is first looked through for a piece of each form that no way of writing changes, which is
    quick; only one that holds such a piece is matched with the whole pattern.
    """

    def __init__(self, values: Iterable[str], passwords: Iterable[str] = ()) -> None:
        parts = sorted({part for value in values for part in _parts(value)}, key=_length)
        others = sorted({*passwords}, key=_length)
        forms = [*(form for part in parts for form in _forms(part)), *map(_plain, others)]
        self._pieces = tuple(dict.fromkeys(piece for piece, _ in forms))
        self._sources = tuple(source for _, source in forms)

    def may_be_in(self, text: str) -> bool:
        """False where no secret can be in the text, nor in its JSON."""
        return any(piece in text for piece in self._pieces)

    def masked(self, text: str) -> str:
        """The text without any of them."""
        for piece in self._pieces:  # a loop, since most texts are short, and this is all they take
            if piece in text:
                return self._pattern.sub(MASK, text)
        return text

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(self._sources))


def _length(value: str) -> tuple[int, str]:
    return -len(value), value


def _parts(value: str) -> Iterator[str]:
    # A line end within a value is written as an escape, or breaks it in two.
    for part in (value.strip(), *value.split()):
        if len(part) >= SHORTEST and not _WORD.fullmatch(part):
            yield part


def _forms(value: str) -> Iterator[tuple[str, str]]:
    """Each form's piece that always stands in it, and its pattern."""
    yield _plain(value)
    raw = value.encode("utf-8", "surrogateescape")
    for digits in (raw.hex(), raw.hex().upper()):
        yield digits, digits
    for offset in range(3):
        # Of what encloses the secret nothing is known, so only letters that it alone makes count.
        encoded = b64encode(bytes(offset) + raw + bytes(2)).decode()
        first, last = -(-8 * offset // 6), 8 * (offset + len(raw)) // 6
        letters = encoded[first:last]
        url_safe = (_escaped(c) if c not in "+/" else _BASE64[c] for c in letters)
        yield _longest_run(letters), "".join(url_safe)


def _plain(value: str) -> tuple[str, str]:
    return _longest_run(value), "".join(map(_escaped, value))


def _longest_run(value: str) -> str:
    return max(re.split(r"[^A-Za-z0-9]", value), key=len)


def _escaped(character: str) -> str:
    """A pattern of a character as it is, or as JSON, Python, a URL or HTML may write it."""
    if character.isascii() and character.isalnum():
        return character
    code = ord(character)
    units = character.encode("utf-16-be", "surrogatepass").hex()
    in_json = "".join(rf"\\+u{units[at : at + 4]}" for at in range(0, len(units), 4))
    in_url = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
    name = f"|{_ENTITIES[character]}" if character in _ENTITIES else ""
    in_html = f"&(?:amp;)*(?:#0*{code}|#x0*{code:x}{name});"
    one = re.escape(character)
    others = [rf"\\+x{code:02x}", *([r"\\+n"] if character == "\n" else [])]
    return rf"(?:\\*{one}|(?i:{'|'.join([in_json, *others, in_url, in_html])}))"


_BASE64 = {"+": f"(?:{_escaped('+')}|-)", "/": f"(?:{_escaped('/')}|_)"}
