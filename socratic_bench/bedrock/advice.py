"""Hints that take more than the kind of a failure: whose login, which endpoint, what is near."""

import shlex
from collections.abc import Mapping

from botocore.exceptions import LoginError

from socratic_bench.errors import ModelError


def better_hint(error: ModelError, environ: Mapping[str, str]) -> str | None:
    """A hint that fits this very failure, or `None` if its kind's hint says all."""
    if error.code == "expired_login":
        return _login_hint(error, environ)
    return None


def _login_hint(error: ModelError, environ: Mapping[str, str]) -> str:
    command = "aws login" if isinstance(error.__cause__, LoginError) else "aws sso login"
    profile = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE")
    return f"Log in again with: {command}" + (
        f" --profile {shlex.quote(profile)}" if profile else ""
    )
