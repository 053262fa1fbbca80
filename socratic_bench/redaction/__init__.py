"""Keeps credentials out of all that leaves the program: documents, artifacts, errors, stderr.

What is known to be secret is what the SDK may sign with: credentials in variables and files, and
what it was given by others or sends with its requests. `known_secrets` are just that, and so may
be looked for in what models said; `redact` masks whatever looks like a credential, too, and is for
words about the run.
"""

import os
import re
import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache

from socratic_bench.redaction import sources
from socratic_bench.redaction.forms import MASK, SHORTEST, Secrets

__all__ = ["MASK", "known_secrets", "learn", "learn_headers", "look_again", "redact"]

# A group that stays, then the credential. Compiled at first use.
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
_standing: frozenset[str] | None = None  # in variables and files, when they were last looked at


def redact(text: str) -> str:
    """The text without known secrets, passwords in URLs, signatures, tokens and access keys."""
    look_again()
    text = _secrets(_values(), frozenset(sources.passwords(os.environ))).masked(text)
    for pattern in _PATTERNS:
        text = re.sub(pattern, lambda match: "".join(filter(None, match.groups())) + MASK, text)
    return text


def known_secrets() -> Secrets:
    """All secrets known by now; for many texts, ask once."""
    if _standing is None:
        look_again()
    return _secrets(_values(), frozenset())


def look_again() -> None:
    """Read variables and files anew, as a run begins or an error is told; not for each text."""
    global _standing  # noqa: PLW0603 -- see `learn`
    _standing = frozenset((*sources.of_variables(os.environ), *sources.of_files(os.environ)))


def learn(values: Iterable[str | None]) -> bool:
    """Remember credentials, wherever they are from; whether there were new ones among them."""
    global _learned  # noqa: PLW0603 -- secrets belong to the process, as its environment does
    found = {value for value in values if value and len(value) >= SHORTEST}
    if found <= _learned:
        return False
    with _lock:
        is_new = not found <= _learned
        _learned |= found
    return is_new


def learn_headers(headers: Mapping[str, str | bytes]) -> bool:
    """Remember the credentials of a request that is about to be sent; whether they were new."""
    authorization = _header(headers, "Authorization")
    bearer = authorization.removeprefix("Bearer ") if authorization.startswith("Bearer ") else None
    return learn(
        [
            _header(headers, "X-Amz-Security-Token"),
            _header(headers, "x-amz-sso_bearer_token"),
            authorization.partition("Credential=")[2].partition("/")[0],
            bearer,
        ]
    )


def _values() -> frozenset[str]:
    return _learned | _standing if _standing else _learned


@lru_cache(maxsize=16)
def _secrets(values: frozenset[str], passwords: frozenset[str]) -> Secrets:
    return Secrets(values, passwords)


def _header(headers: Mapping[str, str | bytes], name: str) -> str:
    value = headers.get(name) or ""
    return value.decode("latin-1") if isinstance(value, bytes) else value
