"""How a run gets Bedrock: what Bedrock makes of a configuration, and the connection to it."""

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager

import botocore
from botocore.session import Session

from socratic_bench.catalogue.models import capabilities_of
from socratic_bench.errors import CheckResult, Problem
from socratic_bench.generation import MIN_THINKING_TOKENS, chosen_settings, setting_text
from socratic_bench.models.bedrock import account
from socratic_bench.models.bedrock.capabilities import Options
from socratic_bench.models.bedrock.provider import BedrockProvider, Connection
from socratic_bench.models.bedrock.session import Endpoint, open_session
from socratic_bench.ports.provider import Provider, ProviderModule, Quota
from socratic_bench.settings import OFFLINE_REGION, CoreConfig


class Bedrock(ProviderModule):
    """Amazon Bedrock as a `ProviderModule`."""

    name = "bedrock"

    def problems(self, config: CoreConfig) -> Iterator[Problem]:
        """The settings of the model under test that it is known not to take."""
        capabilities = capabilities_of(config.model)
        requested = chosen_settings(config.generation)
        for field in ("temperature", "top_p", "both_samplings", "thinking"):
            if field in requested and not getattr(capabilities, field):
                yield Problem.of(
                    f"{{tested}} takes no {setting_text(field)}: leave it out.", tested=config.model
                )

    def notices(self, config: CoreConfig) -> Iterator[str]:
        """What becomes of a setting that the model under test takes in another form only."""
        form, budget = capabilities_of(config.model).thinking, config.thinking_budget_tokens
        if budget not in (None, MIN_THINKING_TOKENS) and form not in (None, "budget"):
            # Stored with earlier runs: in other words, a resumed run would have it twice.
            yield (
                f"{config.model} thinks by levels, not by a budget: --thinking-budget-tokens "
                f"{budget} chooses the level."
            )

    def sdk_version(self) -> str:
        """That of its core, which shapes and signs requests: boto3 is a thin layer over it."""
        return f"botocore {botocore.__version__}"

    def prepare(self, config: CoreConfig) -> Session | None:
        """The SDK's session, so that its credentials are masked in a prompt from the start; `None`
        where they are in variables.
        """
        if config.offline or os.environ.get("AWS_ACCESS_KEY_ID"):
            return None
        return open_session(_endpoint(config, None))

    def identities(self, config: CoreConfig) -> Iterable[CheckResult]:
        return [*account.identities(config)]

    def quotas(self, config: CoreConfig, model_ids: Sequence[str]) -> Mapping[str, Quota]:
        return account.quotas(config, model_ids)

    def connection_key(self, config: CoreConfig) -> Hashable:
        """See `ProviderModule.connection_key`: a client has one timeout for all its reads."""
        return (config.offline, config.region, config.assume_role_arn, config.call_timeout_s)

    def for_run(self, provider: Provider, config: CoreConfig) -> Provider:
        assert isinstance(provider, BedrockProvider)  # noqa: S101 -- `open` gave it
        return provider.with_options(Options.of(config))

    @contextmanager
    def open(
        self, config: CoreConfig, prepared: Session | None, monotonic_s: Callable[[], float]
    ) -> Iterator[Provider]:
        """See `ProviderModule.open`; offline, of an endpoint that is embedded in this process."""
        with ExitStack() as stack:
            url = None
            if config.offline:
                from socratic_bench.emulator import Emulator, Settings  # for who needs it only

                url = stack.enter_context(Emulator(Settings(any_model=True))).url
            connection = Connection(_endpoint(config, url), session=prepared)
            stack.enter_context(closing(connection))
            yield BedrockProvider(connection, Options.of(config), monotonic_s=monotonic_s)


def _endpoint(config: CoreConfig, url: str | None) -> Endpoint:
    return Endpoint(
        region=config.region or OFFLINE_REGION,
        url=url,
        assume_role_arn=config.assume_role_arn,
        call_timeout_s=config.call_timeout_s,
    )


PROVIDER = Bedrock()
