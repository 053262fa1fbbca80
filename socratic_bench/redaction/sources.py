"""Where the SDK finds credentials before it is asked for any: variables and files."""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

SHORTEST_PASSWORD = 4
# The SDK's own files are far smaller.
MAX_BYTES = 1_000_000
MAX_FILES = 100
# No token is as long, nor what a program prints that gives keys: STS takes 20,000 characters.
MAX_TOKEN_BYTES = 100_000

_NAME = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN|SECURITY_TOKEN|BEARER_TOKEN_\w+"
    r"|CONTAINER_AUTHORIZATION_TOKEN)"
)
_URL_NAME = r"(?i)AWS_ENDPOINT_URL\w*|AWS_CONTAINER_CREDENTIALS_FULL_URI|\w+_PROXY"
# What the SDK reads, by the variable that names it: settings, tokens, and folders of tokens.
_SETTINGS = {
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_CONFIG_FILE": "~/.aws/config",
    "BOTO_CONFIG": "~/.boto",
    "AWS_CREDENTIAL_FILE": "",
}
_TOKENS = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
_CACHES = {"": "~/.aws/sso/cache", "AWS_LOGIN_CACHE_DIRECTORY": "~/.aws/login/cache"}
_SETTING = (
    r"(?im)^\s*(?:aws_(?:access_key_id|secret_access_key|session_token|security_token)"
    r"|AWSAccessKeyId|AWSSecretKey)\s*[=:]\s*(\S.*)$"
)
_WEB_IDENTITY = r"(?m)^\s*web_identity_token_file\s*[=:]\s*(\S.*)$"
_FIELD = (
    r'(?i)"(?:(?:access|refresh|id|session)Token|(?:client|registrationClient)Secret|dpopKey'
    r'|accessKeyId|secretAccessKey)"\s*:\s*("(?:[^"\\]|\\.)*")'
)


def of_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """The credentials among the variables."""
    for name, value in environ.items():
        if name.startswith("AWS_") and _NAME.fullmatch(name):
            yield value


def passwords(environ: Mapping[str, str]) -> Iterator[str]:
    """The parts of a URL with a password that an error could quote; of what is no URL, any part."""
    for name, value in environ.items():
        if re.fullmatch(_URL_NAME, name):
            user, _, password = (
                (value.partition("://")[2] or value).rpartition("@")[0].partition(":")
            )
            whole = password or user
            forms = (whole, unquote(whole), *re.split(r"[/?#:@\s]", whole))
            yield from (form for form in forms if len(form) >= SHORTEST_PASSWORD)


def of_files(environ: Mapping[str, str]) -> frozenset[str]:
    """The credentials of every profile and login in the files that the SDK reads, once a process.

    A file that cannot be read tells nothing; what is no plain file, such as a pipe, is left alone.
    """
    named = {n: environ.get(n) or path for n, path in {**_SETTINGS, **_CACHES}.items()}
    tokens = tuple(filter(None, map(environ.get, _TOKENS)))
    return _read_all(
        tuple(named[name] for name in _SETTINGS),
        tokens,
        tuple(named[name] for name in _CACHES),
        environ.get("HOME"),
    )


@lru_cache(maxsize=4)
def _read_all(
    settings: tuple[str, ...],
    tokens: tuple[str, ...],
    caches: tuple[str, ...],
    home: str | None,  # noqa: ARG001 -- by which a "~" is another folder
) -> frozenset[str]:
    found: set[str] = set()
    for path in settings:
        if text := _read(path):
            found.update(re.findall(_SETTING, text))
            found.update(_token(token.strip()) for token in re.findall(_WEB_IDENTITY, text))
    found.update(map(_token, tokens))
    for folder in caches:
        for path in _json_files(folder):
            found.update(json.loads(value) for value in re.findall(_FIELD, _read(path)))
    return frozenset(found)


def _json_files(folder: str) -> list[str]:
    with suppress(OSError, ValueError):
        found = Path(os.path.expanduser(folder)).glob("*.json")  # noqa: PTH111 -- never raises
        return [str(path) for path, _ in zip(found, range(MAX_FILES), strict=False)]
    return []


def _token(path: str) -> str:
    """The token in a file, or "" if it is none: to search for every encoding of a long text would
    be slow.
    """
    text = _read(path)
    return text if len(text) <= MAX_TOKEN_BYTES and text.strip().isprintable() else ""


def _read(path: str) -> str:
    with suppress(OSError, ValueError):
        full = os.path.expanduser(path)  # noqa: PTH111 -- never raises
        if full and stat.S_ISREG(os.stat(full).st_mode):  # noqa: PTH116 -- quicker than a Path
            with open(full, "rb") as file:  # noqa: PTH123 -- likewise
                return file.read(MAX_BYTES).decode("utf-8", "replace")
    return ""
