"""The table of error kinds: what each means, whether a call is retried, how a run ends by it."""

from msgspec import Struct

from socratic_bench.types import EndReason


class ErrorRow(Struct, frozen=True, kw_only=True):
    """A kind of failure of a call.

    Attributes:
        meaning: what happened, in the words of the documents.
        retried: whether the call is tried again, within its attempts.
        maybe_billed: whether the request can have cost tokens: its fate is unknown, or it failed
            after it had reached the model.
        end_reason: how the run ends if the failure stays.
        hint: what to do next, with settings by name, as in a `Problem`.
        codes: the names by which the service and STS answer so; the events of a stream write them
            with a small first letter.
        label: the kind in a word or two for people, where its name does not serve as that.
    """

    meaning: str
    retried: bool
    maybe_billed: bool
    end_reason: EndReason
    hint: str
    codes: tuple[str, ...] = ()
    label: str = ""


def _transient(
    meaning: str, hint: str, *codes: str, maybe_billed: bool, label: str = ""
) -> ErrorRow:
    return ErrorRow(
        meaning=meaning,
        retried=True,
        maybe_billed=maybe_billed,
        end_reason="unavailable",
        hint=hint,
        codes=codes,
        label=label,
    )


def _permanent(end_reason: EndReason, meaning: str, hint: str, *codes: str) -> ErrorRow:
    return ErrorRow(
        meaning=meaning,
        retried=False,
        maybe_billed=False,
        end_reason=end_reason,
        hint=hint,
        codes=codes,
    )


ERROR_KINDS: dict[str, ErrorRow] = {
    "throttled": _transient(
        "the quota was exceeded",
        "Run again later, raise {max_attempts}, or ask for a higher quota in the AWS console.",
        *("ThrottlingException", "Throttling"),
        *("TooManyRequestsException", "ServiceQuotaExceededException"),
        maybe_billed=False,
    ),
    "not_ready": _transient(
        "the model is being loaded",
        "The model was not ready; run again in a few minutes.",
        "ModelNotReadyException",
        maybe_billed=False,
    ),
    "server_error": _transient(
        "the service failed (500, 503 and other 5xx)",
        "The service failed; run again later.",
        "InternalServerException",
        "ServiceUnavailableException",
        maybe_billed=True,
    ),
    "model_timeout": _transient(
        "the model took too long for the service (408)",
        "The model took too long; lower {max_tokens} or run again later.",
        "ModelTimeoutException",
        maybe_billed=True,
    ),
    "model_error": _transient(
        "the model failed on the service's side (424)",
        "The model failed on the service's side; run again later.",
        "ModelErrorException",
        "ModelStreamErrorException",
        maybe_billed=True,
    ),
    "connection": _transient(
        "the connection could not be made",
        "Check the network, the proxy and the endpoint (AWS_ENDPOINT_URL_BEDROCK_RUNTIME).",
        maybe_billed=False,
        label="not reached",
    ),
    "connection_lost": _transient(
        "the connection broke before the answer was there",
        "The connection broke before an answer was there; check the network and the proxy.",
        maybe_billed=True,
    ),
    "read_timeout": _transient(
        "no answer within `{call_timeout_s}`",
        "No answer came in time; raise {call_timeout_s} or lower {max_tokens}.",
        maybe_billed=True,
    ),
    "unreadable_answer": _transient(
        "a 200 that is not a Converse response: cut, corrupt, empty, HTML; an unfinished stream",
        "What answered was not a Converse response; check the endpoint and any proxy before it.",
        maybe_billed=True,
    ),
    "answer_too_large": _transient(
        "the answer is larger than 32 MB, or has more than a million JSON values",
        "No model answers so much: check the endpoint and any proxy before it.",
        maybe_billed=True,
    ),
    "credentials_unreachable": _transient(
        "what gives the credentials did not answer, such as AWS STS for a role; the message "
        "names it",
        "What gives the credentials could not be asked, such as AWS STS for a role: check the "
        "network, the proxy and its endpoint (AWS_ENDPOINT_URL_STS).",
        maybe_billed=False,
    ),
    "daily_quota": _permanent(
        "unavailable",
        "the account's daily token quota is used up",
        "The account's tokens for this model are used up for the day: run again tomorrow, take "
        "another model or region, or ask for a higher quota in the AWS console.",
    ),
    "stalled": _permanent(
        "unavailable",
        "none of the model's requests was answered for so long that it was stopped, with all runs "
        "that call it",
        "The attempts of its calls show the errors; fix these, then resume.",
    ),
    "context_window": _permanent(
        "context_window",
        "the dialogue is too long for the model",
        "The dialogue exceeds the model's context window; use fewer {turns}.",
    ),
    "content_filtered": _permanent(
        "content_filtered",
        "a filter before the model refuses the prompt (endpoints of OpenAI's protocol)",
        "The endpoint's content filter refuses the prompt: change the prompt, or the filter there.",
    ),
    "needs_profile": _permanent(
        "refused_request",
        "the plain id is not offered on demand",
        "Use an inference profile of the model: its id with a region's prefix, such as us. or "
        "global., or its ARN (aws bedrock list-inference-profiles).",
    ),
    "unknown_model": _permanent(
        "unknown_model",
        "no such model here",
        "Check the model id and that the model is offered in the region (aws bedrock "
        "list-foundation-models); it may be retired or have another version.",
        "ResourceNotFoundException",
    ),
    "legacy_model": _permanent(
        "unknown_model",
        "the model is legacy or at the end of its life",
        "The model is legacy or at the end of its life; take a newer version (aws bedrock "
        "list-foundation-models, modelLifecycle).",
    ),
    "invalid_request": _permanent(
        "refused_request",
        "the service refuses the request",
        "The model refuses a field of the request; {debug} shows which.",
        "ValidationException",
    ),
    "refused_setting": _permanent(
        "refused_request",
        "the service refuses a [setting](#settings-of-the-model) that was asked for",
        "Leave out the flag, or test a model that takes it.",
    ),
    "access_denied": _permanent(
        "access",
        "the policy or the account's model access denies the call",
        "Allow bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream on the model, and "
        "enable the model's access in the Bedrock console.",
        "AccessDeniedException",
    ),
    "role_denied": _permanent(
        "credentials",
        "the role cannot be assumed",
        "Check BEDROCK_ASSUME_ROLE_ARN, that the role trusts your identity, and that you may "
        "call sts:AssumeRole on it.",
    ),
    "no_credentials": _permanent(
        "credentials",
        "none found, or invalid",
        "Give credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or a role; "
        "{offline} needs none.",
        *(
            "UnrecognizedClientException",
            "InvalidSignatureException",
            "InvalidSignature",
            "SignatureDoesNotMatch",
            "RequestTimeTooSkewed",
        ),
        *(
            "InvalidClientTokenId",
            "IncompleteSignatureException",
            "IncompleteSignature",
            "MissingAuthenticationTokenException",
        ),
    ),
    "expired_credentials": _permanent(
        "credentials",
        "expired, and not renewed",
        "Renew the credentials and run again; if they are new, check the clock here.",
        *("ExpiredTokenException", "ExpiredToken", "RequestExpired"),
    ),
    "expired_login": _permanent(
        "credentials", "the SSO or console login has expired", "Log in again with: aws sso login"
    ),
    "unusable_login": _permanent(
        "credentials",
        "a login was renewed, but its cache cannot be written",
        "Let the SDK write its login cache, ~/.aws/sso/cache, or log in again.",
    ),
    "invalid_endpoint": _permanent(
        "refused_request",
        "the endpoint or the proxy is not a valid address",
        "Nothing was sent: check the endpoint (AWS_ENDPOINT_URL_BEDROCK_RUNTIME) and the proxy "
        "(HTTPS_PROXY), of which one is not a valid address.",
    ),
    "invalid_configuration": _permanent(
        "refused_request",
        "a setting of the SDK, in a variable or a file, that it refuses",
        "Nothing was sent: fix the setting of the SDK, a variable (AWS_...) or a line of its "
        "configuration file.",
    ),
    "tls": _permanent(
        "refused_request",
        "the certificate is not trusted",
        "Check the CA bundle (AWS_CA_BUNDLE) and the endpoint.",
    ),
}

KIND_OF_CODE = {code: name for name, kind in ERROR_KINDS.items() for code in kind.codes}
