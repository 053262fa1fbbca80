"""The control plane's listings: foundation models, inference profiles, availability."""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs

from socratic_bench.emulator.catalogue import Traits, listed_models, traits_of
from socratic_bench.emulator.dialogue import JsonObject
from socratic_bench.emulator.errors import invalid, not_found, unknown_operation
from socratic_bench.emulator.models import MODEL_IDS

REGION = "us-east-1"
ACCOUNT = "123456789012"
PROFILE_REGIONS = ("us", "eu")
_PROFILE_ARN = f"arn:aws:bedrock:{REGION}:{ACCOUNT}:inference-profile"
PAGE = 100
_NUMBER = re.compile(r"[0-9]{1,9}")


def answer(segments: list[str], query: str, *, any_model: bool) -> JsonObject:
    """The body for a GET on the control plane. It knows every id that a model answers to."""
    arguments = {name: values[-1] for name, values in parse_qs(query).items()}
    models = (*map(traits_of, MODEL_IDS), *listed_models())
    match segments:
        case ["foundation-models"]:
            return {
                "modelSummaries": [row for row in map(_summary, models) if _asked(row, arguments)]
            }
        case ["foundation-models", model_id]:
            return {"modelDetails": _summary(_traits_or_refuse(model_id, any_model=any_model))}
        case ["foundation-model-availability", model_id]:
            return _availability(_traits_or_refuse(model_id, any_model=any_model))
        case ["inference-profiles"]:
            return _page(list(_profiles(models)), arguments)
        case ["inference-profiles", profile]:
            return _find_profile(profile, any_model=any_model)
        case _:
            raise unknown_operation()


def _traits_or_refuse(model_id: str, *, any_model: bool) -> Traits:
    traits = traits_of(model_id)
    if traits.known or any_model:
        return traits
    raise not_found("Could not resolve the foundation model from the model identifier.")


def _arn(traits: Traits) -> str:
    return f"arn:aws:bedrock:{REGION}::foundation-model/{traits.base_id}"


def _summary(traits: Traits) -> JsonObject:
    return {
        "modelArn": _arn(traits),
        "modelId": traits.base_id,
        "modelName": traits.name or traits.base_id.partition(".")[2].partition("-v1")[0],
        "providerName": traits.base_id.partition(".")[0].capitalize(),
        "inputModalities": ["TEXT"],
        "outputModalities": ["TEXT"],
        "responseStreamingSupported": True,
        "customizationsSupported": [],
        "inferenceTypesSupported": ["INFERENCE_PROFILE" if traits.profile_only else "ON_DEMAND"],
        "modelLifecycle": {"status": "LEGACY" if traits.end_of_life else "ACTIVE"},
    }


def _asked(row: JsonObject, arguments: dict[str, str]) -> bool:
    provider: str = row["providerName"]
    (inference,) = row["inferenceTypesSupported"]
    return (
        arguments.get("byProvider", provider).lower() == provider.lower()
        and arguments.get("byOutputModality", "TEXT") in row["outputModalities"]
        and arguments.get("byInferenceType", inference) == inference
        and arguments.get("byCustomizationType") is None
    )


def _availability(traits: Traits) -> JsonObject:
    return {
        "modelId": traits.base_id,
        "agreementAvailability": {"status": "AVAILABLE"},
        "authorizationStatus": "AUTHORIZED",
        "entitlementAvailability": "AVAILABLE",
        "regionAvailability": "AVAILABLE",
    }


def _profiles(models: tuple[Traits, ...]) -> Iterator[JsonObject]:
    for traits in models:
        for region in () if traits.is_own else PROFILE_REGIONS:
            yield _profile(f"{region}.{traits.base_id}", traits)


def _profile(name: str, traits: Traits) -> JsonObject:
    display_name = traits.name or traits.base_id.partition(".")[2]
    region = name.removesuffix(f".{traits.base_id}")
    return {
        "inferenceProfileName": f"{region.upper()} {display_name}".replace(".", "-"),
        "inferenceProfileArn": f"{_PROFILE_ARN}/{name}",
        "inferenceProfileId": name,
        "models": [{"modelArn": _arn(traits)}],
        "status": "ACTIVE",
        "type": "SYSTEM_DEFINED",
    }


def _find_profile(name: str, *, any_model: bool) -> JsonObject:
    traits, short = traits_of(name), name.rpartition("/")[2]
    if short != traits.base_id and (traits.known or any_model):
        return _profile(short, traits)
    raise not_found("The inference profile was not found.")


def _page(profiles: list[JsonObject], arguments: dict[str, str]) -> JsonObject:
    """One page of the listing. The token is the number of the first profile on the next page."""
    start, size = arguments.get("nextToken", "0"), arguments.get("maxResults", str(PAGE))
    if not (_NUMBER.fullmatch(start) and _NUMBER.fullmatch(size) and int(size)):
        raise invalid("The pagination arguments are not valid.")
    if arguments.get("type") == "APPLICATION":
        profiles = []
    end = int(start) + int(size)
    page: JsonObject = {"inferenceProfileSummaries": profiles[int(start) : end]}
    return page | ({"nextToken": str(end)} if end < len(profiles) else {})
