"""Refuses requests from web pages: only programs that use one of the endpoint's own names may call
it.

A browser sends a page's requests to this machine, too, and a site can have its own name point here
(DNS rebinding). Both show in what the browser says of itself: `Host`, `Origin`, `Sec-Fetch-Site`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from socratic_bench.emulator.errors import ServiceError

_HOST_AND_PORT = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]/@\s]+)(?::(\d{1,5}))?")
_OTHER_SITES = ("cross-site", "same-site")


class Gate:
    """The names by which an endpoint may be called.

    These are the loopback device's, the address (and port) at which a client has reached it, the
    one that it was told to listen on, and those that its user allows.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = {name.lower() for name in allowed}
        self._bound: set[str] = set()
        self._is_own = lru_cache(maxsize=256)(self._names_the_endpoint)

    def listens_at(self, *names: str) -> None:
        """Take a name or an address on which the endpoint listens for one of its own."""
        self._bound.update(name.lower() for name in names)
        self._is_own.cache_clear()

    def check(self, headers: Mapping[str, str], local: tuple[str, int]) -> None:
        """Raise an error for a request that another name or another site's page has led here."""
        host = headers.get("host")
        if host is None:
            raise ServiceError(400, "ValidationException", "The request has no Host header.")
        if not self._is_own(host, local):
            name = host[:100]
            raise _denied(
                f"This endpoint is not called {name!r}. If that is a name of its own, start it "
                "with --allowed-host and that name."
            )
        own_origin = f"http://{host.lower()}"
        origin = headers.get("origin", own_origin).lower()
        if origin != own_origin or headers.get("sec-fetch-site") in _OTHER_SITES:
            raise _denied("A page of another site may not call this endpoint.")

    def _names_the_endpoint(self, host: str, local: tuple[str, int]) -> bool:
        text = host.lower()
        found = _HOST_AND_PORT.fullmatch(text)
        if found is None:
            return False
        name = found[1].removesuffix(".")
        if {name, text} & self._allowed or name == "localhost" or name.endswith(".localhost"):
            return True
        bare = name.strip("[]")
        address = _address(bare)
        if address is not None and address.is_loopback:
            return True
        at_home = bare in self._bound or (address is not None and address == _address(local[0]))
        return at_home and found[2] in (None, str(local[1]))


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _denied(message: str) -> ServiceError:
    return ServiceError(403, "AccessDeniedException", message)
