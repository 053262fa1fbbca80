"""Keeps credentials out of all that leaves the program: documents, artifacts, errors, stderr.

What is known to be secret is the environment's credentials and what the SDK sends with its
requests. `conceal` masks just that, and so may be used on what models said; `redact` masks whatever
looks like a credential, too, and is for words about the run.
"""

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote

MASK = "***"

# Nothing shorter is known by its value: it would be found in ordinary words.
SHORTEST = 8
SHORTEST_PASSWORD = 4
# A stand-in for a key, such as people give to an emulator: nothing that AWS gives out is a word.
_WORD = re.compile(r"[a-z]{1,15}")

_NAME = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|SECURITY_TOKEN|BEARER_TOKEN_\w+"
    r"|CONTAINER_AUTHORIZATION_TOKEN)"
)
_URL_NAME = re.compile(
    r"AWS_ENDPOINT_URL\w*|AWS_CONTAINER_CREDENTIALS_FULL_URI|\w+_PROXY", re.IGNORECASE
)

# A group that stays, then the credential. Compiled when something is told of a run.
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


def conceal(text: str, known: tuple[str, ...] | None = None) -> str:
    """The text without any known secret; `known` saves looking them up for each of many texts."""
    for secret in known_secrets() if known is None else known:
        if secret in text:
            text = text.replace(secret, MASK)
    return text


def redact(text: str) -> str:
    """The text without known secrets, passwords in URLs, signatures, tokens and access keys."""
    found = {*known_secrets(), *_passwords(os.environ)}
    text = conceal(text, tuple(sorted(found, key=len, reverse=True)))
    for pattern in _PATTERNS:
        text = re.sub(pattern, lambda match: "".join(filter(None, match.groups())) + MASK, text)
    return text


def known_secrets() -> tuple[str, ...]:
    """Every known secret in each way to write it, the longest first."""
    values = [value for name, value in os.environ.items() if _NAME.fullmatch(name)]
    found = {form for value in (*values, *_learned) for form in _forms(value)}
    return tuple(sorted(found, key=len, reverse=True))


def learn_headers(headers: Mapping[str, str | bytes]) -> None:
    """Remember the credentials of a request that is about to be sent, wherever they are from."""
    global _learned  # noqa: PLW0603 -- secrets belong to the process, as its environment does
    token = _header(headers, "X-Amz-Security-Token")
    authorization = _header(headers, "Authorization")
    found = {token, authorization.partition("Credential=")[2].partition("/")[0]}
    if authorization.startswith("Bearer "):
        found.add(authorization.removeprefix("Bearer "))
    with _lock:
        _learned |= {value for value in found if len(value) >= SHORTEST}


def _header(headers: Mapping[str, str | bytes], name: str) -> str:
    value = headers.get(name) or ""
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _forms(value: str) -> Iterator[str]:
    # A line end within a value is written as an escape, or breaks it in two.
    for part in (value.strip(), *value.split()):
        if len(part) >= SHORTEST and not _WORD.fullmatch(part):
            yield from {part, quote(part, safe=""), json.dumps(part)[1:-1], repr(part)[1:-1]}


def _passwords(environ: Mapping[str, str]) -> Iterator[str]:
    """What an error may quote of a URL with a password: any piece of it, where it is no URL."""
    for name, value in environ.items():
        if _URL_NAME.fullmatch(name):
            user, _, password = (
                (value.partition("://")[2] or value).rpartition("@")[0].partition(":")
            )
            whole = password or user
            forms = (whole, unquote(whole), *re.split(r"[/?#:@\s]", whole))
            yield from (form for form in forms if len(form) >= SHORTEST_PASSWORD)
