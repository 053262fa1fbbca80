"""Hints that need more than a failure's kind: which login, which endpoint, similar model ids."""

import shlex
from collections.abc import Mapping
from urllib.parse import urlsplit

from botocore.exceptions import LoginError

from socratic_bench.errors import Words, followed
from socratic_bench.models.bedrock.listing import Listing
from socratic_bench.ports.provider import ErrorKind


def better_hint(
    error: ErrorKind,
    cause: Exception,
    *,
    model_id: str,
    environ: Mapping[str, str],
    listing: Listing,
) -> Words | None:
    """The hint that fits this very failure; `None`, if no more is known than its kind."""
    match error.code:
        case "expired_login":
            return _login_hint(cause, environ)
        case "needs_profile":
            return _profile_hint(listing.profiles_of(model_id))
        case "unknown_model" | "legacy_model":
            near = listing.near(model_id)
            return _followed(error, f"Near matches here: {', '.join(near)}." if near else None)
        case "connection" | "connection_lost" | "read_timeout" | "tls":
            origin = _origin(cause)
            return _followed(error, f"The endpoint is {origin}" if origin else None)
        case _:
            return None


def _followed(error: ErrorKind, more: str | None) -> Words | None:
    return followed(error.hint or "", more) if more else None


def _login_hint(cause: Exception, environ: Mapping[str, str]) -> str:
    command = "aws login" if isinstance(cause, LoginError) else "aws sso login"
    profile = environ.get("AWS_PROFILE") or environ.get("AWS_DEFAULT_PROFILE")
    return f"Log in again with: {command}" + (
        f" --profile {shlex.quote(profile)}" if profile else ""
    )


def _profile_hint(profiles: tuple[str, ...]) -> str | None:
    if not profiles:
        return None
    return f"Use an inference profile of the model in place of its id: {', '.join(profiles)}."


def _origin(cause: Exception) -> str | None:
    """Scheme, host and port of what did not answer: Bedrock, or the service that gives the role."""
    said: Mapping[str, object] = getattr(cause, "kwargs", {})
    url = urlsplit(str(said.get("endpoint_url", "")))
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}" if url.netloc else None
