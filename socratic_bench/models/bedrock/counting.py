"""Has the service count a request's tokens: free of charge, best effort, and one short try."""

import threading
from collections.abc import Mapping
from typing import Any

from socratic_bench.catalogue.models import base_id
from socratic_bench.errors import ModelError
from socratic_bench.models.bedrock.credentials import make_ready
from socratic_bench.models.bedrock.error_kinds import TRANSLATED
from socratic_bench.models.bedrock.session import Endpoint, open_session, runtime_client
from socratic_bench.models.bedrock.wire import Wire
from socratic_bench.ports.provider import AnswerTimeoutError

MAX_WAIT_S = 2.0
# What is counted of a request; CountTokens takes no more.
_COUNTED = ("messages", "system", "toolConfig", "additionalModelRequestFields")
# Families that have the operation. It takes no inference profiles, so their model is named.
_FAMILIES = ("anthropic.claude", "emulator.")
_OPERATION = "bedrock-runtime.CountTokens"
_UNKNOWN = (*TRANSLATED, ModelError, KeyError, TypeError, AttributeError)


class Counts:
    """`tokens`: of the input, by model id, of those requests that were counted in time; `n_sent`:
    how many requests were sent for it.
    """

    def __init__(self) -> None:
        self.tokens: dict[str, int] = {}
        self.n_sent = 0
        self._lock = threading.Lock()
        self._is_over = False

    def note(self, **_event: object) -> None:
        """Note a request that is about to be sent; ignored once nobody waits for it."""
        with self._lock:
            if self._is_over:
                raise AnswerTimeoutError(_OPERATION, MAX_WAIT_S)
            self.n_sent += 1

    def add(self, model_id: str, tokens: int) -> None:
        with self._lock:
            if tokens > 0 and not self._is_over:
                self.tokens[model_id] = tokens

    def end(self) -> None:
        with self._lock:
            self._is_over = True


def count_tokens(
    requests: Mapping[str, Wire], *, region: str, assume_role_arn: str | None
) -> Counts:
    """Have the service count the requests, by model id, as far as it does so in time."""
    asked = {m: wire for m, wire in requests.items() if base_id(m).startswith(_FAMILIES)}
    counts = Counts()
    if not asked:
        return counts
    endpoint = Endpoint(region=region, assume_role_arn=assume_role_arn, call_timeout_s=MAX_WAIT_S)

    def count(client: Any, model_id: str, arguments: Wire) -> None:  # noqa: ANN401 -- the SDK's
        body = {name: arguments[name] for name in _COUNTED if name in arguments}
        try:
            answer = client.count_tokens(modelId=base_id(model_id), input={"converse": body})
            counts.add(model_id, answer["inputTokens"])
        except _UNKNOWN:
            return

    def count_all() -> None:
        try:
            session = open_session(endpoint)
            client = runtime_client(session, endpoint)
            make_ready(session, assume_role_arn)
        except _UNKNOWN:
            return
        client.meta.events.register(f"before-send.{_OPERATION}", counts.note)
        _side_by_side([(count, client, model, wire) for model, wire in asked.items()])

    # A thread, so that a name server, login or proxy that hangs is not waited for.
    _side_by_side([(count_all,)], patience_s=MAX_WAIT_S * 1.5)
    counts.end()
    return counts


def _side_by_side(calls: list[tuple[Any, ...]], patience_s: float = MAX_WAIT_S) -> None:
    threads = [
        threading.Thread(target=call, args=arguments, daemon=True) for call, *arguments in calls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience_s)
