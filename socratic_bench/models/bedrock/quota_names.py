"""Which quotas are a model's: Service Quotas names models for people, and not by their ids."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from socratic_bench.catalogue.models import base_id
from socratic_bench.ports.provider import Quota

# Such as "Cross-region model inference tokens per minute for Anthropic Claude Sonnet 4.5 V1".
_NAME = re.compile(
    r"(?P<how>on-demand|global cross-region|cross-region)(?: model inference| InvokeModel)? "
    r"(?P<what>requests|tokens) per minute for (?P<model>.+)",
    re.IGNORECASE,
)
_WORD = re.compile(r"v\d+|[a-z]+|\d+")
_DATE = re.compile(r"\d{8}")
# Words of one form of a name that the other may lack: makers, first versions.
_OPTIONAL = frozenset(("ai", "amazon", "anthropic", "cohere", "meta", "mistral", "v1"))


def quotas_by_model(
    rows: Sequence[Mapping[str, Any]], model_ids: Sequence[str]
) -> dict[str, Quota]:
    """The quotas of each model, in the way that its id is called; empty if none bears its name."""
    return {model_id: Quota(**dict(_of(rows, model_id))) for model_id in model_ids}


def _of(rows: Sequence[Mapping[str, Any]], model_id: str) -> Iterator[tuple[str, float]]:
    asked, how = _words(_DATE.sub("", base_id(model_id))), _how(model_id)
    for row in rows:
        name = _NAME.fullmatch(str(row.get("QuotaName", "")))
        value = row.get("Value")
        if name is None or not isinstance(value, int | float):
            continue
        if name["how"].lower() == how and _words(name["model"]) == asked:
            yield f"{name['what'].lower()}_per_minute", float(value)


def _how(model_id: str) -> str:
    name = model_id.rpartition("/")[2]
    if name == base_id(model_id):
        return "on-demand"
    return "global cross-region" if name.startswith("global.") else "cross-region"


def _words(name: str) -> list[str]:
    """What tells models apart, in any order; the number behind an id's colon does not."""
    words = _WORD.findall(name.lower().partition(":")[0])
    return sorted(word for word in words if word not in _OPTIONAL)
