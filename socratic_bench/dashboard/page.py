"""What all pages have in common: the frame, parts that are replaced where they change, actions.

A page is HTML of templates, in which all texts are escaped. The toolkit carries changed parts to
the browser and actions back, so a page needs no widgets of its own.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct
from nicegui import ui
from nicegui.events import GenericEventArguments

from socratic_bench.errors import BenchError

FOLDER = Path(__file__).parent / "page"
ASSETS = "/assets"
UNKNOWN = "\u2013"


class Action(Struct, frozen=True, kw_only=True):
    """What a person did: the name of a button or a change, its value, and the form's values."""

    action: str
    value: str = ""
    form: dict[str, Any] = {}


class View:
    """A page as one browser has it."""

    def __init__(self, title: str, content: str, *, store: str, current: str = "") -> None:
        """`current` is the link of the navigation that leads here."""
        self._sent: dict[str, str] = {}
        ui.page_title(f"{title} - Socratic dashboard")
        ui.add_head_html(
            f'<link rel="stylesheet" href="{ASSETS}/dashboard.css">'
            f'<script defer src="{ASSETS}/dashboard.js"></script>'
        )
        frame = render("frame.html", title=title, content=content, store=store, current=current)
        ui.html(frame, sanitize=False)
        self._client = ui.context.client

    def update(self, parts: Mapping[str, str]) -> None:
        """Replace parts by their ids, of those that have changed."""
        changed = {name: str(html) for name, html in parts.items() if self._sent.get(name) != html}
        if changed:
            self._sent.update(changed)
            self._client.run_javascript(f"patchParts({orjson.dumps(changed).decode()})")

    def fill(self, key: str, value: str) -> None:
        """Set the value of a field of the form."""
        place = orjson.dumps(f'[data-key="{key}"]').decode()
        text = orjson.dumps(value).decode()
        self._client.run_javascript(f"document.querySelector({place}).value = {text}")

    def go(self, path: str) -> None:
        """Open another page of the dashboard."""
        self._client.run_javascript(f"location.assign({orjson.dumps(path).decode()})")

    def poll(self, every_s: float, show: Callable[[], Awaitable[None]]) -> None:
        """Call `show` again and again while the page is open; an error is shown on the page."""
        ui.timer(every_s, partial(self._attempt, show))

    def soon(self, show: Callable[[], Awaitable[None]]) -> None:
        """Call `show` once the page is there: what takes long would leave it blank."""
        ui.timer(0.05, partial(self._attempt, show), once=True)

    async def _attempt(self, perform: Callable[[], Awaitable[None]]) -> None:
        try:
            await perform()
        except BenchError as error:
            self.say(" ".join(filter(None, (error.message, error.hint))))

    def on_action(self, perform: Callable[[Action], Awaitable[None]]) -> None:
        """Perform what a person does; an error of the program is shown on the page."""

        async def handle(event: GenericEventArguments) -> None:
            await self._attempt(partial(perform, Action(**event.args)))

        ui.on("action", handle)

    def say(self, text: str) -> None:
        """Show a message at the top of the page."""
        self._sent.pop("message", None)
        self.update({"message": Markup('<p class="notice">{}</p>').format(text) if text else ""})


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, duration=duration)
    return environment


def render(template: str, **values: object) -> Markup:
    """A template with values, whose texts are escaped."""
    return Markup(_environment().get_template(template).render(**values))  # noqa: S704 -- escaped


def number(value: float | None, places: int = 2) -> str:
    """A number for people; a dash for an unknown one."""
    return UNKNOWN if value is None else f"{value:,.{places}f}"


def duration(seconds: float | None) -> str:
    """Such as "3 min 20 s"; a dash for an unknown one."""
    if seconds is None:
        return UNKNOWN
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
