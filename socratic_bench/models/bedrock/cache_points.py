"""Where a request says what is worth caching: prefixes that a later request begins with.

A cache point keeps all that stands before it: tools, then the system prompt, then the messages.
Under the model's minimum it has no effect and costs nothing; what was cached is told by the
counters alone.
"""

from socratic_bench.catalogue.token_bounds import schema_length
from socratic_bench.models.bedrock.capabilities import Capabilities
from socratic_bench.types import Request

CACHE_POINT = {"cachePoint": {"type": "default"}}

# Tokens have some four characters. Taken a little shorter, a prefix near the minimum gets its
# point, which is harmless if it turns out to be too short.
_CHARACTERS = 3


def caches_system(request: Request, can: Capabilities) -> bool:
    """Whether tools and system prompt are a prefix that is long enough by themselves."""
    if not (can.prompt_cache and can.system and request.system):
        return False
    length = len(request.system)
    if request.tool and can.forced_tool:
        length += schema_length(request.tool) + len(request.tool.description)
    return length >= can.cache_minimum * _CHARACTERS


def cached_messages(request: Request, can: Capabilities) -> tuple[int, ...]:
    """The messages after which a cache point stands: at most two, so that with the system's there
    are three of the four that the service allows.

    One point is in the last message, where this request writes for the next one; the other is in
    the user's message before, where the last request wrote. With both in the request, no model has
    to look back for what was written. A point stands behind the message's first block: a note that
    the next request has no more may follow it.
    """
    if not (can.prompt_cache and request.is_cacheable_prefix):
        return ()
    last = len(request.messages) - 1
    return (last - 2, last) if last > 1 else (last,)
