"""A thin ASGI layer around Streamlit's server that checks each request.

`streamlit run app.py` starts it, since app.py holds an `App` with this layer; Streamlit alone checks a request's Host
on the websocket only, accepts a websocket without an Origin, and may be framed by any page. Here every request is held
to the names of this computer (`server.allowedHosts`), a websocket to the origin of the page that it serves, and every
answer carries headers that keep other pages from framing it and the browser from fetching anything from elsewhere.

On a machine with several users, a token: with CONTRASTIVE_LAB_TOKEN set (to a word of your own, or to `new` for one
that is made and printed), the app opens only at the address that ends in `?token=…`; a cookie, which other sites cannot
send, then stands in for it. The command `contrastive-lab` always sets one, and opens its window by a ticket
(desktop/tickets.py), for which the browser gets the cookie and the address without the ticket."""

import base64
import hashlib
import hmac
import os
import re
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote, urlencode, urlsplit

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config

from contrastive_lab import locale, scrolling
from contrastive_lab.desktop import tickets

PUBLIC = ("/_stcore/health",)  # asked by launchers and tests that hold no token

HEADERS = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
USED = "This address has opened the app once: call contrastive-lab again for a new one."
INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def policy(hosts: Sequence[str], page: str) -> str:
    """The Content-Security-Policy: nothing comes from elsewhere, no page frames this one, and of scripts written into a
    page only those that are known run. Components are blobs; styles are written into the page.

    Args: hosts: names of this server; page: Streamlit's index.html, and what else of HTML may run."""
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()) for s in INLINE.findall(page)]
    sources = {
        "default-src": ["'self'"],
        "script-src": ["'self'", "blob:", *(f"'sha256-{h.decode()}'" for h in hashes)],
        "style-src": ["'self'", "'unsafe-inline'", "blob:"],
        "img-src": ["'self'", "data:", "blob:"],
        "media-src": ["'self'", "data:", "blob:"],
        "font-src": ["'self'", "data:"],
        "connect-src": ["'self'", "data:", "blob:", *(f"ws://{host}:*" for host in hosts)],
        "worker-src": ["'self'", "blob:"],
        "frame-src": ["'self'", "blob:", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
    return "; ".join(f"{name} {' '.join(values)}" for name, values in sources.items())


class Guard:
    """ASGI: what comes under another name, from another origin or without the token is refused.

    Args: hosts: names that a request may be addressed to, without ports; policy: that the browser
        holds the page to; token: that a request must show, or None."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str], policy: str, token: str | None = None) -> None:
        self.app, self.hosts, self.token = app, hosts, token
        self.headers = {"content-security-policy": policy, **HEADERS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        added, ticket = dict(self.headers), request.query_params.get("ticket")
        if self.token and self._is_token(request.query_params.get("token", "")):
            added["set-cookie"] = self._cookie(request)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(added)
            await send(message)

        if self.token and ticket and scope.get("method") == "GET" and not self._foreign(request):
            await self._admission(request, ticket)(scope, receive, send)
        elif not (reason := self._refusal(request)):
            await self.app(scope, receive, with_headers)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
        else:
            await PlainTextResponse(reason, 403, self.headers)(scope, receive, send)

    def _foreign(self, request: HTTPConnection) -> str:
        """Why a request by its host or origin is refused, in a sentence; "" where it is not."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if _name_of(f"//{host}") not in self.hosts:
            return "This server answers under the names of its own computer only."
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return "Another page may not speak to this server."
        return ""

    def _refusal(self, request: HTTPConnection) -> str:
        """Why a request is refused, in a sentence; "" where it is not."""
        if reason := self._foreign(request):
            return reason
        if request.scope["type"] == "websocket" and "origin" not in request.headers:
            return "A websocket must say which page opens it."
        tokens = (request.query_params.get("token", ""), _cookie_token(request))
        if self.token and request.scope["path"] not in PUBLIC and not any(map(self._is_token, tokens)):
            return "Open the address that was printed at the start, with its token."
        return ""

    def _admission(self, request: HTTPConnection, ticket: str) -> Response:
        """Whoever comes with a ticket gets the cookie, and the address without the ticket."""
        client, server = (int((request.scope.get(end) or ("", 0))[1]) for end in ("client", "server"))
        has_cookie = self._is_token(_cookie_token(request))
        if not has_cookie and not (tickets.is_own_connection(client, server) and tickets.redeem(ticket)):
            return PlainTextResponse(USED, 403, self.headers)
        others = urlencode([(k, v) for k, v in request.query_params.multi_items() if k != "ticket"])
        place = quote("/" + request.scope["path"].lstrip("/")) + (f"?{others}" if others else "")
        return RedirectResponse(place, 303, {**self.headers, "set-cookie": self._cookie(request)})

    def _cookie(self, request: HTTPConnection) -> str:
        return f"{_cookie_name(request)}={quote(str(self.token), safe='')}; Path=/; HttpOnly; SameSite=Strict"

    def _is_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), str(self.token).encode())


def _name_of(address: str) -> str:
    """The host of an address, without port; "" for what is none."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for what is no port
    except ValueError:
        return ""
    plain = not (parts.username or parts.password or parts.path or parts.query or parts.fragment)
    return (parts.hostname or "").rstrip(".") if plain else ""


def _cookie_name(request: HTTPConnection) -> str:
    """Cookies are shared by all ports of a computer: each server has its own name for its token."""
    return f"contrastive-lab-{(request.scope.get('server') or ('', 0))[1]}"


def _cookie_token(request: HTTPConnection) -> str:
    return unquote(request.cookies.get(_cookie_name(request), ""))


def token_from_environment() -> str | None:
    """The token that this start asks for, if any; one that is made is printed."""
    token = os.environ.get("CONTRASTIVE_LAB_TOKEN", "").strip()
    if token == "new":
        token = secrets.token_urlsafe(24)
        print(f"  Open the address below with ?token={token}", file=sys.stderr, flush=True)
    return token or None


def guards() -> list[Middleware]:
    """The middleware of the app, by Streamlit's configuration and the environment."""
    hosts = [str(h).lower() for h in config.get_option("server.allowedHosts")]
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text("utf-8")
    rules = policy(hosts, page + "".join(locale.SCRIPTS.values()) + scrolling.SCRIPT)
    return [Middleware(Guard, hosts=hosts, policy=rules, token=token_from_environment())]
