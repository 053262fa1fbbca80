"""What the emulator remembers of each request, for inspection."""

from msgspec import Struct


class RequestRecord(Struct, frozen=True, kw_only=True):
    """One request and how it was answered. `time` is Unix time; what a request lacks is `None`.

    `body` is kept only where the settings ask for it.
    """

    seq: int
    time: float
    connection: int
    operation: str
    model_id: str | None
    role: str | None
    turn: int | None
    status: int
    fault: str | None
    body_sha256: str
    body: bytes | None = None
