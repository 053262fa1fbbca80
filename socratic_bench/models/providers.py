"""Who answers, by name; each is one module, imported when it is asked for."""

from importlib import import_module
from typing import TYPE_CHECKING

from socratic_bench.errors import Problem, UsageError

if TYPE_CHECKING:
    from socratic_bench.ports.provider import ProviderModule

PROVIDERS = {
    "bedrock": "socratic_bench.models.bedrock.module",
}


def load_provider(name: str) -> "ProviderModule":
    """The provider of that name. Raises `UsageError` for an unknown one."""
    if name not in PROVIDERS:
        known = ", ".join(sorted(PROVIDERS))
        raise UsageError(
            [Problem.of("No {provider} {name!r}: there is {known}.", name=name, known=known)]
        )
    provider: ProviderModule = import_module(PROVIDERS[name]).PROVIDER
    return provider
