"""Planted credentials come out nowhere: not on stdout or stderr, not in artifacts, in no ending."""

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from socratic_bench.documents import encode
from socratic_bench.documents.document import ErrorEntry
from socratic_bench.errors import BenchError, UsageError
from socratic_bench.redaction import MASK, known_secrets, learn_headers, look_again, redact
from tests.command import (
    CLAUDE,
    OPENING,
    Outcome,
    assert_valid,
    begin,
    daily,
    environment,
    in_time,
    run,
)
from tests.fakes import FakeBedrock, Said, Sent, answer, refusal, scored

JUDGE = "other.judge-v1:0"
KEY = "AKIACANARYACCESSKEY1"
SECRET = "CANARYsecret/secretsecretsecretsecret+se"
TOKEN = "CANARYsession+token/" + "t" * 60 + "=="
BEARER = "CANARYbearer-" + "b" * 40
PASSWORD = "CANARYpassword"
NOWHERE = "127.0.0.1:9"
ROLE = "arn:aws:iam::123456789012:role/Runner"
SIGNED = (
    "X-Amz-Signature=CANARYsignature&X-Amz-Credential=CANARYid&X-Amz-Security-Token=CANARYtoken"
)
KEYS = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_SESSION_TOKEN": TOKEN,
    "AWS_BEARER_TOKEN_BEDROCK": BEARER,
}
WORDS = ("--model", CLAUDE, "--prompt", "Why do trains run?", "--turns", "2", "--max-attempts", "1")


def echo(sent: Sent) -> str:
    """What a careless service or proxy would say."""
    return f"{json.dumps(dict(sent.headers))} {dict(sent.headers)}"


def echoing_model(sent: Sent) -> Said:
    return answer(f"You sent {echo(sent)}. {SECRET} {KEY} {BEARER}: what follows?")


def echoing_refusal(status: int, code: str) -> Any:
    return lambda sent: refusal(status, code, f"You sent {echo(sent)}.")


def credentials_everywhere(url: str, **more: str) -> dict[str, str]:
    """A machine full of credentials, with Bedrock at `url`."""
    return environment(
        **{
            **KEYS,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
            "BEDROCK_MODEL_IDS": json.dumps([CLAUDE]),
            "RUNNER_JUDGE_MODEL": JUDGE,
            **more,
        },
    )


def assert_silent(outcome: Outcome, *folders: Path) -> None:
    """No canary in any output, however it is written."""
    seen = [outcome.stdout, outcome.stderr.encode()]
    seen += [path.read_bytes() for folder in folders for path in files_in(folder)]
    for output in seen:
        at = output.find(b"CANARY")
        assert at < 0, output[max(0, at - 200) : at + 80]


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# More is said with it.
@pytest.fixture(params=daily(["plain", "debug"], "debug"))
def debug(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return ("--debug",) if request.param == "debug" else ()


@pytest.mark.parametrize("gate", [(), ("--fail-under", "overall_score=10")], ids=["0", "5"])
def test_neither_a_good_run_nor_a_failed_gate_keeps_what_a_model_echoes(
    gate, tmp_path, bucket, client, moto_url
):
    """The tutor repeats every credential; folder, bucket, stdout and stderr are searched."""
    with FakeBedrock({CLAUDE: echoing_model, JUDGE: [scored(3, 3, 3, rationale=SECRET)]}) as served:
        env = credentials_everywhere(
            served.url, RUNNER_OUTPUT_DIR=str(tmp_path), AWS_ENDPOINT_URL_S3=moto_url
        )
        outcome = run(*WORDS, *gate, "--s3-bucket", bucket, env=env)
        carried = served.sent[0].headers
    stored = client.list_objects_v2(Bucket=bucket)["Contents"]
    bodies = [client.get_object(Bucket=bucket, Key=row["Key"])["Body"].read() for row in stored]

    assert outcome.exit_code == (5 if gate else 0)
    assert_valid("run", outcome.document)
    assert TOKEN in carried["X-Amz-Security-Token"]
    assert outcome.document["turns"][0]["question"].count(MASK) >= 5
    kept = ["/".join(path.relative_to(tmp_path).parts[:2]) for path in files_in(tmp_path)]
    assert Counter(kept) == {"raw/runs": 4, "curated/runs": 1, "journal/runs": 1}
    assert len(bodies) > len(kept)  # a journal in a bucket has a file for each entry
    assert [body for body in bodies if b"CANARY" in body] == []
    assert_silent(outcome, tmp_path)


REFUSALS = {
    "validation": (400, "ValidationException", 3),
    "access": (403, "AccessDeniedException", 3),
    "expired": (403, "ExpiredTokenException", 3),
    "signature": (403, "InvalidSignatureException", 3),
    "server": (500, "InternalServerException", 4),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_no_refusal_that_echoes_the_request_is_passed_on(case, tmp_path):
    status, code, exit_code = REFUSALS[case]
    with FakeBedrock({CLAUDE: echoing_refusal(status, code)}) as served:
        env = credentials_everywhere(served.url, RUNNER_OUTPUT_DIR=str(tmp_path))
        outcome = run(*WORDS, "--debug", env=env)

    assert outcome.exit_code == exit_code
    assert MASK in outcome.document["error"]["message"]
    assert MASK in outcome.stderr
    assert_silent(outcome, tmp_path)


def test_nor_is_one_of_the_judge_in_a_judge_file(tmp_path):
    scripts = {CLAUDE: [answer()], JUDGE: echoing_refusal(503, "ServiceUnavailableException")}
    with FakeBedrock(scripts) as served:
        outcome = run(
            *WORDS, env=credentials_everywhere(served.url, RUNNER_OUTPUT_DIR=str(tmp_path))
        )
    (kept,) = tmp_path.rglob("judge_000.json")

    assert outcome.exit_code == 4
    assert MASK in json.loads(kept.read_bytes())["unjudged_message"]
    assert_silent(outcome, tmp_path)


def test_broken_credentials_file_is_not_quoted(tmp_path):
    (tmp_path / "credentials").write_text(
        f"[default]\naws_secret_access_key = {SECRET}\n{TOKEN}\n["
    )
    env = credentials_everywhere(
        f"http://{NOWHERE}", AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "credentials")
    )
    outcome = run(*WORDS, "--debug", env={k: v for k, v in env.items() if k not in KEYS})

    assert outcome.exit_code == 3
    assert_silent(outcome)


ENDPOINTS = {
    "password": f"http://user:{PASSWORD}@{NOWHERE}",
    "no url": f"http://user:{PASSWORD}/2@{NOWHERE}",
    "no port": f"http://user:{PASSWORD}@127.0.0.1:99999",
    "no scheme": f"ftp://user:{PASSWORD}@{NOWHERE}",
    "space": f"http://us er:{PASSWORD}@{NOWHERE}",
    "signed": f"http://{NOWHERE}/?{SIGNED}",
    "query": f"http://{NOWHERE}/?token={PASSWORD}",
    "no address": PASSWORD,
    "port": f"http://127.0.0.1:{PASSWORD}/",
}
# Nothing can be sent to these at all.
NO_ADDRESSES = ("no url", "no port", "no scheme", "space", "no address", "port")


@pytest.mark.parametrize("case", ENDPOINTS)
def test_no_error_of_a_connection_shows_what_the_endpoint_holds(case):
    env = credentials_everywhere(ENDPOINTS[case])
    del env["AWS_BEARER_TOKEN_BEDROCK"]
    outcome = run(*WORDS, "--debug", env=env)

    assert outcome.exit_code == (3 if case in NO_ADDRESSES else 4)
    assert "Traceback" in outcome.stderr
    assert_silent(outcome)


@pytest.mark.parametrize("case", ["no url", "no port", "signed"])
def test_nor_what_a_proxy_holds(case):
    proxies = {"HTTPS_PROXY": ENDPOINTS[case], "https_proxy": ENDPOINTS[case]}
    outcome = run(*WORDS, env=credentials_everywhere("https://bedrock.example.invalid", **proxies))

    assert outcome.exit_code == (3 if case in NO_ADDRESSES else 4)
    assert_silent(outcome)


@pytest.mark.parametrize("case", ["password", "signed"])
def test_nor_what_the_endpoint_of_a_bucket_holds(case, tmp_path):
    env = credentials_everywhere(
        "", AWS_ENDPOINT_URL_S3=ENDPOINTS[case], RUNNER_S3_BUCKET="a-bucket"
    )
    del env["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"], env["BEDROCK_MODEL_IDS"], env["RUNNER_JUDGE_MODEL"]
    words = ("--offline", "--model", "emulator.socratic-v1:0", "--prompt", OPENING, "--turns", "1")
    outcome = run(*words, "--debug", "--max-attempts", "2", "--output-dir", str(tmp_path), env=env)

    assert (outcome.exit_code, outcome.document["end_reason"]) == (4, "artifacts")
    assert "could not be written" in outcome.stderr
    assert_silent(outcome, tmp_path)


def test_a_bucket_that_echoes_the_request_is_not_passed_on(tmp_path, debug):
    def denied(sent: Sent) -> Said:
        said = echo(sent).replace("<", "")
        body = f"<Error><Code>AccessDenied</Code><Message>{said}</Message></Error>"
        return Said(body.encode(), 403)

    with (
        FakeBedrock({CLAUDE: [answer()], JUDGE: [scored(3, 3, 4)]}) as served,
        FakeBedrock({"": denied}) as store,
    ):
        env = credentials_everywhere(served.url, AWS_ENDPOINT_URL_S3=store.url)
        outcome = run(*WORDS, *debug, "--s3-bucket", "a-bucket", env=env)

    assert (outcome.exit_code, outcome.document["end_reason"]) == (4, "artifacts")
    assert MASK in outcome.document["error"]["message"]
    assert_silent(outcome)


@pytest.mark.parametrize("case", ["echo", "unreachable"])
def test_no_error_of_assuming_a_role_is_passed_on_with_credentials(case, debug):
    def denied(sent: Sent) -> Said:
        body = f"<ErrorResponse><Error><Code>AccessDenied</Code><Message>{echo(sent)}</Message>"
        return Said(f"{body}</Error></ErrorResponse>".encode(), 403)

    with FakeBedrock({"": denied}) as sts:
        url = sts.url if case == "echo" else ENDPOINTS["password"]
        env = credentials_everywhere("http://127.0.0.1:9", AWS_ENDPOINT_URL_STS=url)
        del env["AWS_BEARER_TOKEN_BEDROCK"]
        outcome = run(*WORDS, *debug, "--assume-role-arn", ROLE, env=env)

    assert outcome.exit_code == (3 if case == "echo" else 4)
    assert MASK in outcome.document["error"]["message"]
    assert_silent(outcome)


def test_credentials_of_an_assumed_role_are_secret_too():
    """Nobody but the SDK knows them: they come from STS and go to Bedrock."""
    role_token = "CANARYrole" + "r" * 50

    def granted(_: Sent) -> Said:
        keys = (
            "<AccessKeyId>CANARYROLEKEY0000001</AccessKeyId><SecretAccessKey>CANARYs</SecretAccessKey>"
            f"<SessionToken>{role_token}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
        )
        result = f"<AssumeRoleResult><Credentials>{keys}</Credentials></AssumeRoleResult>"
        xmlns = "https://sts.amazonaws.com/doc/2011-06-15/"
        return Said(f'<AssumeRoleResponse xmlns="{xmlns}">{result}</AssumeRoleResponse>'.encode())

    def bare(sent: Sent) -> Said:
        message = f"Not good: {sent.key_id}, {sent.headers['X-Amz-Security-Token']}!"
        return refusal(400, "ValidationException", message)

    with FakeBedrock({"": granted}) as sts, FakeBedrock({CLAUDE: bare}) as served:
        env = credentials_everywhere(served.url, AWS_ENDPOINT_URL_STS=sts.url)
        del env["AWS_BEARER_TOKEN_BEDROCK"]
        outcome = run(*WORDS, "--debug", "--assume-role-arn", ROLE, env=env)
        (sent,) = served.sent

    assert sent.headers["X-Amz-Security-Token"] == role_token
    assert f"Not good: {MASK}, {MASK}!" in outcome.document["error"]["message"]
    assert_silent(outcome)


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"])
def test_a_line_end_in_a_credential_does_not_get_it_quoted(name):
    """As pasted from a file. No header may hold it, and the HTTP library says what it was."""
    env = credentials_everywhere(f"http://{NOWHERE}", **{name: KEYS[name] + "\n"})
    outcome = run(*WORDS, "--debug", env=env)

    assert "Invalid header value" in outcome.stderr
    assert_silent(outcome)


def test_wrong_words_that_hold_a_credential_are_not_quoted(debug):
    outcome = run(
        *WORDS, f"--token={TOKEN}", *debug, env=credentials_everywhere("", AWS_REGION=SECRET)
    )

    assert outcome.exit_code == 2
    assert f"Unknown flag '--token={MASK}" in outcome.stderr
    assert_silent(outcome)


def test_a_deadline_and_a_signal_tell_nothing(tmp_path):
    """Exits 6 and 130: the first turn echoes credentials, the second call hangs."""

    def first_only(sent: Sent) -> Said:
        said = echoing_model(sent)
        n_messages = len(sent.body["messages"])
        return said if n_messages == 1 else Said(said.body, held=_never())

    scripts = {CLAUDE: first_only, JUDGE: [scored(3, 3, 4)]}
    with FakeBedrock(scripts) as served:
        env = credentials_everywhere(served.url, RUNNER_OUTPUT_DIR=str(tmp_path))
        late = in_time(
            lambda s: run(*WORDS, "--deadline", str(s), env=env),
            lambda outcome: outcome.document["n_turns"] > 0,
            first_s=2,
        )
        process = begin(*WORDS, "--debug", env=env)
        assert process.stderr
        said = b""
        while b"turn   0" not in said:
            assert process.poll() is None
            said += process.stderr.readline()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    interrupted = Outcome(process.returncode, stdout, (said + stderr).decode())

    assert (late.exit_code, interrupted.exit_code) == (7, 130)
    assert late.document["n_turns"] == interrupted.document["n_turns"] == 1
    assert_silent(late, tmp_path)
    assert_silent(interrupted, tmp_path)


def _never() -> Any:
    import threading

    return threading.Event()


def test_a_question_that_is_cut_for_the_terminal_shows_no_half_of_a_secret():
    with FakeBedrock({CLAUDE: [answer(f"Is it {TOKEN}?")], JUDGE: [scored(3, 3, 4)]}) as served:
        outcome = run(*WORDS, env=credentials_everywhere(served.url))

    assert f"Is it {MASK}?" in outcome.stderr
    assert_silent(outcome)


# --- the mask itself ---

SHOWN = "Is secret sauce authorization, or https://example.com/a?b=c@d and Bearer bonds?"
HIDDEN = {
    "https://me:CANARY@host/x": "https://***@host/x",
    "s3+http://CANARY@host": "s3+http://***@host",
    "/k?a=1&X-Amz-Signature=CANARY&b=2": "/k?a=1&X-Amz-Signature=***&b=2",
    "?x-amz-security-token=CANARY'": "?x-amz-security-token=***'",
    '{"X-Amz-Security-Token": "CANARY", "a": 1}': '{"X-Amz-Security-Token": "***", "a": 1}',
    "{'x-amz-security-token': b'CANARY'}": "{'x-amz-security-token': b'***'}",
    '"Authorization": "Basic CANARY"': '"Authorization": "Basic ***"',
    "authorization=Bearer CANARY": "authorization=Bearer ***",
    "AWS4-HMAC-SHA256 Credential=CANARY/x, SignedHeaders=host, Signature=CANARY": (
        "AWS4-HMAC-SHA256 Credential=***, SignedHeaders=host, Signature=***"
    ),
    "Bearer CANARYCANARYCANARYCANARY.": "Bearer ***",
    "the key ASIACANARYCANARY1234 is": "the key *** is",
    '"SecretAccessKey": "CANARY"': '"SecretAccessKey": "***"',
    "IQoJb3JpZ2luCANARYCANARYCANARY/==": "***",
}


@pytest.mark.parametrize("text", HIDDEN)
def test_what_looks_like_a_credential_is_masked(text):
    assert redact(text) == HIDDEN[text]


def mask_secrets(text):
    look_again()
    return known_secrets().masked(text)


def test_other_words_stay():
    assert redact(SHOWN) == mask_secrets(SHOWN) == SHOWN


@pytest.mark.parametrize("name", KEYS)
def test_a_known_credential_is_masked_plain_and_escaped(name, monkeypatch):
    monkeypatch.setenv(name, TOKEN)
    written = f"{TOKEN} {json.dumps(TOKEN)} {quote(TOKEN, safe='')}"

    assert mask_secrets(written) == f'{MASK} "{MASK}" {MASK}'


def test_a_short_value_is_no_secret_since_it_would_be_found_in_words(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "example")

    assert mask_secrets("for example") == "for example"


@pytest.mark.parametrize("word", ["emulator", "socratic", "notarealkey"])
def test_a_word_is_no_secret_since_it_stands_for_one(word, monkeypatch):
    """`AWS_SECRET_ACCESS_KEY=emulator` would mask half a document."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", word)

    assert mask_secrets(f"{word}.model") == f"{word}.model"


@pytest.mark.parametrize("value", ["s3cretkey", "longlowercasesecret", "Passwords"])
def test_a_value_that_is_no_plain_word_is_a_secret(value, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", value)

    assert mask_secrets(f"{value}.model") == f"{MASK}.model"


def test_what_is_sent_is_known_from_then_on():
    value = f"CANARY{uuid4().hex}"
    learn_headers({"X-Amz-Security-Token": value.encode(), "Authorization": f"Bearer {value}2"})

    assert mask_secrets(f"{value} {value}2") == f"{MASK} {MASK}"


def test_errors_and_documents_hold_no_known_secret(monkeypatch):
    """Wherever a library's user may take them to."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    error = BenchError(f"No: {TOKEN}", hint=f"Renew {TOKEN}")
    usage = UsageError([f"--x {TOKEN}", "y"])

    assert (str(error), error.message, error.hint) == (
        f"No: {MASK}",
        f"No: {MASK}",
        f"Renew {MASK}",
    )
    assert (str(usage), usage.problems) == (f"--x {MASK} y", (f"--x {MASK}", "y"))
    assert encode({TOKEN: [TOKEN, {"a": f"b{TOKEN}"}]}) == b'{"***":["***",{"a":"b***"}]}'


def test_a_hint_that_is_set_later_is_masked_in_the_document():
    error = BenchError("No.")
    error.hint = f"The endpoint is {ENDPOINTS['password']}"

    assert ErrorEntry.of(error).hint == f"The endpoint is http://{MASK}@{NOWHERE}"
