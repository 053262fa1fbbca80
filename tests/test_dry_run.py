"""What a dry run predicts is what the same command then takes, and nothing is called for it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from socratic_bench import RunConfig
from socratic_bench.benchmarks.socratic.benchmark import BENCHMARK
from socratic_bench.emulator import Emulator, Settings
from socratic_bench.errors import ENDINGS
from tests import owned_clock
from tests.command import CLAUDE, OPENING, account, assert_valid, daily, environment, run

HAIKU = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
NOVA = "amazon.nova-lite-v1:0"
KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "calls")
ROLES = ("tutor", "student", "judge", "total")
TOLERANCE = 0.15
# On a clock that nothing but the endpoint's latencies moves, there is less to be wrong about.
SAME_CLOCK = 0.03


def words(model, turns, *more):
    start = ("--model", model, "--scenario", "career-change", "--turns", str(turns))
    return (*start, "--seed", "7", *more)


def predicted(*words, env=None):
    outcome = run(*words, "--dry-run", "--quiet", env=env)
    document = outcome.document
    assert outcome.exit_code == (3 if document["error"] else 0), outcome
    assert (document["error"] is None) == (ENDINGS[document["end_reason"]].exit_code != 3)
    assert_valid("dry_run", document)
    return document


def assert_close(expected, happened, tolerance=TOLERANCE):
    for role in ROLES:
        for kind in KINDS:
            told, found = expected["usage"][role][kind], happened["usage"][role][kind]
            assert told == pytest.approx(found, rel=tolerance), (role, kind)
    told, found = (document["cost"]["total"]["total_usd"] for document in (expected, happened))
    assert told == pytest.approx(found, rel=tolerance)
    assert expected["end_reason"] == happened["end_reason"]
    assert expected["n_turns"] == happened["n_turns"]


def assert_predicted(asked, settings, patch):
    """What the command does and takes is predicted as it happens, on a clock of the test's own.

    How well time is predicted on a busy machine is measured by `make bench`.
    """
    with Emulator(settings) as served:
        expected = predicted(*asked, env=account(served.url, asked[1]))
    happened = owned_clock.play(asked, settings, patch)

    assert_close(expected, happened, SAME_CLOCK)
    told, took = expected["duration_seconds"], happened["timestamps"]["duration_seconds"]
    assert told == pytest.approx(took, rel=SAME_CLOCK)
    return expected


WHOLE_TOOLS = "emulator.whole-tools-v1:0"
STUDENT = ("--student-model", "emulator.student-v1:0")
COMMANDS = {
    "one turn": words("emulator.socratic-v1:0", 1),
    "eight turns": words("emulator.socratic-v1:0", 8),
    "forty turns": words("emulator.socratic-v1:0", 40),
    "model student": words("emulator.socratic-v1:0", 8, *STUDENT),
    "model student, forty turns": words("emulator.mixture-1-v1:0", 40, *STUDENT),
    "no judge": words("emulator.drift-5-v1:0", 8, "--no-judge"),
    "drift": words("emulator.drift-5-v1:0", 40),
    "lecturer": words("emulator.lecturer-v1:0", 8),
    "no cache": words("emulator.drift-12-v1:0", 40, *STUDENT, "--no-prompt-cache"),
    "picky": words("emulator.picky-v1:0", 8, "--judge-model", "emulator.picky-v1:0"),
    "one model for all": words(
        "emulator.socratic-v1:0",
        *(8, "--judge-model", "emulator.socratic-v1:0"),
        *("--student-model", "emulator.socratic-v1:0"),
    ),
    "student who leaves": words(
        "emulator.socratic-v1:0", 20, "--student-model", "emulator.student-closing-4-v1:0"
    ),
    "short replies": words("emulator.lecturer-v1:0", 8, "--max-tokens", "12"),
    "thinking": words("emulator.socratic-v1:0", 8, "--enable-thinking"),
    "pressure": words("emulator.drift-5-v1:0", 8, "--pressure", "high"),
    "budget for nothing": words("emulator.socratic-v1:0", 8, "--max-cost-usd", "0.0001"),
    "guardrail": words("emulator.socratic-v1:0", 8, "--guardrail", "blocks1:1"),
    "flex": words("emulator.socratic-v1:0", 8, "--service-tier", "flex"),
}
EVERY_DAY = ("model student", "no judge", "picky", "student who leaves", "thinking", "pressure")
EVERY_DAY = (*EVERY_DAY, "one model for all", "budget for nothing", "guardrail", "flex")


@pytest.mark.parametrize("case", daily(COMMANDS, *EVERY_DAY))
def test_what_is_predicted_happens(case):
    expected = predicted("--offline", *COMMANDS[case])
    happened = run("--offline", *COMMANDS[case]).document

    assert_close(expected, happened)
    assert expected["cost"]["stand_in"] is True


PROFILE_ONLY = "anthropic.claude-sonnet-4-5-20250929-v1:0"
REFUSALS = {
    # Nothing is paced that is not streamed.
    "no stream": ("emulator.socratic-v1:0", "emulator.judge-v1:0", "--no-stream"),
    "no stream to be had": ("emulator.whole-v1:0", "emulator.whole-v1:0"),
    "no tools within a stream": ("emulator.socratic-v1:0", WHOLE_TOOLS),
    # Several things of a request are refused, one after the other.
    "tutor and judge": ("emulator.picky-v1:0", "emulator.picky-v1:0"),
    # What the first verdict is refused, those that wait for it do not ask for.
    "judge": ("emulator.socratic-v1:0", "emulator.picky-v1:0"),
    "cache points": ("emulator.socratic-v1:0", "openai.gpt-oss-120b-1:0"),
    # The dialogue goes on until the refusal is there.
    "judge, for good": ("emulator.socratic-v1:0", PROFILE_ONLY),
    "tutor, for good": ("anthropic.claude-v2:1", "emulator.judge-v1:0"),
}


@pytest.mark.parametrize("case", daily(REFUSALS, "tutor and judge", "judge, for good"))
def test_what_is_refused_takes_its_time(case, monkeypatch):
    tutor, judge, *more = REFUSALS[case]
    asked = words(tutor, 4, "--judge-model", judge, *more)
    # By these latencies no two answers come nearly at once.
    latency_model = Settings(role_latency_ms={"tutor": 200, "judge": 800}, ms_per_output_token=5)

    assert_predicted(asked, latency_model, monkeypatch)


TOGETHER = {"tutor": 150, "student": 150, "judge": 150}
SLOW_JUDGE = {"tutor": 150, "student": 150, "judge": 1200}
BOUND = {
    # Near the end of a budget calls wait for each other.
    "budget": (TOGETHER, CLAUDE, ("--max-cost-usd", "0.12")),
    "budget, small": (TOGETHER, CLAUDE, ("--max-cost-usd", "0.05")),
    "budget, student": (TOGETHER, CLAUDE, (*STUDENT, "--max-cost-usd", "0.1")),
    "budget, slow judge": (SLOW_JUDGE, "emulator.judge-v1:0", ("--max-cost-usd", "0.1")),
    "deadline": (TOGETHER, CLAUDE, ("--deadline", "2")),
    "deadline, slow judge": (SLOW_JUDGE, "emulator.judge-v1:0", ("--deadline", "3.5")),
    # Only so many verdicts are asked for at once, and the first one alone if others read what it
    # has written to the cache.
    "slow judge": (SLOW_JUDGE, "emulator.judge-v1:0", ()),
    "slow judge that caches": (SLOW_JUDGE, CLAUDE, ()),
}


@pytest.mark.parametrize("case", daily(BOUND, "budget", "deadline, slow judge", "slow judge"))
def test_what_waits_for_what_is_predicted(case, monkeypatch):
    latencies, judge, more = BOUND[case]
    asked = words("emulator.socratic-v1:0", 20, "--judge-model", judge, *more)

    expected = assert_predicted(asked, Settings(role_latency_ms=latencies), monkeypatch)
    assert expected["end_reason"] == (case.split(",")[0] if more else "max_turns")


def test_what_a_budget_buys_where_answers_come_at_once_is_predicted(monkeypatch):
    # Not a budget that ends within the last call: there, which answer comes first decides.
    more = (*STUDENT, "--judge-model", "emulator.judge-v1:0", "--max-cost-usd", "0.31")
    asked = words("emulator.mixture-1-v1:0", 30, *more)

    expected = assert_predicted(asked, Settings(), monkeypatch)
    assert expected["end_reason"] == "budget"
    assert 0 < expected["n_turns"] < 30


def test_an_emulator_elsewhere_is_asked_too():
    with Emulator(Settings(latency_ms=300), host="127.0.0.3") as served:
        told = predicted(*words(CLAUDE, 3), env=account(served.url, CLAUDE))

    assert told["duration_seconds"] == pytest.approx(1.2, rel=TOLERANCE)
    assert told["assumptions"]["replies"]["tutor"]["source"] == "emulator"


def test_an_endpoint_of_the_configuration_file_is_asked_too(tmp_path):
    with Emulator(Settings(latency_ms=300)) as served:
        file = tmp_path / "config"
        file.write_text(f"[default]\nendpoint_url = {served.url}\n")
        env = account("", CLAUDE, NOVA, AWS_CONFIG_FILE=str(file))
        told = predicted(*words(CLAUDE, 3), env=env)
        env["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true"
        elsewhere = predicted(*words(NOVA, 3, "--no-judge"), env=env)

    assert told["duration_seconds"] == pytest.approx(1.2, rel=TOLERANCE)
    assert told["assumptions"]["replies"]["tutor"]["source"] == "emulator"
    assert elsewhere["assumptions"]["replies"]["tutor"]["source"] == "assumed"


@pytest.mark.parametrize(
    "refused",
    [
        words("emulator.picky-v1:0", 4, "--temperature", "0.5"),
        words("emulator.socratic-v1:0", 4, "--guardrail", "absent1:1"),
    ],
    ids=["temperature", "guardrail"],
)
def test_what_is_refused_is_predicted(refused):
    told = predicted("--offline", *refused)
    happened = run("--offline", *refused)

    assert happened.exit_code == 3
    assert told["end_reason"] == happened.document["end_reason"] == "refused_request"
    for key in ("code", "message"):
        assert told["error"][key] == happened.document["error"][key]


def test_what_is_reserved_for_a_refused_request_is_given_back():
    picky = ("--student", "model", "--student-model", "emulator.picky-v1:0")
    asked = ("--offline", *words("emulator.socratic-v1:0", 4, *picky, "--max-cost-usd", "0.11"))
    told, happened = predicted(*asked), run(*asked).document

    assert (told["end_reason"], told["n_turns"]) == ("budget", 1)
    assert (
        happened["end_reason"] == "budget"
    )  # how many turns are played, the quicker answer decides


def test_another_program_at_this_machine_is_no_emulator():
    with counter(1000, host="127.0.0.1") as (url, _):
        told = predicted(*words(CLAUDE, 4), env=account(url, CLAUDE, RUNNER_JUDGE_MODEL=CLAUDE))

    assert {reply["source"] for reply in told["assumptions"]["replies"].values()} == {"assumed"}
    # At the assumed pace of models: four replies and a verdict, one after the other.
    assert told["duration_seconds"] > 5 * 0.8


def test_what_is_replayed_is_neither_called_nor_judged(tmp_path):
    record = [{"student": "I want to quit my job.", "tutor": "What makes you want to?"}] * 3
    file = tmp_path / "record.json"
    file.write_text(json.dumps({"turns": record}))
    more = words("emulator.drift-5-v1:0", 4, "--transcript", str(file))

    expected = predicted("--offline", *more)
    happened = run("--offline", *more).document

    assert_close(expected, happened)
    # Four verdicts, and the one on the dialogue as a whole.
    assert expected["usage"]["judge"]["calls"] == 4 + 1


def test_caching_is_predicted_too():
    told = predicted("--offline", *COMMANDS["model student, forty turns"])["usage"]

    for role in ("tutor", "student"):
        assert told[role]["cache_read_tokens"] > told[role]["input_tokens"] / 2


def test_models_at_an_emulator_of_ones_own_are_predicted_and_nothing_is_asked_of_them():
    with Emulator(Settings()) as served:
        env = account(served.url, CLAUDE, RUNNER_JUDGE_MODEL=CLAUDE)
        expected = predicted(*words(CLAUDE, 8), env=env)
        asked = {request.operation for request in served.requests}
        happened = run(*words(CLAUDE, 8), env=env).document

    assert asked <= {"CountTokens"}
    assert_close(expected, happened)
    assert expected["cost"]["stand_in"] is False


# --- real models ---


@contextmanager
def counter(tokens, held=None, host="127.0.0.2") -> Iterator[tuple[str, list]]:
    """An endpoint that counts tokens in its own way, and answers nothing else.

    `held`: an event that its answers wait for.
    """
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, json.loads(body)))
            if held:
                held.wait()
            status, answer = (200, {"inputTokens": tokens}) if tokens else (403, {"message": "no"})
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

        def handle_one_request(self) -> None:
            # An answer that nobody waits for any more finds nobody.
            with suppress(ConnectionError):
                super().handle_one_request()

    server = ThreadingHTTPServer((host, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{host}:{server.server_address[1]}", asked
    finally:
        if held:
            held.set()
        server.shutdown()
        server.server_close()


def real(*more):
    return (*words(CLAUDE, 8), "--judge-model", HAIKU, *more)


def test_real_models_have_assumptions_a_range_and_real_prices():
    with counter(None) as (url, _):
        document = predicted(*real("--student-model", HAIKU), env=account(url, CLAUDE))
    low, high = document["low"], document["high"]

    assert document["cost"]["stand_in"] is False
    assert {told["source"] for told in document["assumptions"]["replies"].values()} == {"assumed"}
    assert set(document["assumptions"]["token_counts"].values()) == {"estimated"}
    for told in document["assumptions"]["replies"].values():
        assert 0 < told["low_tokens"] < told["tokens"] < told["high_tokens"]
    assert low["cost_usd"] < document["cost"]["total"]["total_usd"] < high["cost_usd"]
    assert low["duration_seconds"] < document["duration_seconds"] < high["duration_seconds"]
    assert document["usage"]["total"]["calls"] == 8 + 7 + 8 + 1


def test_what_the_service_counts_is_believed():
    with counter(None) as (url, _):
        guess = predicted(*real(), env=account(url, CLAUDE))
    with counter(20_000) as (url, asked):
        told = predicted(*real(), env=account(url, CLAUDE))

    # An inference profile's tokens are counted by its model; each model is asked about once.
    assert sorted(path for path, _ in asked) == [
        f"/model/{name.replace(':', '%3A')}/count-tokens"
        for name in (CLAUDE, HAIKU.removeprefix("us."))
    ]
    assert set(told["assumptions"]["token_counts"].values()) == {"counted"}
    largest = len(json.dumps(max((body for _, body in asked), key=lambda b: len(json.dumps(b)))))
    assert largest > 1000
    for role in ("tutor", "judge"):
        assert told["usage"][role]["input_tokens"] > 2 * guess["usage"][role]["input_tokens"]


def test_a_count_that_does_not_come_is_not_waited_for():
    """None comes before the command has ended."""
    with counter(3000, held=threading.Event()) as (url, asked):
        told = predicted(*real(), env=account(url, CLAUDE))

    assert len(asked) == 2
    assert set(told["assumptions"]["token_counts"].values()) == {"estimated"}


def test_an_unknown_price_is_unknown_here_too():
    with counter(None) as (url, _):
        env = account(url, "unknown.model-v1:0")
        document = predicted(*words("unknown.model-v1:0", 2, "--judge-model", HAIKU), env=env)

    assert document["cost"]["judge"]["total_usd"] > 0
    assert (document["cost"]["tutor"], document["cost"]["total"]) == (None, None)
    assert (document["low"]["cost_usd"], document["high"]["cost_usd"]) == (None, None)


@pytest.fixture(scope="module")
def free():
    with counter(None) as (url, _):
        return predicted(*words(CLAUDE, 4), env=account(url, CLAUDE))


@pytest.mark.parametrize(
    ("deadline_s", "covers"), [("600", (True, True)), ("20", (True, False)), ("1", (False, False))]
)
def test_it_says_whether_a_deadline_will_do(deadline_s, covers, free):
    with counter(None) as (url, _):
        env = account(url, CLAUDE)
        bounded = predicted(*words(CLAUDE, 4, "--deadline", deadline_s), env=env)

    told = bounded["deadline"]
    assert told.pop("deadline_s") == float(deadline_s)
    assert tuple(told.values()) == covers
    assert free["deadline"] is None
    # What is bounded goes on to the deadline, and no further.
    for key, covered in zip(((), ("high",)), covers, strict=True):
        one, other = (reduce(dict.__getitem__, key, each) for each in (bounded, free))
        if covered:
            assert one["duration_seconds"] == other["duration_seconds"] <= float(deadline_s)
        else:
            assert one["duration_seconds"] == float(deadline_s) < other["duration_seconds"]
    assert bounded["end_reason"] == ("max_turns" if covers[0] else "deadline")
    assert (bounded["n_turns"] == free["n_turns"]) == covers[0]


def test_it_says_whether_a_budget_will_do():
    offline = ("--offline", *COMMANDS["eight turns"])

    assert predicted(*offline)["budget"] is None
    assert predicted(*offline, "--max-cost-usd", "1")["budget"] == {
        "max_cost_usd": 1.0,
        "covers_high": True,
    }
    assert predicted(*offline, "--max-cost-usd", "0.01")["budget"]["covers_high"] is False


# --- the command ---


def test_it_says_in_words_what_it_says_in_the_document():
    outcome = run("--offline", *COMMANDS["eight turns"], "--dry-run")
    document = outcome.document

    assert (
        f"tutor       8 calls {document['usage']['tutor']['input_tokens']:10,d} in"
        in outcome.stderr
    )
    assert f"expected {document['cost']['total']['total_usd']:.4f} USD" in outcome.stderr
    assert "nothing was called" in outcome.stderr


def test_it_keeps_nothing(tmp_path):
    folder = tmp_path / "out"
    predicted("--offline", *COMMANDS["one turn"], "--output-dir", str(folder))

    assert list(folder.rglob("*")) == []


def test_all_mistakes_are_found(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    outcome = run("--offline", "--model", "emulator.nobody", "--turns", "0", "--dry-run")
    store = run(
        "--offline", *COMMANDS["one turn"], "--dry-run", "--output-dir", str(blocked / "out")
    )

    assert outcome.exit_code == store.exit_code == 2
    for part in ("is none", "turns is 0", "is required"):
        assert part in outcome.document["error"]["message"]
    assert str(blocked) in store.document["error"]["message"]


def test_without_an_account_it_tells_all_the_same():
    env = environment(AWS_REGION="us-east-1", BEDROCK_MODEL_IDS=json.dumps([CLAUDE]))
    env["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] = "http://127.0.0.2:9"

    document = predicted("--model", CLAUDE, "--prompt", OPENING, "--turns", "2", env=env)

    assert document["cost"]["total"]["total_usd"] > 0


def test_a_scripted_student_takes_an_expected_reply_for_an_open_question():
    from socratic_bench.benchmarks.socratic.heuristics import analyse

    episode = BENCHMARK.prepare(RunConfig(model="m", scenario="career-change"))

    for length in ("short", "likely", "long"):
        assert analyse(episode.expected_reply("tutor", length)).open_ended
