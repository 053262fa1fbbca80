"""No test sees the developer's own environment, account or home."""

import atexit
import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from types import FunctionType
from typing import Any
from uuid import uuid4

import botocore.session
import pytest
from botocore import hooks
from hypothesis import HealthCheck, settings

from cli.runner import GC_THRESHOLDS
from tests.fakes import FakeBedrock
from tests.scripted_run import player

# How slow a machine is at the moment is no fault of what is tested.
settings.register_profile(
    "repository",
    deadline=None,
    derandomize=True,
    max_examples=50,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repository")

OURS = ("AWS_", "BEDROCK_", "RUNNER_")
WAITING = ("test_waits", "test_docs", "test_ten_minutes")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def pytest_configure() -> None:
    """Commands under test take signals, also where this process was told to ignore them (nohup)."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
    # Before anything draws. The font is that of vl-convert, and is not mapped anew for each word.
    os.environ["FONTCONFIG_FILE"] = str(Path(__file__).with_name("data") / "fonts.conf")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What mostly waits comes first, while other workers compute: at the end none would."""
    items.sort(key=lambda item: item.path.stem not in WAITING)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All tests and modules stay until the end: no search for garbage goes through them. After
    that it is as rare as the command has it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        atexit.register(gc.unfreeze)  # else nanobind would speak of leaks
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def clean_environment() -> Iterator[None]:
    """No account, no configuration, no proxy; nothing is asked of the instance's metadata. This
    holds for what a whole module shares, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in [*os.environ]:
            if name.startswith(OURS) or name.upper() in PROXIES:
                patch.delenv(name)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", os.devnull)
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        yield


@pytest.fixture(scope="session", autouse=True)
def signals_of_a_terminal() -> None:
    """What these tests start takes SIGHUP by default, even where they run under `nohup` themselves:
    a signal that is handled, and not ignored, is handed down as the default.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture(scope="session", autouse=True)
def shared_sdk() -> Iterator[None]:
    """What the SDK would read and look at anew for each of thousands of sessions: its data files,
    the signatures of its handlers, and the other names of its events.
    """
    accepts_kwargs, of_function = hooks.accepts_kwargs, cache(hooks.accepts_kwargs)
    aliases: dict[str, str] = {}
    begin = hooks.EventAliaser.__init__

    def has_kwargs(handler: Any) -> bool:
        return (of_function if isinstance(handler, FunctionType) else accepts_kwargs)(handler)

    def with_shared_aliases(aliaser: Any, *emitter: Any, **more: Any) -> None:
        begin(aliaser, *emitter, **more)
        aliaser._alias_name_cache = aliases

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cache(botocore.session.create_loader))
        patch.setattr(hooks, "accepts_kwargs", has_kwargs)
        patch.setattr(hooks.EventAliaser, "__init__", with_shared_aliases)
        yield


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials as a user has them in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATESTKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, keys: None) -> Iterator[FakeBedrock]:
    """A scripted service at the endpoint that the SDK's own variable names, and keys for it."""
    with FakeBedrock() as fake:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", fake.url)
        yield fake


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def play(service: FakeBedrock, out: Path) -> Any:
    """Plays a run with scripts, and keeps it in the folder `out`."""
    return player(service, out)


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """S3, STS and IAM as moto plays them, over real HTTP."""
    import moto.backends
    from moto.server import ThreadedMotoServer

    # For each request it looks which folders it has itself, and logs a line.
    names = tuple(moto.backends.list_of_moto_modules())
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(moto.backends, "list_of_moto_modules", lambda: names)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    # The first request has it import what it plays S3 with: a check of a bucket waits only 2 s.
    connection = HTTPConnection(host, port)
    connection.request("HEAD", "/none")
    connection.getresponse().read()
    connection.close()
    yield f"http://{host}:{port}"
    server.stop()
    monkeypatch.undo()


@pytest.fixture(scope="module")
def client(moto_url: str) -> Iterator[Any]:
    """How tests look into buckets by themselves."""
    import boto3

    session = boto3.Session("AKIATESTKEY", "secret", region_name="us-east-1")
    with closing(session.client("s3", endpoint_url=moto_url)) as client:
        yield client


@pytest.fixture
def bucket(client: Any) -> str:
    """The name of an empty bucket of the test's own."""
    name = f"bucket-{uuid4().hex}"
    client.create_bucket(Bucket=name)
    return name
