"""What the error of a request is, and all that can be said of it."""

from contextlib import suppress

from socratic_bench.concurrency import start_thread
from socratic_bench.errors import BenchError, InternalError, ModelError, Problem, Stopped, Words
from socratic_bench.generation import chosen_settings, setting_text
from socratic_bench.models.context import CallContext
from socratic_bench.ports.provider import INVALID_REQUEST, ErrorKind, Provider, common_kind
from socratic_bench.types import Request

METADATA = "request_metadata"


def kind_of(error: Exception, provider: Provider, model_id: str) -> ErrorKind | None:
    """What the error of a request is; `None` for a defect."""
    with suppress(Exception):  # the defect that is told is the first one
        return provider.error_kind(error) or common_kind(error, model_id)
    return None


def with_hint(
    error: Exception,
    kind: ErrorKind | None,
    request: Request,
    context: CallContext,
    *,
    is_tested: bool,
) -> BenchError:
    """The error with a better hint, and the setting that is refused, where there are any.

    `is_tested`: the call was to the model under test.
    """
    told = error if isinstance(error, BenchError) else InternalError.of(error)
    if error is context.cancel_token.error:
        return Stopped.of(told)  # the run's is one object for all calls
    if isinstance(error, ModelError) and kind:
        if better := _better_hint(kind, context):
            error.hint = better
        return explained(
            error, kind.refused, request, is_tested=is_tested, metadata=context.has_metadata
        )
    return told


def explained(
    error: ModelError, refused: str | None, request: Request, *, is_tested: bool, metadata: bool
) -> ModelError:
    """The error by the setting that was refused; the same error if it was none.

    Where the service does not tell what it refuses, the hint names the settings that it may be,
    `metadata` among them. `is_tested`: the request is to the model under test, whom settings of the
    user's are for.
    """
    asked = chosen_settings(request.config) if is_tested else []
    if refused and (refused in (METADATA, *asked) or (is_tested and refused == "max_tokens")):
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
    optional = [setting_text(name) for name in asked if name != "both_samplings"]
    optional += [setting_text(METADATA)] if metadata else []
    if error.code == INVALID_REQUEST and optional:
        may_be = " or ".join(optional)
        error.hints = (*error.hints, Problem.of(f"Of your settings it may be {may_be}."))
    return error


def _better_hint(kind: ErrorKind, context: CallContext) -> Words | None:
    if kind.look_up is None:
        return None
    with suppress(BenchError):
        return context.cancel_token.result(start_thread(kind.look_up))
    return None
