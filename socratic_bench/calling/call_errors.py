"""What the error of a request is, and all that can be said of it."""

from contextlib import suppress

from socratic_bench.calling.context import CallContext
from socratic_bench.calling.refused_settings import explained
from socratic_bench.errors import BenchError, InternalError, ModelError, Stopped, Words
from socratic_bench.provider_ports import ErrorKind, Provider, common_kind
from socratic_bench.threads import RequestThreads
from socratic_bench.types import Request


def kind_of(error: Exception, provider: Provider, model_id: str) -> ErrorKind | None:
    """What the error of a request is; `None` for a defect."""
    with suppress(Exception):  # the defect that is told is the first one
        return provider.error_kind(error) or common_kind(error, model_id)
    return None


def told_of(
    error: Exception,
    kind: ErrorKind | None,
    request: Request,
    context: CallContext,
    threads: RequestThreads,
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
        if better := _better_hint(kind, context, threads):
            error.hint = better
        return explained(
            error, kind.refused, request, is_tested=is_tested, metadata=context.has_metadata
        )
    return told


def _better_hint(kind: ErrorKind, context: CallContext, threads: RequestThreads) -> Words | None:
    if kind.look_up is None:
        return None
    with suppress(BenchError):
        return context.cancel_token.result(threads.submit(kind.look_up))
    return None
