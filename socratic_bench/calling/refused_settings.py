"""Names the setting that a service refuses, where it is one that somebody asked for."""

from socratic_bench.errors import ModelError, Problem
from socratic_bench.settings.asked import asked_settings, setting_name
from socratic_bench.types import Request

METADATA = "request_metadata"


def explained(
    error: ModelError, refused: str | None, request: Request, *, is_tested: bool, metadata: bool
) -> ModelError:
    """The error by the setting that was refused; the same error if it was none.

    Where the service does not tell what it refuses, the hint names the settings that it may be,
    `metadata` among them. `is_tested`: the request is to the model under test, whom settings of the
    user's are for.
    """
    asked = asked_settings(request.config) if is_tested else []
    if refused and (refused in (METADATA, *asked) or (is_tested and refused == "max_tokens")):
        name = setting_name(refused)
        return ModelError(
            Problem.of(f"The model refuses {name}. {{why}}", why=error.message),
            code="refused_setting",
            end_reason="refused_request",
            hint=Problem.of(
                f"Leave out {name}, give it another value, or test a model that takes it."
            ),
        )
    # With both samplings it is one of the others.
    optional = [setting_name(name) for name in asked if name != "both_samplings"]
    optional += [setting_name(METADATA)] if metadata else []
    if error.code == "invalid_request" and optional:
        may_be = " or ".join(optional)
        error.hints = (*error.hints, Problem.of(f"Of your settings it may be {may_be}."))
    return error
