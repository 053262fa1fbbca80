"""Serves the pages of the dashboard on one socket, behind the guard."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import PurePath
from secrets import token_hex, token_urlsafe

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, PlainTextResponse
from msgspec import Struct
from nicegui import app as pages
from nicegui import core, ui

from socratic_bench.dashboard import (
    page_failed,
    page_label,
    page_new,
    page_queue,
    page_reports,
    page_results,
    page_sweeps,
    page_watch,
)
from socratic_bench.dashboard.guard import REPORTS, TOKEN, Guard
from socratic_bench.dashboard.page import ASSETS, FOLDER
from socratic_bench.dashboard.workspace import Workspace
from socratic_bench.errors import BenchError, UsageError

QUEUE_POLL_S = 1.0
MAX_UPLOAD_BYTES = 64 * 2**20
_log = logging.getLogger(__name__)


class Address(Struct, frozen=True, kw_only=True):
    """Where the dashboard listens; `token` is drawn if there is none, `hosts` are further names."""

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    hosts: Sequence[str] = ()


def serve(workspace: Workspace, address: Address, on_ready: Callable[[str], None]) -> None:
    """Serve until a signal comes.

    `on_ready` gets the URL, with the token unless it is the user's own. Raises `UsageError` if the
    port is taken.
    """
    listener = _listen(address)
    port = listener.getsockname()[1]
    token = address.token or token_urlsafe(24)
    app = _app(workspace)
    guard = Guard(app, token=token, port=port, hosts={address.host, *address.hosts})
    config = uvicorn.Config(
        guard,
        access_log=False,  # its lines would have the token
        log_level="warning",
        timeout_graceful_shutdown=2,
        server_header=False,
        proxy_headers=False,
    )
    name = f"[{address.host}]" if ":" in address.host else address.host
    # A token of the user's own is a secret: output does not show it.
    word = "..." if address.token else token
    on_ready(f"http://{name}:{port}/?{TOKEN}={word}")
    uvicorn.Server(config).run(sockets=[listener])


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen()  # a browser that is quicker than the server waits
    except OSError as error:
        listener.close()
        raise UsageError(
            [f"{address.host}:{address.port} cannot be listened on: {error.strerror}."],
            hint="Choose another --port.",
        ) from error
    return listener


def _app(workspace: Workspace) -> FastAPI:
    app = FastAPI(lifespan=_lifespan(workspace), docs_url=None, redoc_url=None, openapi_url=None)

    @app.get(f"{REPORTS}{{name}}", response_model=None)
    def report_file(name: str) -> FileResponse | PlainTextResponse:
        path = workspace.files / "reports" / PurePath(name).name
        return FileResponse(path) if path.is_file() else PlainTextResponse("no such file", 404)

    @app.post("/uploads/{name}", response_model=None)
    async def upload(name: str, request: Request) -> PlainTextResponse:
        body = await request.body()
        if len(body) > MAX_UPLOAD_BYTES:
            return PlainTextResponse("The file has more than 64 MiB.", 413)
        folder = workspace.files / "uploads" / token_hex(8)
        folder.mkdir(parents=True)
        path = folder / (PurePath(name).name[-100:] or "file")
        path.write_bytes(body)
        return PlainTextResponse(str(path))

    for register in (
        *(page_sweeps.register, page_new.register, page_queue.register, page_watch.register),
        *(page_results.register, page_reports.register, page_failed.register),
        page_label.register,
    ):
        register(workspace)
    pages.add_static_files(ASSETS, FOLDER, max_cache_age=0)
    ui.run_with(
        app,
        title="Socratic dashboard",
        language="en-US",
        dark=None,
        tailwind=False,
        show_welcome_message=False,
        storage_secret=token_hex(16),
        binding_refresh_interval=None,
        reconnect_timeout=10.0,
    )
    core.app.config.reload = False
    return app


def _lifespan(workspace: Workspace) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(_advance_queue(workspace))
        yield
        task.cancel()
        await asyncio.to_thread(workspace.jobs.close)

    return lifespan


async def _advance_queue(workspace: Workspace) -> None:
    """Start what waits as long as the dashboard is open; an outage of the store is waited out."""
    poll_s = max(QUEUE_POLL_S, workspace.poll_s)
    while True:
        try:
            await asyncio.to_thread(workspace.jobs.advance)
        except BenchError as error:
            _log.warning("The queue cannot be read: %s", error.message)
        await asyncio.sleep(poll_s)
