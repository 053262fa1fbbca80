"""Calls to models: how one is made (`call`), paced, paid for, ended, and what hears of it.

A provider, such as `bedrock`, sends the requests. `rate_limiter.RateTargets` and
`cancel.CancelToken` are for whoever runs several dialogues at once.
The door to providers is here: each is one module, imported when it is needed.
"""

from importlib import import_module

from socratic_bench.errors import Problem, UsageError
from socratic_bench.ports.provider import ProviderModule

PROVIDERS = {
    "bedrock": "socratic_bench.models.bedrock.module",
}


def load_provider(name: str) -> ProviderModule:
    """The provider of that name. Raises `UsageError` for an unknown one."""
    if name not in PROVIDERS:
        names = ", ".join(sorted(PROVIDERS))
        raise UsageError(
            [Problem.of("No {provider} {name!r}: there is {names}.", name=name, names=names)]
        )
    provider: ProviderModule = import_module(PROVIDERS[name]).PROVIDER
    return provider
