"""Calls that go wrong in ways of their own, as a user of the command meets them."""

import gzip
import json
import os
import re
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.client import parse_headers
from itertools import chain, repeat
from pathlib import Path
from urllib.parse import unquote
from zlib import crc32

import pytest

from socratic_bench.emulator.answers import event
from tests.command import CLAUDE, COMMAND, OPENING, ROOT, Outcome, account, assert_valid, daily, run
from tests.fakes import FakeBedrock, Said, Script, Sent, answer, refusal, scored
from tests.test_bedrock_session import ROLE, refusal_of_sts

STUDENT, JUDGE = "other.student-v1:0", "other.judge-v1:0"
GOOD = scored(3, 3, 4)


def play(scripts: Mapping[str, Script], *words: str, turns: int = 1) -> Outcome:
    """A run against a service that says what it is told."""
    with FakeBedrock({JUDGE: [GOOD], **scripts}) as service:
        outcome = run(
            *("--model", CLAUDE, "--judge-model", JUDGE, "--prompt", OPENING),
            *("--turns", str(turns), "--max-attempts", "2", *words),
            env=account(service.url, CLAUDE),
        )
    assert_valid("run", outcome.document)
    return outcome


# --- verdicts behind thoughts ---------------------------------------------------------------------


def verdict(score: float) -> str:
    return json.dumps({"form": score, "substance": score, "purity": score})


DRAFT, FINAL, BROKEN = verdict(0.5), verdict(2), '{"form": ..., "substance": 3}'

# What a judge says in words -> the score of its verdict, `None` if it is unreadable.
SAID: Mapping[str, float | None] = {
    f"<thinking>Perhaps {DRAFT}? No.</thinking>\n\n{FINAL}": 6,
    f"<think>{DRAFT} or {verdict(3)}</think>```json\n{FINAL}\n```": 6,
    f'<reasoning effort="high">{BROKEN}</reasoning>{FINAL}': 6,
    f"First {DRAFT}, then {BROKEN}. </think> {FINAL}": 6,
    f"<thinking>Perhaps {DRAFT}; rather {FINAL}": 6,
    f"<think>{DRAFT}</think><analysis>{verdict(1)}</analysis>{FINAL} So: {FINAL}": 6,
    f"[THINK]{DRAFT}[/THINK]{FINAL}": 6,
    f'<thinking>{DRAFT}</thinking>{FINAL} {{"confidence": 0.9}}': 6,
    f"<thinking>{DRAFT}</thinking>{FINAL} I gave it {{}}.": 6,
    f'Note {{"a": 1}}. {FINAL}': 6,
    f"<thinking>{DRAFT}</thinking>{FINAL}</thinking>": 6,
    FINAL.replace("}", ', "rationale": {"form": "It says </think>."}}'): 6,
    f"<thinking>{DRAFT}</thinking>{FINAL}{verdict(3)}": None,
    f"{FINAL}<thinking>Or {DRAFT}? No.</thinking>": 6,
    f"<thinking>{DRAFT}</thinking>{FINAL}<thinking>Or {DRAFT}?</thinking>": 6,
    **{
        f"<{tag}>{DRAFT}, no.</{tag.split()[0]}>\n{FINAL}": 6
        for tag in (
            "chain_of_thought",
            "thought_process",
            "INTERNAL_THOUGHTS",
            'cot step="1"',
            "Scratchpad",
            "innerMonologue",
            "score-analysis",
            "evaluation_thought_process",
            "working",
            "first_pass",
        )
    },
    f"<steps><cot>{DRAFT}</cot>{FINAL}</steps>": 6,
    f"<working>{BROKEN}</working><answer>{FINAL}</answer>": 6,
    f"&lt;cot&gt;{DRAFT}&lt;/cot&gt;{FINAL}": 6,
    f"{FINAL}<thinking>Or {DRAFT}": None,
    f"<verdict>{DRAFT}</verdict>{FINAL}": None,
    f"<final_thoughts>{DRAFT}</final_thoughts>{FINAL}": None,
    f"<pre>{DRAFT}</pre>{FINAL}": None,
    f"<working>{DRAFT} {FINAL}": None,
    f"{DRAFT}<revised>{FINAL}</revised>": None,
    f"<one>{DRAFT}</one><two>{FINAL}</two>": None,
    f"{DRAFT}<thinking>Hm.</thinking>{FINAL}": None,
    f"<thinking>{DRAFT}{FINAL}</thinking>": None,
    f"<thinking>{DRAFT}</thinking>{BROKEN}": None,
    f"[analysis]{DRAFT}[/analysis]{FINAL}": None,
}


def test_drafts_of_a_verdict_in_thoughts_are_none():
    """Each turn's judge says the next of them, whenever it is asked."""

    def judge(sent: Sent) -> Said:
        turns = [int(number) for number in re.findall(rb"What of (\d+)", sent.raw)]
        return answer(list(SAID)[max(turns)])

    tutor = [answer(f"What of {turn}?") for turn in range(len(SAID))]
    outcome = play({CLAUDE: tutor, JUDGE: judge}, turns=len(SAID))

    assert [turn["score"] for turn in outcome.document["turns"]] == list(SAID.values())
    assert outcome.document["judge"]["unjudged_reasons"] == {
        "unreadable_verdict": list(SAID.values()).count(None)
    }


# --- output that the service calls broken ---------------------------------------------------------


@pytest.mark.parametrize("stop_reason", ["malformed_output", "malformed_model_output"])
def test_broken_output_of_a_tutor_is_a_flaw_and_not_scored(stop_reason):
    outcome = play({CLAUDE: [answer("Why?"), answer("<|tool|>", stop_reason)]}, turns=3)
    turns = outcome.document["turns"]

    assert outcome.exit_code == 5, "one turn of three is judged"
    assert [turn["flaw"] for turn in turns] == [None, "malformed_output", "malformed_output"]
    assert [turn["score"] for turn in turns] == [10, None, None]
    assert {turn["unjudged_reason"] for turn in turns[1:]} == {"malformed_output"}
    # Of one turn; and of the dialogue as a whole, twice, since a verdict is no answer to that.
    assert outcome.document["usage"]["judge"]["input_tokens"] == 30


def test_a_student_whose_output_is_broken_is_asked_once_more():
    broken = answer("I like my <|tool|>", "malformed_model_output")
    scripts = {STUDENT: [broken, answer("I like my colleagues."), broken]}
    outcome = play(scripts, "--student-model", STUDENT, turns=3)
    document = outcome.document

    assert [turn["student"] for turn in document["turns"]][1:] == [
        "I like my colleagues.",
        "I like my <|tool|>",
    ]
    assert [turn["student_asked_again"] for turn in document["turns"]] == [False, True, True]
    assert document["student"]["fidelity_unjudged_reason"] == "invalid_verdict"  # by this judge


# --- what never left the machine, and who gives the credentials -----------------------------------

NOWHERE = "http://127.0.0.1:1"
OWN_PROCESS = (sys.executable, "-P", "-m", "cli")
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@dataclass(frozen=True)
class Way:
    """How the SDK is told what to sign with and where to send it, and what is to come of it."""

    code: str
    told: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    config: str | None = None
    program: str | None = None
    words: tuple[str, ...] = ()
    exit_code: int = 3
    n_attempts: int | None = 0
    lacks: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()


def process(program: str, *told: str) -> Way:
    told = ("gives-keys", "credential_process", *told)
    return Way("no_credentials", told, program=program, lacks=KEYS)


def file_of(name: str, content: str, *told: str) -> Way:
    return Way("no_credentials", (name, *told), config=content, lacks=KEYS)


def behind_a_role(program: str, *told: str) -> Way:
    told = ("gives-keys", "the profile own", *told)
    config = f"[default]\nrole_arn = {ROLE}\nsource_profile = own\n[profile own]\n"
    return Way("no_credentials", told, config=config, program=program, lacks=KEYS, unsaid=("STS",))


def profile_role(line: str = "") -> str:
    own = "[profile own]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = example\n"
    return f"[default]\nrole_arn = {ROLE}\nsource_profile = own\n{line}\n{own}"


WAYS: Mapping[str, Way] = {
    "line break in the key": Way(
        "no_credentials",
        ("Authorization", "Nothing was sent", "AWS_ACCESS_KEY_ID"),
        {"AWS_ACCESS_KEY_ID": "AKIA\nEXAMPLE"},
        n_attempts=1,
    ),
    "carriage return in the token": Way(
        "no_credentials",
        ("X-Amz-Security-Token", "AWS_SESSION_TOKEN"),
        {"AWS_SESSION_TOKEN": "session-token\r"},
        n_attempts=1,
    ),
    "quotes of a word processor": Way(
        "no_credentials",
        ("Authorization",),
        {"AWS_ACCESS_KEY_ID": "\u201cAKIAEXAMPLE\u201d"},
        n_attempts=1,
    ),
    "line break in the key that takes a role": Way(
        "no_credentials",
        ("STS", ROLE, "Nothing was sent"),
        {"AWS_ACCESS_KEY_ID": "AKIA\nEXAMPLE", "AWS_ENDPOINT_URL_STS": NOWHERE},
        words=("--assume-role-arn", ROLE),
        n_attempts=1,
    ),
    "no port": Way(
        "invalid_endpoint",
        ("99999", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
        {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://127.0.0.1:99999"},
    ),
    "no scheme": Way(
        "invalid_endpoint",
        ("ftp",),
        {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "ftp://127.0.0.1"},
        n_attempts=1,
    ),
    "no name of a host": Way(
        "invalid_endpoint",
        ("HTTPS_PROXY",),
        {"HTTP_PROXY": f"http://{'a' * 70}.example:80"},
        n_attempts=1,
    ),
    "no setting": Way("invalid_configuration", ("nonsense",), {"AWS_DEFAULTS_MODE": "nonsense"}),
    "program without JSON": process("echo hello", "no credentials in JSON"),
    "program with another JSON": process("echo '[1]'", "no credentials in JSON"),
    "program without text": process(r"printf '\377\376'", "no credentials in JSON"),
    "program that fails": process("exit 7", "exit code 7", "by hand"),
    "program that is none": file_of(
        "credential_process",
        "[default]\ncredential_process =\n",
        "the profile default",
        "no command",
    ),
    "program that is blank": file_of(
        "credential_process", '[default]\ncredential_process = ""\n', "the profile default"
    ),
    "program that is a table": file_of(
        "credential_process", "[default]\ncredential_process =\n  a = b\n", "no command"
    ),
    "program without JSON behind a role": behind_a_role("echo hello", "no credentials in JSON"),
    "program that fails behind a role": behind_a_role(
        "printf 'alas\\ncanary\\n' >&2; exit 1", "exit code 1"
    ),
    "program without texts behind a role": behind_a_role(
        """echo '{"Version": 1, "AccessKeyId": 1, "SecretAccessKey": "b"}'""", "is not text"
    ),
    "program whose keys have expired behind a role": replace(
        behind_a_role(
            """echo '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", """
            """"Expiration": "2001-01-01T00:00:00Z"}'""",
        ),
        code="expired_credentials",
        told=("gives-keys", "the profile own", "have expired already"),
    ),
    "no profile behind a role": Way(
        "no_credentials",
        (ROLE, "gone"),
        config=f"[default]\nrole_arn = {ROLE}\nsource_profile = gone\n",
        lacks=KEYS,
        unsaid=("STS",),
    ),
    "broken file": file_of("config", "[default\nregion", "Fix the file"),
    "broken line": file_of("config", "[default]\ns3 =\n  no pair\n", "Fix the file"),
    "missing profile": Way(
        "no_credentials", ("profile (elsewhere)", "AWS_PROFILE"), {"AWS_PROFILE": "elsewhere"}
    ),
    "missing profile and region": Way(
        "usage",
        ("profile (elsewhere)", "AWS_PROFILE", "No region"),
        {"AWS_PROFILE": "elsewhere"},
        lacks=("AWS_REGION",),
        exit_code=2,
    ),
    "STS out of reach": Way(
        "credentials_unreachable",
        ("STS", ROLE, NOWHERE, "AWS_ENDPOINT_URL_STS"),
        {"AWS_ENDPOINT_URL_STS": NOWHERE},
        words=("--assume-role-arn", ROLE),
        exit_code=4,
        n_attempts=2,
    ),
    "STS out of reach for a profile's role": Way(
        "credentials_unreachable",
        ("STS", ROLE, NOWHERE),
        {"AWS_ENDPOINT_URL_STS": NOWHERE},
        config=profile_role(),
        lacks=KEYS,
        exit_code=4,
        n_attempts=2,
    ),
    "a role that asks for a code": Way(
        "no_credentials",
        ("STS", ROLE, "MFA"),
        config=profile_role("mfa_serial = arn:aws:iam::123456789012:mfa/somebody"),
        lacks=KEYS,
        n_attempts=1,
    ),
}


@pytest.mark.parametrize(
    "name",
    daily(
        WAYS,
        "line break in the key",
        "quotes of a word processor",
        "no port",
        "no setting",
        "missing profile",
        "STS out of reach",
        "a role that asks for a code",
    ),
)
def test_what_was_not_sent_is_named_and_neither_retried_nor_billed(name, tmp_path):
    way = WAYS[name]
    with FakeBedrock() as service:
        variables = {**account(service.url, CLAUDE), **way.variables, **files_of(way, tmp_path)}
        env = {name: value for name, value in variables.items() if name not in way.lacks}
        # The SDK asks the terminal for a code, which a process of its own has not.
        entry = OWN_PROCESS if "MFA" in way.told else COMMAND
        outcome = run(*ONE_TURN, *way.words, env=env, entry=entry)
        assert service.sent == []
    document = outcome.document
    error = document["error"]
    latency = document["latency"]["tutor"] if way.n_attempts else {"unanswered_maybe_billed": 0}

    assert_valid("run", document)
    assert (outcome.exit_code, error["code"]) == (way.exit_code, way.code)
    said = f"{error['message']} {error['hint']}"
    assert [words for words in way.told if words not in said] == []
    assert [words for words in way.unsaid if words in error["message"]] == []
    assert error["message"].startswith(CLAUDE) is (way.n_attempts == 1 and "STS" not in way.told)
    assert document["usage"]["total"]["attempts"] == way.n_attempts
    assert latency["unanswered_maybe_billed"] == 0
    assert "canary" not in outcome.stderr


ONE_TURN = (
    *("--model", CLAUDE, "--prompt", OPENING, "--turns", "1", "--no-judge"),
    *("--max-attempts", "2"),
)


def files_of(way: Way, folder: Path) -> dict[str, str]:
    """The configuration file of a way, and the program in it."""
    content = way.config
    if way.program:
        program = folder / "gives-keys"
        program.write_text(f"#!/bin/sh\n{way.program}\n")
        program.chmod(0o755)
        profile = content or "[default]\n"
        content = f"{profile}credential_process = {program} --password canary\n"
    if content is None:
        return {}
    (folder / "config").write_text(content)
    return {"AWS_CONFIG_FILE": str(folder / "config")}


SIGNATURES = ("InvalidSignatureException", "InvalidSignature", "SignatureDoesNotMatch")


@pytest.mark.parametrize(
    ("code", "by"), [*((code, "bedrock") for code in SIGNATURES), ("SignatureDoesNotMatch", "sts")]
)
def test_a_refused_signature_speaks_of_the_secret_and_the_clock(code, by):
    with FakeBedrock({CLAUDE: [refusal(403, code)], "": [refusal_of_sts(code, "No.")]}) as service:
        env = account(service.url, CLAUDE, AWS_ENDPOINT_URL_STS=service.url)
        outcome = run(*ONE_TURN, *(("--assume-role-arn", ROLE) if by == "sts" else ()), env=env)
        assert len(service.sent) == 1
    error = outcome.document["error"]

    assert (outcome.exit_code, error["code"]) == (3, "no_credentials")
    assert "AWS_SECRET_ACCESS_KEY" in error["hint"]
    assert "clock" in error["hint"]


# --- defects of our own ---------------------------------------------------------------------------

# Where a defect is planted, by a module that Python runs before the program.
PLANTED = """
import importlib.abc, importlib.machinery, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != {module!r}:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            owner = module
            for part in {path!r}:
                owner = getattr(owner, part)
            def fail(*args, **kwargs):
                raise {kind}("planted")
            setattr(owner, {function!r}, fail)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
DEFECTS = {
    "whole answer": ("socratic_bench.models.bedrock.converse", "ConverseCall._whole_answer"),
    "event": ("socratic_bench.models.bedrock.converse", "StreamedAnswer.fields"),
    "answer": ("socratic_bench.models.bedrock.converse", "read_message"),
    "headers": ("socratic_bench.models.bedrock.session", "learn_headers"),
    "session": ("socratic_bench.models.bedrock.credentials", "learn"),
    "signing": ("socratic_bench.models.bedrock.session", "signs_with_token"),
}


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        pytest.param(
            place,
            kind,
            marks=() if (place, kind) == ("answer", "ValueError") else pytest.mark.torture,
        )
        for place in DEFECTS
        for kind in ("ValueError", "RuntimeError", "OSError")
    ],
)
def test_a_defect_of_our_own_is_one_and_no_reason_to_try_again(place, kind, tmp_path):
    module, dotted = DEFECTS[place]
    *path, function = dotted.split(".")
    planted = PLANTED.format(module=module, path=path, function=function, kind=kind)
    (tmp_path / "sitecustomize.py").write_text(planted)
    stream = () if "stream" in place or place == "event" else ("--no-stream",)
    with FakeBedrock() as service:
        env = account(service.url, CLAUDE, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
        outcome = run(*ONE_TURN, *stream, env=env)
        assert len(service.sent) <= 1
    error = outcome.document["error"]

    assert_valid("run", outcome.document)
    assert (outcome.exit_code, error["code"]) == (1, "internal")
    assert kind in error["message"]


# --- answers without an end -----------------------------------------------------------------------

MOST_KB = 200_000
WEIGHED = (
    "import resource, subprocess, sys\n"
    "code = subprocess.call([sys.executable, '-m', 'cli', *sys.argv[2:]])\n"
    "most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
    "open(sys.argv[1], 'w').write(str(most // (1024 if sys.platform == 'darwin' else 1)))\n"
    "sys.exit(code)\n"
)
PIECE = b"What follows? " * 5000


def text_of(piece: bytes) -> bytes:
    delta = {"delta": {"text": piece.decode()}, "contentBlockIndex": 0}
    return event("contentBlockDelta", delta)


def prelude(n_bytes: int) -> bytes:
    """What a frame of so many bytes begins with."""
    lengths = struct.pack(">II", n_bytes, 0)
    return lengths + struct.pack(">I", crc32(lengths))


@dataclass(frozen=True)
class Endless:
    """How an answer begins, and what it goes on with until nobody reads it any more."""

    head: bytes
    piece: bytes
    code: str = "answer_too_large"
    begin: bytes = b""
    is_chunked: bool = False
    is_streamed: bool = False
    times: int = 10**9

    def say(self, send: Callable[[bytes], object]) -> None:
        send(b"HTTP/1.1 " + self.head)
        if self.is_chunked:
            send(b"\r\nTransfer-Encoding: chunked")
        send(b"\r\nConnection: close\r\n\r\n")
        for piece in chain((self.begin,), repeat(self.piece, self.times)):
            send(b"%x\r\n%b\r\n" % (len(piece), piece) if self.is_chunked and piece else piece)


EVENTS = b"200 OK\r\nContent-Type: application/vnd.amazon.eventstream"
JSON = b"200 OK\r\nContent-Type: application/json"
BOMB = gzip.compress(b"[" * 10**8)
ENDLESS: Mapping[str, Endless] = {
    "until it closes": Endless(JSON, PIECE, begin=b'{"output": "'),
    "in chunks": Endless(JSON, PIECE, is_chunked=True),
    "said to be long": Endless(JSON + b"\r\nContent-Length: 999999999999999", PIECE),
    "one chunk": Endless(
        JSON + b"\r\nTransfer-Encoding: chunked", PIECE, begin=b"ffffffffffff\r\n"
    ),
    "an error": Endless(b"500 No\r\nx-amzn-ErrorType: InternalServerException", PIECE),
    "a redirect": Endless(b"307 Elsewhere\r\nLocation: http://127.0.0.1:1/", PIECE),
    "values": Endless(JSON, b"[], " * 20_000, begin=b'{"output": [', times=390),
    "packed": Endless(
        JSON + b"\r\nContent-Encoding: gzip", BOMB, times=1, code="unreadable_answer"
    ),
    "events": Endless(EVENTS, text_of(PIECE), is_chunked=True, is_streamed=True),
    "events of no kind": Endless(EVENTS, event("news", {"p": "x" * 90_000}), is_streamed=True),
    "an error of a stream": Endless(b"400 No", PIECE, is_chunked=True, is_streamed=True),
    "a frame": Endless(
        EVENTS, PIECE, begin=prelude(24 * 2**20), is_streamed=True, code="unreadable_answer"
    ),
    "a frame beyond all bounds": Endless(
        EVENTS, PIECE, begin=prelude(2**31), is_streamed=True, code="unreadable_answer"
    ),
}


def asked_for(connection: socket.socket) -> str:
    """The path of a request, read to its end: closing before would reset the connection."""
    with connection.makefile("rb") as asked:
        path = unquote(asked.readline().split(maxsplit=2)[1].decode())
        headers = parse_headers(asked)
        if "Expect" not in headers:
            asked.read(int(headers.get("Content-Length", 0)))
    return path


@contextmanager
def endless(endlessly: Endless, spared: Mapping[str, bytes] | None = None) -> Iterator[str]:
    """A server that says it to whoever asks anything, but for calls of the models that are spared:
    they get an answer each.
    """
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer_on, args=(connection,), daemon=True).start()

    def answer_on(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            path = asked_for(connection)
            whole = [body for model, body in (spared or {}).items() if model in path]
            answer = Endless(JSON, whole[0], times=1) if whole else endlessly
            answer.say(connection.sendall)

    threading.Thread(target=serve, daemon=True).start()
    with closing(server):
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def weighed(*words: str, env: Mapping[str, str], folder: Path) -> Outcome:
    """The command's outcome, if it has kept to its memory."""
    size = folder / "size"
    outcome = run(str(size), *words, env=env, entry=(sys.executable, "-c", WEIGHED))
    assert int(size.read_text()) < MOST_KB
    return outcome


@pytest.mark.parametrize("name", daily(ENDLESS, "until it closes", "events"))
def test_an_answer_of_a_model_without_end_is_refused_by_name(name, tmp_path):
    said = ENDLESS[name]
    words = (*ONE_TURN[:-1], "1", *(() if said.is_streamed else ("--no-stream",)))
    with endless(said) as url:
        outcome = weighed(*words, env=account(url, CLAUDE), folder=tmp_path)
    error = outcome.document["error"]

    assert_valid("run", outcome.document)
    assert (outcome.exit_code, error["code"]) == (4, said.code)
    assert outcome.document["latency"]["tutor"]["unanswered_maybe_billed"] == 1
    assert PIECE.decode()[:60] not in outcome.stderr


@pytest.mark.parametrize("name", ["in chunks", "events"])
def test_nor_do_many_of_them_add_up(name, tmp_path):
    said = ENDLESS[name]
    words = (*ONE_TURN[:-1], "8", *(() if said.is_streamed else ("--no-stream",)))
    with endless(said) as url:
        outcome = weighed(*words, env=account(url, CLAUDE), folder=tmp_path)

    assert outcome.document["error"]["code"] == "answer_too_large"
    assert outcome.document["usage"]["total"]["attempts"] == 8


def test_verdicts_without_end_at_once_keep_to_the_memory_of_few(tmp_path):
    """Up to four of them are asked for at once, beside the dialogue."""
    tutor = answer().body
    with endless(ENDLESS["in chunks"], spared={CLAUDE: tutor}) as url:
        outcome = weighed(
            *("--model", CLAUDE, "--judge-model", JUDGE, "--prompt", OPENING, "--no-stream"),
            *("--turns", "8", "--max-attempts", "1"),
            env=account(url, CLAUDE),
            folder=tmp_path,
        )
    document = outcome.document

    assert (outcome.exit_code, document["end_reason"]) == (4, "unavailable")
    assert len(document["turns"]) == 8
    assert {turn["unjudged_reason"] for turn in document["turns"]} <= {"unavailable", "run_ended"}


# What else is asked -> the flags that have it asked, the exit code, and how the run ends.
OTHERS = {
    "STS": (("--assume-role-arn", ROLE), 4, "answer_too_large"),
    "S3": (("--s3-bucket", "a-bucket"), 4, "artifacts"),
    "BEDROCK": ((), 3, "unknown_model"),
}


@pytest.mark.parametrize("service", OTHERS)
def test_nor_is_one_of_another_service_read(service, tmp_path):
    words, exit_code, code = OTHERS[service]
    said = refusal(404, "ResourceNotFoundException") if service == "BEDROCK" else answer()
    with endless(ENDLESS["until it closes"]) as url, FakeBedrock({CLAUDE: [said]}) as bedrock:
        env = {**account(bedrock.url, CLAUDE), f"AWS_ENDPOINT_URL_{service}": url}
        outcome = weighed(*ONE_TURN[:-1], "1", *words, env=env, folder=tmp_path)
    document = outcome.document

    assert (outcome.exit_code, document["error"]["code"]) == (exit_code, code)
    assert service != "STS" or "STS" in document["error"]["message"]
    assert service == "BEDROCK" or "no end within" in document["error"]["message"]


def test_interim_answers_without_end_are_given_up_after_the_calls_time(tmp_path):
    """No bound on bytes would end them: the SDK reads on for as long as they come."""
    piece = b"HTTP/1.1 100 Continue\r\n\r\n"
    with endless(Endless(b"100 Continue", piece)) as url:
        words = (*ONE_TURN[:-1], "1", "--call-timeout", "1")
        outcome = weighed(*words, env=account(url, CLAUDE), folder=tmp_path)

    assert_valid("run", outcome.document)
    assert (outcome.exit_code, outcome.document["error"]["code"]) == (4, "read_timeout")


def test_nor_is_one_about_tokens(tmp_path):
    with endless(ENDLESS["in chunks"]) as url:
        outcome = weighed(*ONE_TURN, "--dry-run", env=account(url, CLAUDE), folder=tmp_path)

    assert outcome.exit_code == 0
