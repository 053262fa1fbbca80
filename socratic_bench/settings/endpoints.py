"""Who answers for a model id: Bedrock, or an endpoint that speaks OpenAI's chat protocol.

An id such as `openai/gpt-4o` names its endpoint before the first slash; an id without a slash, an
ARN, and `bedrock/ID` are Bedrock's.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from socratic_bench.errors import Problem
from socratic_bench.settings.table import MODEL_ID, names_where

BEDROCK = "bedrock"
CHAT = "openai"  # the provider of all endpoints that speak this protocol
IMPORTED = "imported"  # the provider of tutors whose dialogues come from files
_NAME = r"[a-z0-9][a-z0-9_-]{0,39}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


class Endpoint(Struct, frozen=True):
    """An endpoint of a name, at a base URL; its key stands in an environment variable.

    Without a variable requests carry no key.
    """

    name: str
    base_url: str
    key_variable: str = ""

    @classmethod
    def parse(cls, word: str) -> "Endpoint | None":
        """The endpoint that `NAME=URL` or `NAME=URL,VARIABLE` names; `None` for other forms."""
        name, separator, rest = word.partition("=")
        base_url, _, variable = rest.partition(",")
        is_named = re.fullmatch(_NAME, name) and name not in (BEDROCK, IMPORTED, *PRESETS)
        is_variable = not variable or re.fullmatch(_VARIABLE, variable)
        if not (separator and is_named and is_variable and _is_base_url(base_url)):
            return None
        return cls(name, base_url.rstrip("/"), variable)


class Preset(Struct, frozen=True):
    """An endpoint that needs no setting: its variables, of which the first that is set counts."""

    url_variables: Sequence[str]
    default_url: str
    key_variables: Sequence[str]


PRESETS: Mapping[str, Preset] = {
    CHAT: Preset(
        ("OPENAI_BASE_URL",), "https://api.openai.com/v1", ("OPENAI_API_KEY", "OPENAI_API")
    ),
    "gemini": Preset(
        (),
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_API"),
    ),
    "azure": Preset(("AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"), "", ("AZURE_API_KEY",)),
}


def split_id(model_id: str) -> tuple[str, str]:
    """The endpoint's name and the model's own id, as in `("openai", "gpt-4o")`."""
    name, separator, own_id = model_id.partition("/")
    if not separator or model_id.startswith("arn:"):
        return BEDROCK, model_id
    return name, own_id


def provider_of(model_id: str) -> str:
    """The name of the provider that answers for the model."""
    name = split_id(model_id)[0]
    return name if name in (BEDROCK, IMPORTED) else CHAT


def models_of(config: Any) -> tuple[str, ...]:  # noqa: ANN401 -- any kind of configuration
    """The ids of all models that a configuration names, each once."""
    values = (getattr(config, name) for name in names_where(type(config), _is_model))
    ids = (value if isinstance(value, tuple) else (value,) for value in values)
    return tuple(dict.fromkeys(id_ for group in ids for id_ in group if isinstance(id_, str)))


def find_endpoint(
    model_id: str, named: Sequence[Endpoint], environ: Mapping[str, str]
) -> Endpoint | None:
    """The endpoint that answers for a model; `None` if none has its name."""
    name, _ = split_id(model_id)
    preset = PRESETS.get(name)
    if preset is None:
        return next((endpoint for endpoint in named if endpoint.name == name), None)
    url = next((environ[key] for key in preset.url_variables if environ.get(key)), None)
    variable = next((key for key in preset.key_variables if environ.get(key)), "")
    base_url = (url or preset.default_url).rstrip("/")
    if name == "azure" and base_url and not base_url.endswith("/openai/v1"):
        base_url += "/openai/v1"
    is_own = url is not None and name == CHAT  # an endpoint of the user's own may need no key
    return Endpoint(name, base_url, variable or ("" if is_own else preset.key_variables[0]))


def endpoint_problems(
    model_ids: Sequence[str], named: Sequence[Endpoint], environ: Mapping[str, str]
) -> Iterator[Problem]:
    """What keeps the endpoints of these models from being called, each once."""
    names = [endpoint.name for endpoint in named]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Problem.of("{endpoints} gives {name} twice: keep one.", name=name)
    places: dict[str, str] = {}
    for model_id in model_ids:
        name, own_id = split_id(model_id)
        if name in (BEDROCK, IMPORTED):
            continue
        if not own_id:
            yield Problem.of("{id!r} has no model behind its endpoint.", id=model_id)
        places.setdefault(name, model_id)
    for name, model_id in places.items():
        endpoint = find_endpoint(model_id, named, environ)
        if endpoint is None:
            there = ", ".join([BEDROCK, *PRESETS, *names])
            yield Problem.of(
                "No endpoint {name!r} for {id}; available: {there}. Give another one with "
                "{endpoints} {name}=URL.",
                name=name,
                id=model_id,
                there=there,
            )
            continue
        yield from _unusable(endpoint, model_id, environ)


def _unusable(endpoint: Endpoint, model_id: str, environ: Mapping[str, str]) -> Iterator[Problem]:
    if not endpoint.base_url:
        yield Problem.of(
            "{id} needs the address of your resource: set {variable}.",
            id=model_id,
            variable=PRESETS[endpoint.name].url_variables[0],
        )
    elif not _is_base_url(endpoint.base_url):
        yield Problem.of(
            "The address of {name} is not an http(s) URL without user, query and fragment: check "
            "{variables}.",
            name=endpoint.name,
            variables=" and ".join(PRESETS[endpoint.name].url_variables) or "it",
        )
    if not endpoint.key_variable:
        return
    key = environ.get(endpoint.key_variable, "")
    if not key:
        yield Problem.of(
            "{id} needs a key: set {variable}.", id=model_id, variable=endpoint.key_variable
        )
    elif not (key.isascii() and key.isprintable() and " " not in key):
        yield Problem.of(
            "{variable} holds a blank, a line break or a character that no header can have: give "
            "the key again.",
            variable=endpoint.key_variable,
        )
    elif endpoint.base_url.startswith("http://") and not _is_local(endpoint.base_url):
        yield Problem.of(
            "{name} would get the key of {variable} unencrypted: give an https URL.",
            name=endpoint.name,
            variable=endpoint.key_variable,
        )


def _is_model(setting: Any) -> bool:  # noqa: ANN401 -- a `Setting`
    return bool(setting.metavar == MODEL_ID)


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
    is_printable = url.isprintable() and " " not in url
    return (
        bool(parts.scheme in ("http", "https") and parts.hostname and is_plain and is_printable)
        and port != 0
    )


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in _LOCAL_HOSTS
