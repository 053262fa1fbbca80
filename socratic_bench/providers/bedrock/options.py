"""How a run wants its models on Bedrock called."""

from msgspec import Struct

from socratic_bench.providers.bedrock.capabilities import Capabilities
from socratic_bench.settings import CoreConfig


class Options(Struct, frozen=True, kw_only=True):
    """What every request of a run has or lacks: `metadata` goes with each."""

    stream: bool = True
    prompt_cache: bool = True
    metadata: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, config: CoreConfig) -> "Options":
        return cls(
            stream=config.stream,
            prompt_cache=config.prompt_cache,
            metadata=config.request_metadata,
        )

    def limit(self, can: Capabilities) -> Capabilities:
        """What is left of a model's capabilities."""
        if not self.stream:
            can = can.without("streaming")
        return can if self.prompt_cache else can.without("prompt_cache")
