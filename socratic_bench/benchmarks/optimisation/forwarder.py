"""Inside the isolation of an external agent: passes its requests on to the harness's socket.

A script of the standard library alone: SOCKET COMMAND. It listens on a port of its own at
127.0.0.1, names it to the SDK by the environment, and becomes the command.
"""

import os
import socket
import sys
import threading
from contextlib import suppress

PIECE_BYTES = 65_536


def main() -> None:
    path, command = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", 0))
    os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
    if os.fork():
        listener.close()
        os.execv("/bin/sh", ["sh", "-c", command])  # noqa: S606 -- what this is for
    for descriptor in range(3):  # a reader sees the end of the command's output
        os.close(descriptor)
    folder, name = os.path.split(path)
    os.chdir(folder)  # the path of a socket may have 107 bytes
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, name), daemon=True).start()


def serve(client: socket.socket, name: str) -> None:
    harness = socket.socket(socket.AF_UNIX)
    with client, harness, suppress(OSError):
        harness.connect(name)
        threading.Thread(target=pass_on, args=(harness, client), daemon=True).start()
        pass_on(client, harness)


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE_BYTES):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main()
