"""Finds secrets in text, in whatever way they are written there."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

MASK = "***"
# Shorter values are not searched for: they would be found in ordinary words.
SHORTEST = 8
# Keys that people give to an emulator, and that every manual shows.
_STAND_INS = frozenset({"emulator", "socratic", "notarealkey"})

# Patterns are compiled when they are wanted: few texts need any of them.

# A character as JSON, Python, a URL or HTML may write it, escaped any number of times. Every
# alternative takes all the backslashes at once, so that many of them take no longer than others.
_ESCAPE = (
    r"((?:%(?!25[0-9A-Fa-f]{2})[0-9A-Fa-f]{2})+)"  # in one go, since there are often many in a row
    r"|\\+u([0-9A-Fa-f]{4})|\\+u\{0*([0-9A-Fa-f]{1,5})\}|\\+U000([0-9A-Fa-f]{5})"
    r"|\\+x([0-9A-Fa-f]{2})|%(?:25)*([0-9A-Fa-f]{2})|&(?:amp;)*#[xX]0*([0-9A-Fa-f]{1,5});?"
    r"|&(?:amp;)*#0*([0-9]{1,6});?|&(?:amp;)*([A-Za-z][A-Za-z0-9]{1,31});|\\+([^\\%&])?"
)
_RUN, _DECIMAL, _NAME = 1, 8, 9  # groups; 2 to 7 are hexadecimal, the last stands for itself
_HYPHENS = str.maketrans("\u2010\u2212", "--")  # what HTML's names for a hyphen and a minus are
# Stands in each text that has a letter or a digit escaped; and what is quicker to look for.
_LETTER = r"%[2-7][0-9A-Fa-f]|&(?:amp;|#)|\\[uUx]"
_MARKS = ("%", "&#", "&amp;", "\\u", "\\x", "\\U")
# Escapes within escapes of another kind, such as JSON in HTML in a URL.
_MAX_LAYERS = 4
# A secret may look like escapes itself; fewer characters than these are no secret then.
_SHORTEST_FORM = 4
_URL_SAFE = str.maketrans("+/", "-_")
_NO_HEX = bytes(set(range(256)) - set(b"0123456789abcdef"))
_DIGIT = "0[xX]|([0-9A-Fa-f])"
# Base64 is compared by its letters and digits alone, without what breaks or joins its lines; an
# escaped line end has some, too. The pattern begins with its characters, since that is quicker.
_BREAK = (
    r"[\\%&](?:(?<=\\)\\*(?:[nrtfv]|u000[0-9A-Fa-f]|x0[0-9A-Fa-f])?|(?<=%)(?:25)*0[9AaDd]"
    r"|(?<=&)(?:amp;)*(?:#(?:0*(?:9|1[03])|[xX]0*[9AaDd])|NewLine|Tab);)"
)
_BREAKS = _BREAK.encode()
_SIGN = f"{_BREAK}|([0-9A-Za-z])"
_NO_SIGN = bytes(n for n in range(256) if not bytes([n]).isalnum())
_SHORTEST_BASE64 = 6


class Secrets:
    """Values that are secret. `passwords` are so at any length, and in fewer forms.

    A text is first looked through for a piece of each form that no way of writing changes, which is
    quick; only one that holds such a piece, or has letters escaped, is read without its escapes.
    """

    def __init__(self, values: Iterable[str], passwords: Iterable[str] = ()) -> None:
        parts = sorted({part for value in values for part in _parts(value)}, key=_length)
        forms = [form for part in parts for form in (part, *_base64(part))]
        self._pieces = tuple(dict.fromkeys(map(_longest_run, [*forms, *passwords])))
        self._forms = tuple(
            sorted({f for form in [*forms, *passwords] for f in _spellings(form)}, key=_length)
        )
        self._hex = tuple(dict.fromkeys(_bytes(part).hex().encode() for part in parts))
        signs = (_signs(form.encode()) for part in parts for form in _base64(part))
        self._base64 = tuple(dict.fromkeys(form for form in signs if len(form) >= _SHORTEST_BASE64))

    def may_be_in(self, text: str) -> bool:
        """False where no secret can be in the text, nor in its JSON."""
        for piece in self._pieces:  # a loop, since most texts are short, and this is all they take
            if piece in text:
                return True
        return bool(self._forms) and (self._is_encoded_in(text) or self._is_escaped_in(text))

    def masked(self, text: str) -> str:
        """The text without any of them."""
        return self._without(text) if self.may_be_in(text) else text

    def _is_encoded_in(self, text: str) -> bool:
        """As hexadecimal digits or Base64, whatever is between the digits or breaks the lines."""
        content = text.encode("utf-8", "surrogatepass")
        signs = _signs(content)
        if any(secret in signs for secret in self._base64):
            return True
        digits = content.lower().replace(b"0x", b"").translate(None, _NO_HEX)
        return any(secret in digits for secret in self._hex)

    def _is_escaped_in(self, text: str) -> bool:
        for _ in range(_MAX_LAYERS):
            if not any(mark in text for mark in _MARKS) or not re.search(_LETTER, text):
                return False
            text = re.sub(_ESCAPE, _character, text)
            if any(form in text for form in self._forms) or self._is_encoded_in(text):
                return True
        return False

    def _without(self, text: str) -> str:
        plain = text
        starts: Sequence[int] = range(len(text) + 1)
        spans = [*self._spans(plain, starts)]
        for _ in range(_MAX_LAYERS):
            if not re.search(_ESCAPE, plain):
                break
            starts = [starts[at] for at in _starts(plain)]
            plain = re.sub(_ESCAPE, _character, plain)
            spans += self._spans(plain, starts)
        kept, at = [], 0
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            if start >= at:
                kept += [text[at:start], MASK]
            at = max(at, end)
        return "".join(kept) + text[at:]

    def _spans(self, plain: str, starts: Sequence[int]) -> Iterator[tuple[int, int]]:
        for match in self._pattern.finditer(plain):
            yield starts[match.start()], starts[match.end()]
        if self._is_encoded_in(plain):
            for sign, forms in ((_DIGIT, self._hex), (_SIGN, self._base64)):
                places = [m.start() for m in re.finditer(sign, plain) if m[1]]
                signs = "".join([plain[at] for at in places])
                if sign is _DIGIT:
                    signs = signs.lower()
                for match in re.finditer(b"|".join(forms).decode() or "$.", signs):
                    yield starts[places[match.start()]], starts[places[match.end() - 1] + 1]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self._forms)))


def _length(value: str) -> tuple[int, str]:
    return -len(value), value


def _parts(value: str) -> Iterator[str]:
    # A line end within a value is written as an escape, or breaks it in two.
    for part in (value.strip(), *value.split()):
        if len(part) >= SHORTEST and part not in _STAND_INS:
            yield part


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _base64(value: str) -> Iterator[str]:
    raw = _bytes(value)
    for offset in range(3):
        # The text around the secret is unknown, so only those letters count that depend on the
        # secret alone.
        encoded = b64encode(bytes(offset) + raw + bytes(2)).decode()
        letters = encoded[-(-8 * offset // 6) : 8 * (offset + len(raw)) // 6]
        yield from (letters, letters.translate(_URL_SAFE))


def _signs(content: bytes) -> bytes:
    """Its letters and digits, without those of escaped line ends."""
    if b"\\" in content or b"%" in content or b"&" in content:
        content = re.sub(_BREAKS, b"", content)
    return content.translate(None, _NO_SIGN)


def _longest_run(value: str) -> str:
    return max(re.split(r"[^A-Za-z0-9]", value), key=len)


def _spellings(form: str) -> Iterator[str]:
    """What is left of it once its escapes are read, and those that only look like some."""
    yield from (form, form.replace("\n", "n"))
    if not form.isascii():
        units = form.encode("utf-16-be", "surrogatepass")
        yield "".join(chr(int.from_bytes(units[at : at + 2])) for at in range(0, len(units), 2))
        yield _bytes(form).decode("latin-1")
    for _ in range(_MAX_LAYERS):
        if not any(mark in form for mark in "\\%&"):
            return
        form = re.sub(_ESCAPE, _character, form)
        if len(form) >= _SHORTEST_FORM:
            yield form


def _character(match: re.Match[str]) -> str:
    """What an escape stands for; nothing, for backslashes before an escape of another kind."""
    kind = match.lastindex
    if kind is None:
        return ""
    written = match[kind]
    if kind == _RUN:
        return bytes.fromhex(written.replace("%", "")).decode("latin-1")
    if kind < _DECIMAL:
        return chr(int(written, 16))
    if kind == _DECIMAL:
        return chr(int(written))
    return _named(written) if kind == _NAME else written


def _named(name: str) -> str:
    """What HTML calls so, or the name as it stands there."""
    from html.entities import html5

    return html5.get(f"{name};", f"&{name};").translate(_HYPHENS)


def _starts(text: str) -> list[int]:
    """Where each character of the text without escapes begins in the text, and where it ends."""
    starts: list[int] = []
    end = 0
    for match in re.finditer(_ESCAPE, text):
        starts += range(end, match.start())
        end = match.end()
        if n_characters := len(_character(match)):
            places = range(match.start(), end, (end - match.start()) // n_characters)
            starts += places[:n_characters]
    return [*starts, *range(end, len(text) + 1)]
