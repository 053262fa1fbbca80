"""Whether programs could reach anything, if the kernel let them."""

import socket
from pathlib import Path

_INTERFACES = Path("/sys/class/net")
_LOOP = "lo"
_IS_UP = 1


def is_network_open() -> bool:
    """Whether any network interface is up, except the loop; one that tells nothing counts as up."""
    names = [name for _, name in socket.if_nameindex() if name != _LOOP]
    return any(_flags(name) & _IS_UP for name in names)


def _flags(name: str) -> int:
    try:
        return int((_INTERFACES / name / "flags").read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return _IS_UP
