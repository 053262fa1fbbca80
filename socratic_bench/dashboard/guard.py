"""Who may use the dashboard: whoever has its token, from a page of its own, by a name of its own.

A page on the internet can send requests to a server on the loopback. Therefore each request,
WebSockets included, needs a host name that is the dashboard's (against DNS rebinding), an Origin
that is the dashboard's own (against cross-site requests), and the cookie.
"""

import hmac
from collections.abc import Collection, Iterable
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
TOKEN = "token"  # noqa: S105 -- the name of a parameter
POLICY_VIOLATION = 1008  # a WebSocket's code of refusal
# The toolkit's pages need inline scripts and styles; nothing may come from elsewhere or go there.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'self'"
)
# A report is a file of its own, with no right to steer the dashboard that shows it.
REPORT_POLICY = "sandbox allow-scripts allow-downloads allow-popups"
REPORTS = "/reports/files/"


class Refusal(Struct, frozen=True):
    """Why a request is refused, and the status of the answer."""

    status: int
    message: str


class Guard:
    """Lets requests of the dashboard's own pages through, and refuses all others."""

    def __init__(self, app: ASGIApp, *, token: str, port: int, hosts: Collection[str]) -> None:
        """`hosts` are names of the dashboard beside those of the loopback."""
        self._app = app
        self._token = token
        self._hosts = {*LOOPBACK, *hosts}
        # Cookies of all ports of a host are one jar.
        self._cookie = f"socratic_dashboard_{port}"
        self._value = hmac.new(token.encode(), b"cookie", sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is None and not self._has_cookie(headers.getlist("cookie")):
            if scope["type"] == "http" and self._has_token(scope):
                await self._admit(scope)(scope, receive, send)
                return
            refusal = Refusal(403, "Open the URL that the dashboard has printed: it has the token.")
        if refusal is None:
            await self._app(scope, receive, _with_headers(send, scope["path"]))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        else:
            response = PlainTextResponse(refusal.message, refusal.status)
            await response(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Refusal | None:
        host = headers.get("host", "")
        if _name_of(host) not in self._hosts:
            return Refusal(421, "This is no host name of the dashboard (see --allowed-host).")
        origin = headers.get("origin")
        is_own = origin is not None and origin.partition("://")[2] == host
        needs_origin = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        if (origin is not None or needs_origin) and not is_own:
            return Refusal(403, "The request comes from another page than the dashboard's.")
        return None

    def _has_cookie(self, cookies: Iterable[str]) -> bool:
        for header in cookies:
            try:
                morsel = SimpleCookie(header).get(self._cookie)
            except CookieError:
                continue
            if morsel and hmac.compare_digest(morsel.value.encode(), self._value.encode()):
                return True
        return False

    def _has_token(self, scope: Scope) -> bool:
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        return hmac.compare_digest(query.get(TOKEN, "").encode(), self._token.encode())

    def _admit(self, scope: Scope) -> RedirectResponse:
        """Set the cookie and take the token out of the address bar."""
        query = [
            (k, v) for k, v in parse_qsl(scope["query_string"].decode("latin-1")) if k != TOKEN
        ]
        path = "/" + scope["path"].lstrip("/")
        response = RedirectResponse(f"{path}?{urlencode(query)}".rstrip("?"), status_code=303)
        response.set_cookie(self._cookie, self._value, httponly=True, samesite="lax")
        response.headers["Referrer-Policy"] = "no-referrer"
        return response


def _name_of(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()


def _with_headers(send: Send, path: str) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Content-Security-Policy"] = (
                REPORT_POLICY if path.startswith(REPORTS) else POLICY
            )
            headers["Referrer-Policy"] = "no-referrer"
            headers["X-Content-Type-Options"] = "nosniff"
            if "cache-control" not in headers:
                headers["Cache-Control"] = "no-store"
        await send(message)

    return send_with_headers
