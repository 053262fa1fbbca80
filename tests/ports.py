"""A port for a server that begins later, or anew."""

import socket


def reserved() -> socket.socket:
    """Holds a port of 127.0.0.1: until it is closed nobody else is given that one by chance, as
    other tests' servers and connections are. A server that is told to may listen there.
    """
    holding = socket.socket()
    holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holding.bind(("127.0.0.1", 0))
    return holding


def number(holding: socket.socket) -> int:
    port: int = holding.getsockname()[1]
    return port
