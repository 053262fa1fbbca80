"""Credentials that run out in the middle of a run, with the SDK's own files and over real HTTP."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from socratic_bench import RunConfig, run
from socratic_bench.errors import ModelError
from socratic_bench.generation import GenerateConfig
from socratic_bench.models.bedrock.provider import Connection
from socratic_bench.models.bedrock.session import Endpoint
from socratic_bench.ports.provider import ErrorKind
from socratic_bench.types import CallKey, Message, Request
from tests.calling import Around
from tests.fakes import PATIENCE_S, FakeBedrock, Said, Sent, answer, refusal, scored

REQUEST = Request(messages=(Message.user("Hello."),), config=GenerateConfig(max_tokens=100))
KEY = CallKey(role="tutor", index=0)
EXPIRED = refusal(403, "ExpiredTokenException", "The security token has expired.")


@dataclass
class Account:
    """A service that serves the keys in `valid` only, and the file in which they stand."""

    service: FakeBedrock
    file: Path
    valid: set[str] = field(default_factory=set)

    def write(self, key_id: str) -> None:
        self.file.write_text(
            f"[default]\naws_access_key_id = {key_id}\naws_secret_access_key = secret\n"
        )

    def script(self, said: Said, before: Callable[[Sent], None] = lambda _sent: None) -> object:
        def serve(sent: Sent) -> Said:
            before(sent)
            return said if sent.key_id in self.valid else EXPIRED

        return serve

    @property
    def key_ids(self) -> list[str]:
        return [sent.key_id for sent in self.service.sent]


@pytest.fixture
def account(service: FakeBedrock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Account:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    found = Account(service, tmp_path / "credentials")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(found.file))
    found.write("OLD")
    service.scripts = {"tutor": found.script(answer("Why?")), "judge": found.script(answer("So."))}
    return found


@dataclass
class Roles:
    """Tutor and judge on one connection."""

    connection: Connection
    around: Around

    def ask(self, model_id: str = "tutor") -> list[str | None]:
        """The errors of the call's attempts, `None` for the one that answered."""
        model = self.around.model(self.connection, model_id, max_attempts=10)
        return [one.error for one in model.complete(REQUEST, KEY).attempts]

    def fail(self) -> ModelError:
        with pytest.raises(ModelError) as failed:
            self.ask()
        return failed.value


@pytest.fixture
def roles(account: Account) -> Iterator[Roles]:
    around = Around()
    there = Endpoint(region="us-east-1")
    with closing(Connection(there)) as connection:
        yield Roles(connection, around)


def test_new_credentials_are_read_once_for_all_roles(account, roles):
    account.write("NEW")
    account.valid = {"NEW"}

    assert roles.ask("tutor") == ["expired_credentials", None]
    assert roles.ask("judge") == [None]
    assert account.key_ids == ["OLD", "NEW", "NEW"]
    assert roles.around.waits == []
    assert roles.around.notices == ["The credentials have expired: the SDK was asked for new ones."]


def test_calls_that_fail_together_ask_once(account, roles):
    account.write("NEW")
    account.valid = {"NEW"}
    both_sent = threading.Barrier(2, timeout=PATIENCE_S)

    def meet(sent: Sent) -> None:
        if sent.key_id == "OLD":
            both_sent.wait()

    for role in ("tutor", "judge"):
        account.service.scripts[role] = account.script(answer("Why?"), meet)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(roles.ask, ("tutor", "judge")))

    assert found == [["expired_credentials", None]] * 2
    assert len(roles.around.notices) == 1


def test_credentials_that_stay_expired_end_the_call_at_once_and_for_good(account, roles):
    first, second = roles.fail(), roles.fail()

    assert (first.code, first.end_reason, first.retryable) == (
        "expired_credentials",
        "credentials",
        False,
    )
    assert [len(first.attempts), len(second.attempts)] == [2, 1]
    assert len(account.service.sent) == 3
    assert roles.around.waits == []
    assert first.hint.startswith("Renew the credentials")


def test_they_may_run_out_again_after_they_have_served(account, roles):
    for key_id in ("A", "B", "C"):
        account.write(key_id)
        account.valid = {key_id}
        assert roles.ask() == ["expired_credentials", None]

    assert account.key_ids == ["OLD", "A", "A", "B", "B", "C"]


def test_an_answer_to_the_old_ones_does_not_count_for_the_new_ones(account, roles):
    old = roles.connection.client
    spent = ErrorKind(code="expired_credentials", message="Expired.", end_reason="credentials")
    assert roles.connection.renewed(spent, old)
    assert roles.connection.current_client() is not old
    roles.connection.note_answer(old)

    assert not roles.connection.renewed(spent, roles.connection.client)


def test_credentials_that_are_gone_are_said_to_be_missing(account, roles):
    account.file.write_text("")

    error = roles.fail()
    assert (error.code, error.end_reason) == ("no_credentials", "credentials")
    assert len(account.service.sent) == 1


def test_a_run_goes_on_with_new_credentials(account):
    """They run out at the third reply; whoever renews them has just written the file."""
    account.valid = {"OLD"}
    n_replies = 0

    def expire(sent: Sent) -> None:
        nonlocal n_replies
        n_replies += 1
        if n_replies == 3:
            account.write("NEW")
            account.valid = {"NEW"}

    account.service.scripts = {
        "tutor": account.script(answer("What do you mean by that?"), expire),
        "judge": account.script(scored(3, 3, 4)),
    }
    config = RunConfig(
        model="tutor", judge_model="judge", prompt="Hello.", turns=5, region="us-east-1"
    )
    found = run(config).document

    assert (found["end_reason"], found["judge"]["judged_turns"]) == ("max_turns", 5)
    assert found["usage"]["tutor"]["calls"] == 5
    assert found["usage"]["tutor"]["attempts"] == 6
    assert found["notices"] == ["The credentials have expired: the SDK was asked for new ones."]


class TestLogin:
    @pytest.fixture
    def sso(self, account: Account, monkeypatch, tmp_path) -> FakeBedrock:
        """A profile whose SSO login is not there any more."""
        account.file.write_text("")
        config = tmp_path / "config"
        config.write_text(
            '[profile "my work"]\nsso_region = us-east-1\n'
            "sso_start_url = https://sso.invalid/start\n"
            "sso_account_id = 123456789012\nsso_role_name = Caller\n"
        )
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
        monkeypatch.setenv("AWS_PROFILE", "my work")
        return account.service

    def test_the_hint_names_the_command_and_the_profile(self, sso, roles):
        error = roles.fail()

        assert (error.code, error.end_reason) == ("expired_login", "credentials")
        assert error.hint == "Log in again with: aws sso login --profile 'my work'"
        assert sso.sent == []
        assert len(roles.around.notices) == 1
