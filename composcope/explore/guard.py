"""Who may ask: this machine, pages that the server itself sent, and those who know the token."""

import ipaddress
import secrets
import socket
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from composcope.explore.settings import Settings

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "composcope"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cache-control": b"no-store",
}


def json_of(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def refused(status: int, sentence: str) -> Response:
    return json_of({"error": sentence}, status)


class Guard:
    """Refuses requests that another site has a browser send, and, away from loopback, those without
    the token.

    A page elsewhere can point its own name at 127.0.0.1 (DNS rebinding): its requests say that name
    as their Host. It can also post here (cross-site): such requests say their Origin."""

    def __init__(self, app: ASGIApp, settings: Settings):
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        answer = self.refusal(request)
        await (answer or self.app)(scope, receive, with_headers(send))

    def refusal(self, request: Request) -> Response | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self.known(hosts[0]):
            return refused(403, "Host: this server does not answer to that name")
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != hosts[0]:
            return refused(403, "Origin: requests from other sites are refused")
        if self.settings.token is None:
            return None
        return self.without_token(request)

    def known(self, host: str) -> bool:
        """Loopback, the name that was bound; of all interfaces, also addresses, which no rebinding
        can fake."""
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        if (port or 80) != self.settings.port:
            return False
        if name in (*LOOPBACK, self.settings.host.lower()):  # browsers say names in small letters
            return True
        everywhere = self.settings.host in ("0.0.0.0", "::")
        return everywhere and (name == socket.gethostname().lower() or is_address(name))

    def without_token(self, request: Request) -> Response | None:
        """A link with ?token= leaves a cookie and leads to the page; scripts send it as a bearer
        token."""
        token = self.settings.token or ""
        if same_token(request.query_params.get("token"), token) and request.method == "GET":
            answer = RedirectResponse("/", 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return answer
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if same_token(bearer, token) or same_token(request.cookies.get(COOKIE), token):
            return None
        return refused(401, "token: open the link with ?token= that the command printed")


def same_token(given: str | None, token: str) -> bool:
    return given is not None and secrets.compare_digest(given.encode(), token.encode())


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def with_headers(send: Send) -> Send:
    """`send`, with the headers of every answer; a policy of its own stays."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message["headers"])
            present = {name.lower() for name, _ in headers}
            wanted = {**HEADERS, b"content-security-policy": POLICY.encode()}
            headers += [(name, value) for name, value in wanted.items() if name not in present]
            message = {**message, "headers": headers}
        await send(message)

    return sent
