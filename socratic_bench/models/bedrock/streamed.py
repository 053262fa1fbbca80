"""Puts the events of ConverseStream together into the answer that Converse would have given."""

import json
from collections.abc import Mapping
from typing import Any

# Boundary to boto3, whose shapes are plain dictionaries.
Event = Mapping[str, Any]


class StreamedAnswer:
    """An answer as it grows, event by event. It is complete only with its stop reason, which comes
    after the last block, and its metadata, which come last.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._stop: Mapping[str, Any] | None = None
        self._metadata: Mapping[str, Any] | None = None

    @property
    def has_content(self) -> bool:
        """Whether something of a reply has come: of its text, its tool call or its reasoning."""
        return bool(self._blocks)

    @property
    def is_complete(self) -> bool:
        return self._stop is not None and self._metadata is not None

    def add(self, event: Event) -> None:
        """Take the next event. A kind that is not known adds nothing."""
        match event:
            case {"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}}:
                self._block(index).add(delta)
            case {"contentBlockStart": {"start": {"toolUse": use}, "contentBlockIndex": index}}:
                self._block(index).use = use
            case {"messageStop": stop}:
                self._stop = stop
            case {"metadata": metadata}:
                self._metadata = metadata
            case _:
                pass

    def response(self) -> dict[str, Any]:
        """As Converse would have answered. Only for a complete answer."""
        content = [block.content() for _, block in sorted(self._blocks.items())]
        return {
            **(self._metadata or {}),
            **(self._stop or {}),
            "output": {"message": {"role": "assistant", "content": content}},
        }

    def _block(self, index: int) -> "_Block":
        found = self._blocks.get(index)
        if found is None:
            found = self._blocks[index] = _Block()
        return found


class _Block:
    def __init__(self) -> None:
        self.use: Mapping[str, Any] | None = None
        self._text: list[str] = []
        self._input: list[str] = []
        self._thought: list[str] = []
        self._is_reasoning = False

    def add(self, delta: Event) -> None:
        if "text" in delta:
            self._text.append(delta["text"])
        elif "toolUse" in delta:
            self._input.append(delta["toolUse"]["input"])
        elif "reasoningContent" in delta:
            self._is_reasoning = True
            self._thought.append(delta["reasoningContent"].get("text", ""))

    def content(self) -> dict[str, Any]:
        if self.use is not None:
            return _tool_use(self.use, "".join(self._input))
        if self._is_reasoning:
            return {"reasoningContent": {"reasoningText": {"text": "".join(self._thought)}}}
        return {"text": "".join(self._text)}


def _tool_use(use: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    """A tool call. Input that is not JSON, such as one cut off by the token limit, becomes text: it
    is no tool call.
    """
    try:
        return {"toolUse": {**use, "input": json.loads(arguments or "{}")}}
    except (ValueError, RecursionError):
        return {"text": arguments}
