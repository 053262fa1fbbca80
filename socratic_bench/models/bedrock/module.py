"""How Bedrock is come by: what it makes of a configuration, and the connection to it."""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from socratic_bench.errors import Problem
from socratic_bench.generation import MIN_THINKING_TOKENS
from socratic_bench.models.bedrock.capabilities import capabilities_of
from socratic_bench.ports.provider import Provider, ProviderModule
from socratic_bench.settings import OFFLINE_REGION, CoreConfig
from socratic_bench.settings.requested import asked_settings, setting_name

if TYPE_CHECKING:
    from socratic_bench.emulator import Emulator
    from socratic_bench.errors import CheckResult
    from socratic_bench.models.bedrock.session import Endpoint, SdkSession
    from socratic_bench.ports.provider import Quota


class _Bedrock(ProviderModule):
    name = "bedrock"

    def problems(self, config: CoreConfig) -> Iterator[Problem]:
        """The settings of the model under test that it is known not to take."""
        can = capabilities_of(config.model)
        asked = asked_settings(config.generation)
        for field in ("temperature", "top_p", "both_samplings", "thinking"):
            if field in asked and not getattr(can, field):
                yield Problem.of(
                    f"{{tested}} takes no {setting_name(field)}: leave it out.", tested=config.model
                )

    def notices(self, config: CoreConfig) -> Iterator[str]:
        """What becomes of a setting that the model under test takes in another form only."""
        form, budget = capabilities_of(config.model).thinking, config.thinking_budget_tokens
        if budget not in (None, MIN_THINKING_TOKENS) and form not in (None, "budget"):
            # In these words it is stored with earlier runs: in others a resumed one would tell it
            # twice.
            yield (
                f"{config.model} thinks by levels, not by a budget: --thinking-budget-tokens "
                f"{budget} chooses the level."
            )

    def sdk_version(self) -> str:
        """That of its core, which shapes and signs requests: boto3 is a thin layer over it."""
        import botocore

        return f"botocore {botocore.__version__}"

    def prepare(self, config: CoreConfig) -> "SdkSession | None":
        """The SDK's session, so that what a prompt may hold of its credentials is masked from the
        start; `None` where variables alone tell them.
        """
        if config.offline or os.environ.get("AWS_ACCESS_KEY_ID"):
            return None
        from socratic_bench.models.bedrock.session import open_session

        return open_session(_endpoint(config, None))

    def identities(self, config: CoreConfig) -> "Iterable[CheckResult]":
        from socratic_bench.models.bedrock.account import identities

        return [*identities(config)]

    def quotas(self, config: CoreConfig, model_ids: Sequence[str]) -> "Mapping[str, Quota]":
        from socratic_bench.models.bedrock.account import quotas

        return quotas(config, model_ids)

    def connection_key(self, config: CoreConfig) -> Hashable:
        """See `ProviderModule.connection_key`: a client has one timeout for all its reads."""
        return (config.offline, config.region, config.assume_role_arn, config.call_timeout_s)

    def for_run(self, provider: Provider, config: CoreConfig) -> Provider:
        from socratic_bench.models.bedrock.observed import Options
        from socratic_bench.models.bedrock.provider import BedrockProvider

        assert isinstance(provider, BedrockProvider)  # noqa: S101 -- `open` gave it
        return provider.with_options(Options.of(config))

    @contextmanager
    def open(
        self, config: CoreConfig, prepared: "SdkSession | None", monotonic_s: Callable[[], float]
    ) -> Iterator[Provider]:
        """See `ProviderModule.open`; offline, of an endpoint that is embedded in this process."""
        from socratic_bench.models.bedrock.connection import Connection
        from socratic_bench.models.bedrock.observed import Options
        from socratic_bench.models.bedrock.provider import BedrockProvider

        with ExitStack() as stack:
            url = stack.enter_context(_embedded()).url if config.offline else None
            opened = Connection(_endpoint(config, url), session=prepared)
            connection = stack.enter_context(closing(opened))
            yield BedrockProvider(connection, Options.of(config), monotonic_s=monotonic_s)


def _embedded() -> "Emulator":
    from socratic_bench.emulator import Emulator, Settings

    return Emulator(Settings(any_model=True))


def _endpoint(config: CoreConfig, url: str | None) -> "Endpoint":
    from socratic_bench.models.bedrock.session import Endpoint

    return Endpoint(
        region=config.region or OFFLINE_REGION,
        url=url,
        assume_role_arn=config.assume_role_arn,
        call_timeout_s=config.call_timeout_s,
    )


PROVIDER = _Bedrock()
