"""The dashboard in a real browser: the whole way from an empty store to labels, and who is let in.

The commands that it starts play on an emulator of this process, which refuses one run.
"""

import json
import os
import re
import signal
import socket
import subprocess
from contextlib import contextmanager

import httpx
import pytest

from socratic_bench.emulator import Emulator, Settings, parse_fault
from tests.browser.test_report_page import PHONE, breaches
from tests.command import COMMAND, OF_THE_MACHINE, ROOT

pytestmark = pytest.mark.browser

MODELS = ("emulator.socratic-v1:0", "emulator.yields-v1:0")
SCENARIOS = ("ai-ethics", "career-change", "time-management")
WIDE = {"viewport": {"width": 1440, "height": 900}}
TURNS = 8
HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>{{ 7 * 7 }}'
# A request of one model is refused, once: later than those of doctor and of the look at models.
PLANTED = "validation:role=tutor:model=yields:after=10:count=1"
PATIENCE_MS = 30_000


class Dashboard:
    """The command, started and ended like a user's."""

    def __init__(self, store, url, **more):
        kept = {n: v for n, v in os.environ.items() if not n.startswith(OF_THE_MACHINE)}
        environment = {
            **kept,
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "not-a-secret-of-anybody",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
            "BEDROCK_MODEL_IDS": json.dumps([*MODELS, "emulator.judge-v1:0"]),
            **more,
        }
        self.process = subprocess.Popen(
            [*COMMAND, "dashboard", "--store", str(store)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=ROOT,
        )
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.base, self.token = self.url.split("/?token=")

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        _, words = self.process.communicate(timeout=20)
        assert self.process.returncode == 0
        assert "Traceback" not in words.decode(), words


@contextmanager
def served(store, url="http://127.0.0.1:9", **more):
    dashboard = Dashboard(store, url, **more)
    try:
        yield dashboard
        dashboard.end()
    finally:
        dashboard.kill()


@pytest.fixture
def page(browser):
    """A page, with what it asked for and complained of."""
    context = browser.new_context(**WIDE)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.requested, page.complaints = [], []
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("console", lambda line: page.complaints.append(line.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    yield page
    print(page.url, page.locator("#main").inner_text()[:3000])  # noqa: T201 -- what was there, if a test failed
    context.close()


def fill_form(page, name):
    page.fill("[data-key=name]", name)
    for value in (*MODELS, *SCENARIOS):
        page.check(f"input[value='{value}']")
    page.fill("[data-key=judge_model]", "emulator.judge-v1:0")
    page.fill("[data-key=turns]", str(TURNS))
    page.fill("[data-key=max_connections]", "4")


def assert_accessible(page, axe):
    """In both widths, light and dark; and nothing is wider than a phone."""
    for size, scheme in ((WIDE, "light"), (PHONE, "dark")):
        page.set_viewport_size(size["viewport"])
        page.emulate_media(color_scheme=scheme)
        assert breaches(page, axe) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size(WIDE["viewport"])
    page.emulate_media(color_scheme="light")


def test_the_whole_way(tmp_path, page, axe):
    store = tmp_path / "store"
    settings = Settings(latency_ms=600, faults=(parse_fault(PLANTED),))
    with Emulator(settings) as emulator:
        dashboard = Dashboard(store, emulator.url)
        try:
            page.goto(dashboard.url)
            assert page.url == f"{dashboard.base}/"  # without the token
            assert_accessible(page, axe)
            queue_two(page, axe)
            sweep = watch_one_grow(page, axe)
            assert page.complaints == []
            dashboard.kill()
            dashboard = Dashboard(store, emulator.url)
            page.goto(dashboard.url)
            page.complaints.clear()  # of the connection that was lost
            stop_and_go_on(page, sweep)
            page.locator("#facts", has_text="5 of 6").wait_for()
            play_the_failed_run_again(page, axe, sweep)
            compare(page, axe, sweep)
            make_report(page, axe)
            label_ten_turns(page, axe, sweep, store)
            wait_for_the_second(page, axe)
            dashboard.end()
        finally:
            dashboard.kill()

    assert all(url.startswith(("http://127.0.0.1:", "blob:")) for url in page.requested)
    assert page.complaints == []
    assert not page.evaluate("window.broken")


def queue_two(page, axe):
    page.click("text=New")
    page.locator("#models label", has_text=MODELS[0]).wait_for()
    page.fill("[data-key=turns]", "many")
    page.locator("#m-turns", has_text="whole number").wait_for()
    assert_accessible(page, axe)
    fill_form(page, HOSTILE)
    page.locator("#estimate", has_text="Duration").wait_for()
    assert "6" in page.locator("#estimate").inner_text()
    assert "--output-dir" in page.locator("#command").inner_text()
    page.click("text=Check access (doctor)")
    page.locator("#doctor li").first.wait_for()
    page.click("text=Add to the queue")
    page.locator("#queue th", has_text="window.broken").wait_for()
    page.click("text=New")
    page.locator("#models label", has_text=MODELS[0]).wait_for()
    fill_form(page, "second")
    page.locator("#estimate", has_text="Duration").wait_for()
    page.click("text=Add to the queue")
    page.locator("#queue th", has_text="second").wait_for()
    assert_accessible(page, axe)


def watch_one_grow(page, axe):
    """The first of the queue; returns its id."""
    page.locator("#queue a[href^='/sweeps/']").first.click()
    sweep = re.search(r"sweep-\w+", page.url)[0]
    page.locator("#grid a.running").first.wait_for()
    assert_accessible(page, axe)
    page.locator("#grid td:nth-of-type(1) a.running").first.click()
    page.locator("#dialogue .turn").first.wait_for()
    n_turns = page.locator("#dialogue .turn").count()
    assert n_turns < TURNS
    page.wait_for_function(f"document.querySelectorAll('#dialogue .turn').length > {n_turns}")
    page.locator("#dialogue .verdict b").first.wait_for()
    assert_accessible(page, axe)
    return sweep


def stop_and_go_on(page, sweep):
    """The command has gone on without the dashboard."""
    page.goto(f"{page.url.partition('/?')[0].rstrip('/')}/sweeps/{sweep}")
    page.click("#stop")
    page.locator("#job", has_text="ended").or_(page.locator("#job", has_text="stopped")).wait_for()
    page.locator("#go-on").click()


def play_the_failed_run_again(page, axe, sweep):
    page.click("text=Failed and unprocessed")
    page.locator("#failed td", has_text="ValidationException").wait_for()
    assert_accessible(page, axe)
    page.click("#retry")
    page.locator("#failed", has_text="Every run has its result").wait_for()


def compare(page, axe, sweep):
    page.click("text=Results")
    page.locator("#results h2", has_text="Leaderboard").wait_for()
    page.locator("#sides button").wait_for()
    assert_accessible(page, axe)
    page.select_option("[data-key=filter-scenario]", SCENARIOS[0])
    page.wait_for_function("document.querySelectorAll('#results circle').length < 8")
    page.click("#sides button")
    page.locator("#compared h2").wait_for()
    assert_accessible(page, axe)
    page.locator("#compared a").first.click()
    page.locator(".pair .verdict").first.wait_for()
    assert page.locator(".pair .verdict").count() == 2 * TURNS
    assert_accessible(page, axe)


def make_report(page, axe):
    page.click("text=Reports")
    page.locator("[data-key=name]").fill("first")
    page.check("[data-key=as-csv]")
    page.click("text=Make it")
    page.locator("#files a", has_text="open").first.wait_for()
    assert page.locator("#files th", has_text="csv.zip").count() == 1
    assert_accessible(page, axe)
    page.locator("#files a", has_text="open").first.click()
    page.frame_locator("iframe").locator("#leaderboard").wait_for()
    page.go_back()


def label_ten_turns(page, axe, sweep, store):
    base = re.match(r"http://[^/]+", page.url)[0]
    page.goto(f"{base}/sweeps/{sweep}/label")
    page.fill("[data-key=labeller]", "anna")
    page.fill("[data-key=turns]", "10")
    page.click("text=Begin or go on")
    page.locator("#question h2").wait_for()
    assert_accessible(page, axe)
    # By keyboard alone from here on.
    n_asked = 0
    while page.locator("#question h2").count() and n_asked < 400:
        question = page.locator("#question h2").inner_text()
        place = page.locator("#question input").get_attribute("id")
        if question.startswith("why"):
            page.keyboard.press("Enter")
        else:
            page.keyboard.press("n" if " y or n" in question else "2")
        page.wait_for_function(
            f"document.querySelector('#question input')?.id !== {json.dumps(place)}"
        )
        n_asked += 1
    page.locator("#agreement h2", has_text="Corrected").wait_for()
    page.click("text=Calibrate the judge")
    page.locator("#calibration pre").wait_for()
    words = page.locator("#calibration pre").inner_text()
    assert "error:" not in words
    assert "kappa" in words
    assert_accessible(page, axe)
    labels = store / "dashboard" / "labels" / f"{sweep}.jsonl"
    assert len(labels.read_text().splitlines()) > 5


def wait_for_the_second(page, axe):
    """It was started when the first had ended, and once."""
    page.click("text=Sweeps")
    page.locator("#sweeps td", has_text="6/6").nth(1).wait_for()
    assert page.locator("#sweeps tbody tr").count() == 2
    assert_accessible(page, axe)
    page.locator("[data-action=ask-rename]").first.click()
    page.locator("#sweeps [data-key=name]").fill("renamed")
    page.click("[data-action=rename]")
    page.get_by_role("link", name="renamed", exact=True).wait_for()
    page.locator("[data-action=ask-delete]").first.click()
    page.locator("[data-action=delete]").click()
    page.wait_for_function("document.querySelectorAll('#sweeps tbody tr').length === 1")


def test_who_is_let_in(tmp_path):
    with served(tmp_path / "store") as dashboard:
        host = dashboard.base.removeprefix("http://")
        with httpx.Client(base_url=dashboard.base) as stranger:
            assert stranger.get("/").status_code == 403
            assert stranger.get("/?token=wrong").status_code == 403
            assert stranger.get("/", headers={"Host": "evil.example"}).status_code == 421
            assert stranger.get("/", headers={"Origin": "http://evil.example"}).status_code == 403
            answer = stranger.get(f"/?token={dashboard.token}")
            assert answer.status_code == 303
            assert answer.headers["location"] == "/"
            page = stranger.get("/")
            assert page.status_code == 200
            assert "default-src 'self'" in page.headers["content-security-policy"]
            assert dashboard.token not in page.text
            upload = {"headers": {"Origin": dashboard.base}, "content": b"x"}
            assert stranger.post("/uploads/a", content=b"x").status_code == 403
            assert stranger.post("/uploads/..%2Fa", **upload).status_code in (200, 404)
            cookie = "; ".join(f"{name}={value}" for name, value in stranger.cookies.items())
        for origin, status in (
            (dashboard.base, "101"),
            ("http://evil.example", "403"),
            (None, "403"),
        ):
            assert handshake(host, cookie, origin) == status
        assert handshake(host, "", dashboard.base) == "403"


def handshake(host, cookie, origin):
    """The status of a WebSocket's first answer."""
    name, _, port = host.partition(":")
    lines = [
        "GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        f"Cookie: {cookie}",
        *([f"Origin: {origin}"] if origin else []),
    ]
    with socket.create_connection((name, int(port)), timeout=10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection.recv(100).split()[1].decode()
