"""Failed requests to S3: each error of the SDK becomes one of ours, with a hint."""

import re
from collections.abc import Mapping

from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError
from msgspec import Struct
from urllib3.exceptions import HTTPError

from socratic_bench.errors import ArtifactError, Problem, StoreDeniedError, StoreOutageError, Words
from socratic_bench.models.bedrock.credentials import CredentialsError
from socratic_bench.models.bedrock.transport import (
    SECRET_HEADERS,
    AnswerTooLargeError,
    UnsendableError,
    unwrapped_error,
)

# Every exception that a call can raise: anything else is a defect.
SDK_ERRORS = (
    *(sdk.ClientError, sdk.BotoCoreError, ResponseParserError, HTTPError),
    *(CredentialsError, AnswerTooLargeError, UnsendableError),
)

_FORBIDDEN = 403
_TOO_MANY = 429
_NOT_IMPLEMENTED = 501
_FIRST_SERVER_ERROR = 500


class BucketContext(Struct, frozen=True):
    """Where a request went and what it did, for its error message. `action` is the IAM action that
    allows it, such as `s3:PutObject`.
    """

    bucket: str
    location: str
    action: str
    kms_key_id: str | None = None


ACTIONS: Mapping[str, str] = {
    "put_object": "s3:PutObject",
    "get_object": "s3:GetObject",
    "head_object": "s3:GetObject",
    "list_objects_v2": "s3:ListBucket",
    "delete_object": "s3:DeleteObject",
}
_VERBS = {"s3:PutObject": "written", "s3:DeleteObject": "deleted"}

_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired")
_TRANSIENT = (
    *("SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded"),
    *("RequestTimeout", "OperationAborted", "ConditionalRequestConflict", "TemporaryRedirect"),
    *("BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "IncompleteBody"),
)
_OTHER_REGION = (
    *("301", "PermanentRedirect", "AuthorizationHeaderMalformed"),
    "IllegalLocationConstraintException",
)
_BAD_KEYS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidSecurity")
# An answer to HEAD has no body, and so no error code of S3's.
_DENIED = ("AccessDenied", "403")
_LOGIN = (sdk.TokenRetrievalError, sdk.SSOTokenLoadError, sdk.UnauthorizedSSOTokenError)
_NO_KEYS = (
    sdk.NoCredentialsError,
    sdk.PartialCredentialsError,
    sdk.CredentialRetrievalError,
    sdk.MetadataRetrievalError,
)

_BROKEN_CONNECTION = (
    *(sdk.ConnectionError, sdk.HTTPClientError, sdk.IncompleteReadError),
    *(sdk.FlexibleChecksumError, ResponseParserError, HTTPError),
)

_NOT_S3 = "Check the endpoint of S3 (AWS_ENDPOINT_URL_S3) and the proxy."
_KEYS_HINT = "Check the access key, its secret, the session token, and this machine's clock."
_EXPIRED_HINT = "The credentials for S3 have expired: renew them."
_NO_CONDITIONS = "The service has to know conditional writes (If-Match, If-None-Match), as S3 does."
# The SDK asks for the region itself, and trips over an answer without one.
_NO_REGION = "S3 says that the bucket is in another region, and not in which."

_PRINCIPAL = re.compile(r"User: (arn:[\w:/.@=+,-]{1,200})")
_ACTION = re.compile(r"perform: ((?:s3|kms):\w{1,60})")
_REGION_HEADER = "x-amz-bucket-region"
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+")
_KMS_ARN = re.compile(r"arn:aws[\w-]*:kms:[\w:/-]{1,200}")


def is_expired(error: Exception) -> bool:
    """Whether credentials have expired, so that new ones may help."""
    error = _cause(error)
    return _code(error) in _EXPIRED or isinstance(error, RuntimeError)


def explain(error: Exception, context: BucketContext) -> ArtifactError:
    """Our error for one of `SDK_ERRORS`: a `StoreOutageError` if a later try may pass."""
    message = str(error)
    error = _cause(error)
    verb = _VERBS.get(context.action, "read")
    if isinstance(error, sdk.InvalidRegionError):
        message = _NO_REGION
    # The SDK ends some of its sentences without a stop, and more of ours follow.
    stop = "" if message.endswith((".", "!", "?")) else "."
    sentence = (context.location, f"could not be {verb}: {message}{stop}")
    if _is_transient(error):
        return StoreOutageError(
            *sentence, hint="S3 did not take it in time: run again when S3 can be reached."
        )
    is_denied = _status(error) == _FORBIDDEN and _code(error) in _DENIED
    kind = StoreDeniedError if is_denied else ArtifactError
    return kind(*sentence, hint=_hint(error, context))


def _cause(error: Exception) -> Exception:
    """The exception behind an error: why there are no credentials, or what the SDK has wrapped."""
    return unwrapped_error(error.cause if isinstance(error, CredentialsError) else error)


def _is_transient(error: Exception) -> bool:
    if isinstance(error, sdk.ClientError):
        status = _status(error)
        is_servers = status >= _FIRST_SERVER_ERROR and status != _NOT_IMPLEMENTED
        return _code(error) in _TRANSIENT or is_servers or status == _TOO_MANY
    if isinstance(error, sdk.SSLError):
        # A connection that breaks inside TLS; a certificate that is not trusted reads otherwise.
        return "EOF" in str(error)
    return isinstance(error, _BROKEN_CONNECTION) and not isinstance(error, sdk.InvalidRegionError)


def _hint(error: Exception, context: BucketContext) -> Words:
    code, message = _code(error), str(error)
    is_bad_header = isinstance(error, UnsendableError) and error.header in SECRET_HEADERS
    for is_cause, hint in (
        (code == "NoSuchBucket", f"Make the bucket: aws s3 mb s3://{context.bucket}"),
        (
            code in _OTHER_REGION or isinstance(error, sdk.InvalidRegionError),
            _region_hint(error, context),
        ),
        (code in _EXPIRED or isinstance(error, RuntimeError), _EXPIRED_HINT),
        (code == "RequestTimeTooSkewed", "Set this machine's clock: S3 refuses its time."),
        (code in _BAD_KEYS or is_bad_header, _KEYS_HINT),
        (isinstance(error, _LOGIN), "Log in again with: aws sso login"),
        (isinstance(error, _NO_KEYS), "Give credentials for S3: keys, a profile or a role."),
        (isinstance(error, (UnsendableError, AnswerTooLargeError)), _NOT_S3),
        (isinstance(error, sdk.SSLError), "Check the CA bundle (AWS_CA_BUNDLE) and the endpoint."),
        (code.startswith("KMS.") or "kms:" in message, _kms_hint(message, context)),
        (_status(error) == _NOT_IMPLEMENTED, _NO_CONDITIONS),
        (_status(error) == _FORBIDDEN, f"{_allow(message, context)} {context.location}."),
    ):
        if is_cause:
            return hint
    return f"Check that the bucket is there and that {context.action} is allowed on it."


def _region_hint(error: Exception, context: BucketContext) -> Problem:
    response = error.response if isinstance(error, sdk.ClientError) else {}
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    details: Mapping[str, object] = {**response.get("Error", {})}
    region = region_in(headers) or region_in({_REGION_HEADER: str(details.get("Region", ""))})
    where = f"in {region}" if region else "in another region"
    return Problem.of(
        "The bucket {bucket} is {where}: give that as {region}, or take a bucket in the region of "
        "the run.",
        bucket=context.bucket,
        where=where,
    )


def _kms_hint(message: str, context: BucketContext) -> str:
    arn = _KMS_ARN.search(message)
    key = arn[0] if arn else context.kms_key_id or "the bucket's own key"
    if _ACTION.search(message):
        return f"{_allow(message, context)} the KMS key {key}, in its policy and in IAM."
    return (
        f"Check the KMS key {key} (RUNNER_S3_KMS_KEY_ID): it must be enabled, in the bucket's "
        "region, and allow kms:GenerateDataKey for writing and kms:Decrypt for reading."
    )


def _allow(message: str, context: BucketContext) -> str:
    """Who was denied what: the beginning of a sentence."""
    principal, action = _PRINCIPAL.search(message), _ACTION.search(message)
    who = principal[1] if principal else "the credentials in use"
    return f"Allow {who} {action[1] if action else context.action} on"


def region_in(headers: Mapping[str, str]) -> str | None:
    """The region that an answer's headers name for the bucket, if they do."""
    region = headers.get(_REGION_HEADER, "")
    return region if _REGION.fullmatch(region) else None


def _code(error: Exception) -> str:
    if not isinstance(error, sdk.ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))


def _status(error: Exception) -> int:
    if not isinstance(error, sdk.ClientError):
        return 0
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
