"""What is known of the error of a call: its kind, the setting that was refused, a better hint."""

from contextlib import suppress

from socratic_bench.concurrency import start_thread
from socratic_bench.errors import BenchError, InternalError, ModelError, Problem, Stopped, Words
from socratic_bench.generation import chosen_settings, setting_text
from socratic_bench.models.cancel import CancelToken
from socratic_bench.ports.provider import INVALID_REQUEST, ErrorKind, Provider, common_kind
from socratic_bench.types import Request

METADATA = "request_metadata"


def kind_of(error: Exception, provider: Provider, model_id: str) -> ErrorKind | None:
    """The kind of a request's error; `None` for a defect."""
    with suppress(Exception):  # of two defects the first one is reported
        return provider.error_kind(error) or common_kind(error, model_id)
    return None


def describe(
    error: Exception,
    kind: ErrorKind | None,
    request: Request,
    cancel_token: CancelToken,
    *,
    is_tested: bool,
    has_metadata: bool,
) -> BenchError:
    """The error of a call with a better hint, and the setting that is refused, where there are any.

    `is_tested`: the call was to the model under test. `has_metadata`: see `CallContext`.
    """
    if error is cancel_token.error and isinstance(error, BenchError):
        return Stopped.of(error)  # the run's is one object for all calls
    if not isinstance(error, BenchError):
        return InternalError.of(error)
    if not (isinstance(error, ModelError) and kind):
        return error
    if hint := _looked_up_hint(kind, cancel_token):
        error.hint = hint
    return explained(error, kind.refused, request, is_tested=is_tested, metadata=has_metadata)


def explained(
    error: ModelError, refused: str | None, request: Request, *, is_tested: bool, metadata: bool
) -> ModelError:
    """The error by the setting that was refused; the same error if it was none.

    Where the service does not tell what it refuses, the hint names the settings that it may be,
    `metadata` among them. `is_tested`: the request is to the model under test, whom settings of the
    user's are for.
    """
    requested = chosen_settings(request.config) if is_tested else []
    if refused and (refused in (METADATA, *requested) or (is_tested and refused == "max_tokens")):
        name = setting_text(refused)
        return ModelError(
            Problem.of(f"The model refuses {name}. {{why}}", why=error.message),
            code="refused_setting",
            end_reason="refused_request",
            hint=Problem.of(
                f"Leave out {name}, give it another value, or test a model that takes it."
            ),
        )
    # With both samplings it is one of the others.
    optional = [setting_text(name) for name in requested if name != "both_samplings"]
    optional += [setting_text(METADATA)] if metadata else []
    if error.code == INVALID_REQUEST and optional:
        may_be = " or ".join(optional)
        error.hints = (*error.hints, Problem.of(f"Of your settings it may be {may_be}."))
    return error


def _looked_up_hint(kind: ErrorKind, cancel_token: CancelToken) -> Words | None:
    """What the provider can find out about the error by another request."""
    if kind.look_up is None:
        return None
    with suppress(BenchError):
        return cancel_token.result(start_thread(kind.look_up))
    return None
