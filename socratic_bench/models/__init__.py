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
    "openai": "socratic_bench.models.openai_chat",
    "imported": "socratic_bench.models.imported",
}

NO_EXTRA = (
    "Models of {name}/ need the extra {name}: pip install 'socratic-runner[{name}]', or the "
    "image's target full, has it."
)


def load_provider(name: str) -> ProviderModule:
    """The provider of that name, see `socratic_bench.settings.provider_of`.

    Raises `UsageError` where the extra that it needs is not installed.
    """
    try:
        provider: ProviderModule = import_module(PROVIDERS[name]).PROVIDER
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("socratic_bench"):
            raise
        raise UsageError([Problem.of(NO_EXTRA, name=name)]) from error
    return provider
