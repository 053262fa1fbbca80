"""The kinds of failure that a call can end by; one table says what each of them means."""

from msgspec import Struct

from socratic_bench.types import EndReason


class ErrorKind(Struct, frozen=True, kw_only=True):
    """A kind of failure, and the one place that says what is done about it.

    Attributes:
        retried: whether the call is tried again, within its attempts.
        maybe_billed: whether the request can have cost tokens: its fate is unknown, or it failed
            after it had reached the model.
        end_reason: how the run ends if the failure stays.
        hint: what to do next.
    """

    retried: bool
    maybe_billed: bool
    end_reason: EndReason
    hint: str


def _passing(hint: str, *, maybe_billed: bool) -> ErrorKind:
    return ErrorKind(retried=True, maybe_billed=maybe_billed, end_reason="unavailable", hint=hint)


def _lasting(end_reason: EndReason, hint: str) -> ErrorKind:
    return ErrorKind(retried=False, maybe_billed=False, end_reason=end_reason, hint=hint)


ERROR_KINDS: dict[str, ErrorKind] = {
    "throttled": _passing(
        "Run again later, raise --max-attempts, or ask for a higher quota in the AWS console.",
        maybe_billed=False,
    ),
    "not_ready": _passing(
        "The model was not ready; run again in a few minutes.", maybe_billed=False
    ),
    "server_error": _passing("The service failed; run again later.", maybe_billed=True),
    "model_timeout": _passing(
        "The model took too long; lower --max-tokens or run again later.", maybe_billed=True
    ),
    "model_error": _passing(
        "The model failed on the service's side; run again later.", maybe_billed=True
    ),
    "connection": _passing(
        "Check the network, the proxy and the endpoint (AWS_ENDPOINT_URL_BEDROCK_RUNTIME).",
        maybe_billed=False,
    ),
    "connection_lost": _passing(
        "The connection broke before an answer was there; check the network and the proxy.",
        maybe_billed=True,
    ),
    "read_timeout": _passing(
        "No answer came in time; raise --call-timeout or lower --max-tokens.", maybe_billed=True
    ),
    "unreadable_answer": _passing(
        "What answered was no Converse response; check the endpoint and any proxy before it.",
        maybe_billed=True,
    ),
    "answer_too_large": _passing(
        "No model answers so much: check the endpoint and any proxy before it.",
        maybe_billed=True,
    ),
    "credentials_unreachable": _passing(
        "What gives the credentials could not be asked, such as AWS STS for a role: check the "
        "network, the proxy and its endpoint (AWS_ENDPOINT_URL_STS).",
        maybe_billed=False,
    ),
    "daily_quota": _lasting(
        "unavailable",
        "The account's tokens for this model are used up for the day: run again tomorrow, take "
        "another model or region, or ask for a higher quota in the AWS console.",
    ),
    "context_window": _lasting(
        "context_window", "The dialogue outgrew the model's context window; play fewer --turns."
    ),
    "needs_profile": _lasting(
        "refused_request",
        "Use an inference profile of the model: its id with a region's prefix, such as us. or "
        "global., or its ARN (aws bedrock list-inference-profiles).",
    ),
    "unknown_model": _lasting(
        "unknown_model",
        "Check the model id and that the model is offered in the region "
        "(aws bedrock list-foundation-models); it may be retired or have another version.",
    ),
    "legacy_model": _lasting(
        "unknown_model",
        "The model is legacy or at the end of its life; take a newer version "
        "(aws bedrock list-foundation-models, modelLifecycle).",
    ),
    "invalid_request": _lasting(
        "refused_request", "The model refuses a field of the request; --debug shows which."
    ),
    "refused_setting": _lasting(
        "refused_request", "Leave out the flag, or test a model that takes it."
    ),
    "access_denied": _lasting(
        "access",
        "Allow bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream on the model, and "
        "enable the model's access in the Bedrock console.",
    ),
    "role_denied": _lasting(
        "credentials",
        "Check BEDROCK_ASSUME_ROLE_ARN, that the role trusts your identity, and that you may call "
        "sts:AssumeRole on it.",
    ),
    "no_credentials": _lasting(
        "credentials",
        "Give credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role; "
        "--offline needs none.",
    ),
    "expired_credentials": _lasting(
        "credentials", "Renew the credentials and run again; if they are new, check the clock here."
    ),
    "expired_login": _lasting("credentials", "Log in again with: aws sso login"),
    "unusable_login": _lasting(
        "credentials",
        "Let the SDK write its login cache, ~/.aws/sso/cache, or log in again.",
    ),
    "invalid_endpoint": _lasting(
        "refused_request",
        "Nothing was sent: check the endpoint (AWS_ENDPOINT_URL_BEDROCK_RUNTIME) and the proxy "
        "(HTTPS_PROXY), of which one is no address.",
    ),
    "invalid_configuration": _lasting(
        "refused_request",
        "Nothing was sent: mend the setting of the SDK, a variable (AWS_...) or a line of its "
        "configuration file.",
    ),
    "tls": _lasting("refused_request", "Check the CA bundle (AWS_CA_BUNDLE) and the endpoint."),
}
