"""Who may talk to the server: only a browser on this machine that was given the secret.

The secret is in the first URL and becomes an HttpOnly cookie for this site alone. Host must name this machine, or a
page of another site could reach the server under a name of its own (DNS rebinding). Requests that change something must
come from the page itself, by Origin and Sec-Fetch-Site, and be JSON, which no form of another site can send.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, Response

COOKIE, TOKEN = "transduce_review", "token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
MAX_BODY = 32 * 2**20
WELCOME = (
    '<!doctype html><html lang="en"><title>Review</title><link rel="icon" href="data:,">'
    '<meta http-equiv="refresh" content="0;url=/">'
    '<p>Opening the review. <a href="/">Go on</a>'
)

App = Callable[[Any, Any, Any], Awaitable[None]]


class Guard:
    """ASGI middleware that refuses everything but requests of the page, and adds the headers of a strict policy."""

    def __init__(self, app: App, *, secret: str, port: int) -> None:
        self.app, self.secret = app, secret
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"{COOKIE}_{port}"  # browsers share cookies between ports

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise ValueError(f"this server does not speak {scope['type']}.")

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._answer(scope)
        await (self.app if refusal is None else refusal)(scope, receive, send_with_headers)

    def _answer(self, scope: Any) -> Response | None:
        """Return the answer to a request that must not be passed on, or brings the secret; None for all others."""
        headers = Headers(scope=scope)
        if headers.get("host") not in self.hosts:
            return _refuse(421, "Unknown host.")
        if scope["method"] not in ("GET", "POST"):
            return _refuse(405, "Only GET and POST are known.")
        token = QueryParams(scope["query_string"]).get(TOKEN)
        if token is not None and scope["method"] == "GET" and scope["path"] == "/":
            return self._welcome() if _equal(token, self.secret) else _refuse(403, "This link is not valid any more.")
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")  # also beside odd ones of other servers
        if not _equal(cookie, self.secret):
            return _refuse(403, "Open the link that `transduce review` printed.")
        return self._check_post(headers) if scope["method"] == "POST" else None

    def _check_post(self, headers: Headers) -> Response | None:
        if headers.get("origin") not in {f"http://{host}" for host in self.hosts}:
            return _refuse(403, "Requests of other sites are refused.")
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refuse(403, "Requests of other sites are refused.")
        if headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return _refuse(415, "Send JSON.")
        length = headers.get("content-length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            return _refuse(413, "Too long.")
        return None

    def _welcome(self) -> Response:
        """Replace the secret in the URL by a cookie.

        The page moves on by itself: after a link on another site, a redirect would not bring a cookie that is strict.
        """
        response = HTMLResponse(WELCOME)
        response.set_cookie(self.cookie, self.secret, httponly=True, samesite="strict", path="/")
        return response


def new_secret() -> str:
    """Return a secret that cannot be guessed."""
    return secrets.token_urlsafe(32)


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _refuse(status: int, reason: str) -> Response:
    return PlainTextResponse(reason, status_code=status)
