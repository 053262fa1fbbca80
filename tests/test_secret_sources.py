"""Credentials of every source that the SDK has come out nowhere: plain, escaped or in Base64."""

import json
import re
import sys
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path
from time import process_time
from urllib.parse import quote, quote_plus

import pytest

from socratic_bench.redaction import Secrets
from tests.command import CLAUDE, OPENING, Outcome, account, daily, environment, run
from tests.fakes import FakeBedrock, Said, Sent, answer, refusal, scored

JUDGE = "other.judge-v1:0"
KEY = "ASIACANARYACCESSKEY1"
SECRET = "CANARYsec/ret+with=sometimes/and+Anything0"
TOKEN = "CANARYtoken/+" + "Tt9/" * 20 + "=="
KEYS = (KEY, SECRET, TOKEN)
LOGIN = "CANARYlogin-eyJhbGciOi.J9_abc-" + "l" * 30
BEARER = "CANARYbearer_key-Zm9v+" + "b" * 40
ROLE = "arn:aws:iam::123456789012:role/Runner"
FAR = "2099-01-01T00:00:00Z"
WORDS = ("--model", CLAUDE, "--turns", "2", "--max-attempts", "1", "--debug")


@dataclass(frozen=True)
class Source:
    """Where the SDK finds credentials: variables, what they name, and who has to be asked.

    `before`: secrets that are known before anything is sent.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = KEYS
    before: tuple[str, ...] = KEYS


def of_variables(_: Path, __: str) -> Source:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    return Source(dict(zip(names, KEYS, strict=True)))


def of_a_bearer_token(_: Path, __: str) -> Source:
    found = {"AWS_BEARER_TOKEN_BEDROCK": BEARER, **of_variables(Path(), "").variables}
    return Source(found, (*KEYS, BEARER), (*KEYS, BEARER))


def rows(*values: str) -> str:
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    return "\n".join(f"{name} = {value}" for name, value in zip(names, values, strict=False))


def of_a_file(folder: Path, _: str) -> Source:
    (folder / "credentials").write_text(f"[default]\n{rows(*KEYS)}\n")
    return Source({"AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials")})


def of_a_profile(folder: Path, _: str) -> Source:
    (folder / "config").write_text(f"[profile work]\n{rows(*KEYS)}\nregion = eu-west-1\n")
    return Source({"AWS_CONFIG_FILE": str(folder / "config"), "AWS_PROFILE": "work"})


def of_a_process(folder: Path, _: str) -> Source:
    given = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "SessionToken": TOKEN}
    (folder / "given.json").write_text(json.dumps({"Version": 1, **given}))
    (folder / "config").write_text(f"[default]\ncredential_process = cat {folder}/given.json\n")
    return Source({"AWS_CONFIG_FILE": str(folder / "config")})


def of_a_container(_: Path, url: str) -> Source:
    return Source(
        {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/container",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": LOGIN,
        },
        (*KEYS, LOGIN),
        (*KEYS, LOGIN),
    )


def of_the_machine(_: Path, url: str) -> Source:
    return Source(
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "AWS_EC2_METADATA_DISABLED": "false"},
    )


def of_a_login(folder: Path, url: str) -> Source:
    start = "https://sso.invalid/start"
    cache = folder / ".aws/sso/cache"
    cache.mkdir(parents=True)
    token = {"startUrl": start, "region": "us-east-1", "accessToken": LOGIN, "expiresAt": FAR}
    name = sha1(start.encode()).hexdigest()  # noqa: S324 -- the SDK's own name for the file
    (cache / f"{name}.json").write_text(json.dumps(token))
    (folder / "config").write_text(
        f"[default]\nsso_start_url = {start}\nsso_region = us-east-1\n"
        "sso_account_id = 123456789012\nsso_role_name = Runner\n"
    )
    found = {"AWS_CONFIG_FILE": str(folder / "config"), "AWS_ENDPOINT_URL_SSO": url}
    return Source({**found, "HOME": str(folder)}, (*KEYS, LOGIN), (LOGIN,))


def of_a_web_identity(folder: Path, url: str) -> Source:
    (folder / "token").write_text(LOGIN)
    found = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(folder / "token"), "AWS_ROLE_ARN": ROLE}
    return Source({**found, "AWS_ENDPOINT_URL_STS": url}, (*KEYS, LOGIN), (LOGIN,))


def of_a_role(folder: Path, url: str) -> Source:
    own = ("AKIACANARYSOURCEKEY2", "CANARYsource/secret+" + "s" * 20)
    (folder / "credentials").write_text(f"[base]\n{rows(*own)}\n")
    (folder / "config").write_text(
        f"[default]\nrole_arn = {ROLE}\nsource_profile = base\nregion = us-east-1\n"
    )
    found = {
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"),
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_ENDPOINT_URL_STS": url,
    }
    return Source(found, (*KEYS, *own), own)


SOURCES: dict[str, Callable[[Path, str], Source]] = {
    "variables": of_variables,
    "bearer token": of_a_bearer_token,
    "file": of_a_file,
    "profile": of_a_profile,
    "process": of_a_process,
    "container": of_a_container,
    "machine": of_the_machine,
    "login": of_a_login,
    "web identity": of_a_web_identity,
    "role of a profile": of_a_role,
}


def give(sent: Sent) -> Said:
    """What STS, SSO, a container's and a machine's endpoint answer."""
    if "security-credentials/" in sent.path:
        if sent.path.endswith("/"):
            return Said(b"Runner")
        given = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": TOKEN}
        return Said(json.dumps({"Code": "Success", "Expiration": FAR, **given}).encode())
    if sent.path.endswith("/api/token"):
        return Said(b"imds-token")
    if sent.path.endswith("/container"):
        given = {"AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": TOKEN}
        return Said(json.dumps({**given, "Expiration": FAR}).encode())
    if "/federation/credentials" in sent.path:
        keys = {"accessKeyId": KEY, "secretAccessKey": SECRET, "sessionToken": TOKEN}
        return Said(json.dumps({"roleCredentials": {**keys, "expiration": 4070908800000}}).encode())
    action = "AssumeRoleWithWebIdentity" if b"WebIdentity" in sent.raw else "AssumeRole"
    keys_xml = (
        f"<AccessKeyId>{KEY}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
        f"<SessionToken>{TOKEN}</SessionToken><Expiration>{FAR}</Expiration>"
    )
    result = f"<{action}Result><Credentials>{keys_xml}</Credentials></{action}Result>"
    xmlns = "https://sts.amazonaws.com/doc/2011-06-15/"
    return Said(f'<{action}Response xmlns="{xmlns}">{result}</{action}Response>'.encode())


@pytest.fixture(scope="module")
def giver() -> Iterator[FakeBedrock]:
    with FakeBedrock({"": give}) as server:
        yield server


def written(secret: str) -> dict[str, str]:
    """The ways to write a secret, each between other words."""
    enclosed = [b"x" * offset + f"{secret}:more of it".encode() for offset in range(3)]
    return {
        "plain": secret,
        "json": json.dumps(secret)[1:-1],
        "json, slashes": secret.replace("/", "\\/"),
        "python": repr(secret)[1:-1],
        "json in json": json.dumps(json.dumps(secret))[1:-1],
        "url": quote(secret, safe=""),
        "url, small": re.sub("%..", lambda match: match[0].lower(), quote(secret, safe="")),
        "url of a url": quote(quote(secret, safe=""), safe=""),
        "form": quote_plus(secret),
        **{f"base64 at {n}": b64encode(raw).decode() for n, raw in enumerate(enclosed)},
        **{f"url base64 at {n}": urlsafe_b64encode(raw).decode() for n, raw in enumerate(enclosed)},
        "base64 alone": b64encode(secret.encode()).decode().rstrip("="),
    }


def traces(secret: str) -> dict[str, str]:
    """What must not be found: a form, or of base64 what its neighbours have no part in."""
    found = {}
    for name, form in written(secret).items():
        if "base64" in name:
            n_letters = len(secret) * 8 // 6
            found[name] = form[4 : n_letters - 2]
        else:
            found[name] = form
    return found


def said_with(secrets: tuple[str, ...]) -> str:
    forms = (form for secret in secrets for form in written(secret).values())
    return "What follows from (" + ") and (".join(forms) + ")?"


def assert_silent(outcome: Outcome, folder: Path, secrets: tuple[str, ...]) -> None:
    seen = {"stdout": outcome.stdout, "stderr": outcome.stderr.encode()}
    for path in folder.rglob("*"):
        if path.is_file():
            seen[str(path.relative_to(folder))] = path.read_bytes()
    found = [
        (place, name)
        for place, content in seen.items()
        for secret in secrets
        for name, trace in traces(secret).items()
        if trace.encode() in content or json.dumps(trace)[1:-1].encode() in content
    ]
    assert found == []


@pytest.mark.parametrize(
    "name", daily(SOURCES, "variables", "bearer token", "file", "process", "web identity")
)
def test_secrets_of_a_source_are_masked_from_the_first_request_on(name, giver, tmp_path):
    """They stand in the prompt, as far as they are known by then; the tutor and the judge say them
    all, in each form, and the last call is refused with them.
    """
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    source = SOURCES[name](home, giver.url)
    said = said_with(source.secrets)
    replies = [answer(said), refusal(400, "ValidationException", said)]
    with FakeBedrock({CLAUDE: replies, JUDGE: [scored(3, 3, 4, more=said)]}) as served:
        env = account(served.url, RUNNER_JUDGE_MODEL=JUDGE, RUNNER_OUTPUT_DIR=str(out))
        del env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
        prompt = f"{OPENING} {said_with(source.before)}"
        outcome = run(*WORDS, "--prompt", prompt, env={**env, **source.variables})
        asked = served.of(CLAUDE)

    assert (outcome.exit_code, outcome.document["n_turns"]) == (3, 1), outcome.stderr
    authorization = asked[0].headers["Authorization"]
    assert KEY in authorization or BEARER in authorization
    assert_silent(outcome, out, source.secrets)


@pytest.mark.parametrize(
    "words", [("--turns", "x"), ("--turns", "1"), ("--turns", "1", "--dry-run")], ids=" ".join
)
def test_a_files_secret_is_masked_where_nothing_is_signed_with_it(words, tmp_path):
    """Neither a mistake nor a dry run, nor a run without an account, has the SDK read it."""
    source = of_a_file(tmp_path, "")
    prompt = f"{OPENING} {said_with(KEYS)}"
    offline = ("--offline", "--model", "emulator.socratic-v1:0", "--prompt", prompt)
    outcome = run(
        *offline,
        *words,
        *("--output-dir", str(tmp_path / "out")),
        env=environment(**source.variables),
    )
    (tmp_path / "credentials").unlink()

    assert outcome.exit_code == (2 if "x" in words else 0), outcome.stderr
    assert "***" in outcome.document["prompt"]
    assert_silent(outcome, tmp_path, KEYS)


KEYS_UNTIL = '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", "Expiration": "'


@pytest.mark.parametrize(
    "program",
    [
        f"print('token={SECRET}', file=sys.stderr); sys.exit(3)",
        f'print(\'{{"Version": "{SECRET}"}}\')',
        f"print('{KEYS_UNTIL}{SECRET}\"}}')",
    ],
    ids=["it fails", "another version", "no time"],
)
def test_nothing_that_a_failing_process_prints_is_shown(tmp_path, program):
    """It may well print what it was about to give."""
    script = tmp_path / "give.py"
    script.write_text(f"import sys\n{program}\n")
    config = tmp_path / "config"
    config.write_text(f"[default]\ncredential_process = {sys.executable} {script}\n")
    for more in ((), ("--s3-bucket", "a-bucket")):
        env = account("http://127.0.0.1:9", AWS_CONFIG_FILE=str(config))
        del env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
        outcome = run(*WORDS, "--no-judge", "--prompt", OPENING, *more, env=env)

        shown = outcome.stdout.decode() + outcome.stderr
        assert outcome.exit_code in {2, 3}
        assert "credential_process" in outcome.document["error"]["message"]
        assert ("exit code 3" in outcome.document["error"]["message"]) == ("exit" in program)
        assert SECRET not in shown


def test_a_secret_that_comes_in_pieces_is_joined_before_it_is_masked(tmp_path):
    """Over two content blocks, each a stream's own: no half of it is told on its own."""
    halves = [{"text": f"Is it {SECRET[:20]}"}, {"text": f"{SECRET[20:]}? Why?"}]
    with FakeBedrock({CLAUDE: [answer(halves)]}) as served:
        env = account(served.url, RUNNER_OUTPUT_DIR=str(tmp_path))
        env["AWS_SECRET_ACCESS_KEY"] = SECRET
        outcome = run(*WORDS, "--no-judge", "--prompt", OPENING, env=env)

    assert outcome.document["turns"][0]["question"] == "Is it ***? Why?"
    for path in tmp_path.rglob("*.json*"):
        assert SECRET[:20] not in path.read_text()
        assert SECRET[20:] not in path.read_text()


def test_a_run_with_a_secret_in_its_prompt_goes_on_as_the_same_run(tmp_path):
    """Its identity and the digests of what was asked are of what was masked."""
    source = of_a_process(tmp_path, "")
    words = (*WORDS, "--no-judge", "--prompt", f"{OPENING} {said_with(KEYS)}", "--seed", "7")
    with FakeBedrock({CLAUDE: [answer(said_with(KEYS)), refusal(400, "ValidationException")]}) as s:
        env = {**account(s.url, RUNNER_OUTPUT_DIR=str(tmp_path / "out")), **source.variables}
        del env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
        cut = run(*words, env=env)
        s.reset()
        s.scripts = {CLAUDE: [answer("And then?")]}
        whole = run(*words, "--resume", env=env)
        asked = len(s.sent)

    assert (cut.exit_code, whole.exit_code, asked) == (3, 0, 1), whole.stderr
    assert whole.document["run_id"] == cut.document["run_id"]
    assert_silent(whole, tmp_path / "out", KEYS)


@pytest.mark.parametrize("word", daily(["abcdefgh", "correcthorsebat", "minioadmin"], first=1))
def test_a_secret_of_small_letters_is_masked(word, tmp_path):
    """Of a value of eight characters or more, nothing but the known stand-ins is left."""
    said = said_with((word,))
    with FakeBedrock({CLAUDE: [answer(said), refusal(400, "ValidationException", said)]}) as served:
        env = account(served.url, RUNNER_OUTPUT_DIR=str(tmp_path))
        env["AWS_SECRET_ACCESS_KEY"] = word
        outcome = run(*WORDS, "--no-judge", "--prompt", f"{OPENING} {said}", env=env)

    assert (outcome.exit_code, outcome.document["n_turns"]) == (3, 1), outcome.stderr
    assert_silent(outcome, tmp_path, (word,))


@pytest.mark.parametrize(
    "flood",
    ["%41", "%25", "\\", "&amp;", "&#0", "77 ", "\\u0041", "%41a", "\\n", "&sol;", "&a", "%0A"],
)
def test_a_long_text_full_of_escapes_is_searched_in_linear_time(flood):
    """Eight times the text takes about eight times as long, where a square would be 64 times."""
    secrets = Secrets([SECRET])
    taken_s = []
    for n_characters in (50_000, 400_000):
        text = flood * (n_characters // len(flood))
        assert secrets.masked(text) == text
        times = []
        for _ in range(3):
            start = process_time()
            secrets.masked(text)
            times.append(process_time() - start)
        taken_s.append(min(times))

    assert taken_s[1] < 30 * taken_s[0] + 0.05
