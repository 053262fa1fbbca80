"""Masks credentials in all that leaves the program: documents, artifacts, errors, stderr.

A credential is what the SDK may sign with: it stands in variables and in the SDK's files, or was
learned from what the SDK was given or sends. `known_secrets` looks for these values alone, so that
it can be used on what models say. `redact` masks whatever looks like a credential, too, and is for
the program's own words.
"""

import json
import os
import re
import stat
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

MASK = "***"
SHORTEST = 8  # shorter credentials are not masked: they would be found in ordinary words
SHORTEST_PASSWORD = 4  # of a URL
# Keys that users give to an emulator, and that every manual shows.
_STAND_INS = frozenset({"emulator", "socratic", "notarealkey"})

# What looks like a credential: a group that stays, then the credential.
_PATTERNS = (
    r"(://)[^\s/?#\"'`<>]*(?=@)",
    (
        r"(?i)([?&]|\b)((?:X-Amz-(?:Signature|Credential|Security-Token)|Signature|Credential"
        r"|AWSAccessKeyId)=)[^\s&,;\"'`<>]+"
    ),
    (
        r"(?i)((?:x-amz-security-token|secret_?access_?key|session_?token|authorization)"
        r"\\?[\"']?\s*[:=]\s*(?:b(?=[\"']))?\\?[\"']?(?:Basic |Bearer )?)(?!AWS4-)[^\s\\\"'&,<>}]+"
    ),
    r"(\bBearer )[\w.~+/=-]{20,}",
    r"\b()(?:AKIA|ASIA)[A-Z0-9]{12,}",
    r"\b()(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz|bedrock-api-key-|ABSK)[\w+/=%-]{16,}",
)

_lock = threading.Lock()
_learned: frozenset[str] = frozenset()
_standing: frozenset[str] | None = None  # in variables and files, when they were last read


class Secrets:
    """Values to mask: as they are, escaped for JSON, Python or a URL, and in Base64. `passwords`
    are masked at any length, but not in Base64.
    """

    def __init__(self, values: Iterable[str], passwords: Iterable[str] = ()) -> None:
        parts = {part for value in values for part in _parts(value)}
        plain = [*parts, *(letters for part in parts for letters in _base64(part)), *passwords]
        forms = {form for value in plain for form in _escaped(value)}
        self._forms = sorted(forms, key=len, reverse=True)
        self._runs = {_longest_run(form) for form in plain}

    def may_be_in(self, text: str) -> bool:
        """False if no secret is in the text, nor in any text that it has as JSON."""
        return any(run in text for run in self._runs)

    def masked(self, text: str) -> str:
        """The text with each of them replaced by `MASK`."""
        if self.may_be_in(text):
            for form in self._forms:
                text = text.replace(form, MASK)
        return text


def redact(text: str) -> str:
    """The text without known secrets, passwords in URLs, signatures, tokens and access keys."""
    look_again()
    text = _secrets(_values(), frozenset(_passwords(os.environ))).masked(text)
    for pattern in _PATTERNS:
        text = re.sub(pattern, lambda match: "".join(filter(None, match.groups())) + MASK, text)
    return text


def known_secrets() -> Secrets:
    """All secrets known by now; for many texts, call it once."""
    if _standing is None:
        look_again()
    return _secrets(_values(), frozenset())


def look_again() -> None:
    """Read variables and files anew, as a run begins or an error is shown; not for each text."""
    global _standing  # noqa: PLW0603 -- secrets belong to the process, as its environment does
    variables = {
        value
        for name, value in os.environ.items()
        if name.startswith("AWS_") and _VARIABLE.fullmatch(name)
    }
    _standing = _of_files(os.environ) | variables


def learn(values: Iterable[str | None]) -> bool:
    """Remember credentials; true if any of them was new."""
    global _learned  # noqa: PLW0603 -- see `look_again`
    secrets = {value for value in values if value and len(value) >= SHORTEST}
    with _lock:
        is_new = not secrets <= _learned
        _learned |= secrets
    return is_new


def learn_headers(headers: Mapping[str, str | bytes]) -> bool:
    """Remember the credentials of a request that is about to be sent; true if any was new."""

    def header(name: str) -> str:
        value = headers.get(name) or ""
        return value.decode("latin-1") if isinstance(value, bytes) else value

    authorization = header("Authorization")
    bearer = authorization.removeprefix("Bearer ") if authorization.startswith("Bearer ") else None
    return learn(
        [
            header("X-Amz-Security-Token"),
            header("x-amz-sso_bearer_token"),
            authorization.partition("Credential=")[2].partition("/")[0],
            bearer,
        ]
    )


def _values() -> frozenset[str]:
    return _learned | _standing if _standing else _learned


@lru_cache(maxsize=16)
def _secrets(values: frozenset[str], passwords: frozenset[str]) -> Secrets:
    return Secrets(values, passwords)


def _parts(value: str) -> Iterator[str]:
    """The value and each of its lines or words, as far as they are long enough."""
    for part in (value.strip(), *value.split()):
        if len(part) >= SHORTEST and part not in _STAND_INS:
            yield part


def _quote(value: str) -> str:
    return quote(value, safe="", errors="surrogateescape")


_ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda value: json.dumps(value)[1:-1],
    lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    lambda value: value.replace("/", "\\/"),  # allowed in JSON
    lambda value: repr(value)[1:-1],
    lambda value: quote(value, errors="surrogateescape"),
    lambda value: quote_plus(value, errors="surrogateescape"),
    _quote,
    lambda value: re.sub("%..", lambda match: match[0].lower(), _quote(value)),
)


def _escaped(value: str) -> set[str]:
    """The value and its escaped forms, escaped up to twice, such as a URL in JSON."""
    forms = {value}
    for _ in range(2):
        forms |= {escape(form) for form in forms for escape in _ESCAPES}
    return forms


def _base64(value: str) -> Iterator[str]:
    """The value within a longer text in Base64: the letters that no neighbour changes."""
    raw = value.encode("utf-8", "surrogateescape")
    for offset in range(3):
        encoded = b64encode(bytes(offset) + raw + bytes(2)).decode()
        letters = encoded[-(-8 * offset // 6) : 8 * (offset + len(raw)) // 6]
        yield from (letters, letters.replace("+", "-").replace("/", "_"))


def _longest_run(value: str) -> str:
    """The longest part of letters and digits, which escaping does not change."""
    return max(re.split(r"[^A-Za-z0-9]", value), key=len)


# Where the SDK finds credentials before it asks anyone for them: variables and files.

_MAX_BYTES = 1_000_000  # the SDK's own files are far smaller
_MAX_FILES = 100
MAX_TOKEN_BYTES = 100_000  # no token is longer, nor what a program prints that gives keys
_VARIABLE = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|SECURITY_TOKEN|BEARER_TOKEN_\w+"
    r"|CONTAINER_AUTHORIZATION_TOKEN)"
)
_URL_VARIABLE = r"(?i)AWS_ENDPOINT_URL\w*|AWS_CONTAINER_CREDENTIALS_FULL_URI|\w+_PROXY"
# Files of settings, and folders of tokens, by the variable that names them.
_SETTINGS = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
    "BOTO_CONFIG": "~/.boto",
    "AWS_CREDENTIAL_FILE": "",
}
_CACHES = {"": "~/.aws/sso/cache", "AWS_LOGIN_CACHE_DIRECTORY": "~/.aws/login/cache"}
_TOKENS = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
_SETTING = (
    r"(?im)^\s*(?:aws_(?:access_key_id|secret_access_key|session_token|security_token)"
    r"|AWSAccessKeyId|AWSSecretKey)\s*[=:]\s*(\S.*)$"
)
_WEB_IDENTITY = r"(?m)^\s*web_identity_token_file\s*[=:]\s*(\S.*)$"
_FIELD = (
    r'(?i)"(?:(?:access|refresh|id|session)Token|(?:client|registrationClient)Secret|dpopKey'
    r'|accessKeyId|secretAccessKey)"\s*:\s*("(?:[^"\\]|\\.)*")'
)


def _passwords(environ: Mapping[str, str]) -> Iterator[str]:
    """The parts of a URL with a password that an error could quote, and the values of its query; of
    an endpoint that is no URL, any part: it may be a secret in the wrong place.
    """
    for name, value in environ.items():
        if re.fullmatch(_URL_VARIABLE, name):
            address = value.partition("://")[2] or value
            user, _, password = address.rpartition("@")[0].partition(":")
            secrets = [password or user, *re.findall(r"[?&][^?&#=]*=([^&#]*)", address)]
            if name.upper().startswith("AWS_ENDPOINT_URL") and not _is_url(value):
                secrets.append(address)
            for secret in secrets:
                forms = (secret, unquote(secret), *re.split(r"[/?#:@\s]", secret))
                yield from (form for form in forms if len(form) >= SHORTEST_PASSWORD)


def _is_url(value: str) -> bool:
    """Whether it has the form of a URL, with a number for a port if it has one, be it too large."""
    return (
        re.match(r"[a-z][a-z0-9+.-]*://([^/?#@]*@)?(\[[^]]*\]|[^/?#:@]+)(:\d*)?([/?#]|$)", value)
        is not None
    )


def _of_files(environ: Mapping[str, str]) -> frozenset[str]:
    """The credentials of every profile and login in the SDK's files, which are read once."""
    return _read_files(
        tuple(environ.get(name) or path for name, path in _SETTINGS.items()),
        tuple(filter(None, map(environ.get, _TOKENS))),
        tuple(environ.get(name) or path for name, path in _CACHES.items()),
        environ.get("HOME"),
    )


@lru_cache(maxsize=4)
def _read_files(
    settings: tuple[str, ...],
    tokens: tuple[str, ...],
    caches: tuple[str, ...],
    home: str | None,  # noqa: ARG001 -- another "~" means other files
) -> frozenset[str]:
    secrets: set[str] = set()
    for path in settings:
        text = _read(path)
        secrets.update(re.findall(_SETTING, text))
        secrets.update(_read_token(token.strip()) for token in re.findall(_WEB_IDENTITY, text))
    secrets.update(map(_read_token, tokens))
    for folder in caches:
        files: list[Path] = []
        with suppress(OSError, ValueError):
            paths = Path(os.path.expanduser(folder)).glob("*.json")  # noqa: PTH111 -- never raises
            files.extend(islice(paths, _MAX_FILES))
        for file in files:
            secrets.update(json.loads(value) for value in re.findall(_FIELD, _read(str(file))))
    return frozenset(secrets)


def _read_token(path: str) -> str:
    """The token in a file; "" for a text that is none."""
    text = _read(path)
    return text if len(text) <= MAX_TOKEN_BYTES and text.strip().isprintable() else ""


def _read(path: str) -> str:
    """The text of a file; "" for one that cannot be read, or is no plain file, such as a pipe."""
    with suppress(OSError, ValueError):
        full = Path(os.path.expanduser(path))  # noqa: PTH111 -- never raises
        if path and stat.S_ISREG(full.stat().st_mode):
            with full.open("rb") as file:
                return file.read(_MAX_BYTES).decode("utf-8", "replace")
    return ""
