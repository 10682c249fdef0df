"""What stands between the network and the app: a thin ASGI layer around Streamlit's own server.

`streamlit run app.py` starts it, since app.py holds an `App` with this layer; Streamlit alone
checks a request's Host on the websocket only, accepts a websocket without an Origin, and may be
framed by any page. Here every request is held to the names of this computer
(`server.allowedHosts`), a websocket to the origin of the page that it serves, and every answer
carries headers that keep other pages from framing it and the browser from fetching anything from
elsewhere.

On a machine with several users, a token: with CONTRASTIVE_LAB_TOKEN set (to a word of your own, or
to `new` for one that is made and printed), the app opens only at the address that ends in
`?token=…`; a cookie, which other sites cannot send, then stands in for it. The command
`contrastive-lab` always sets one, and opens its window by a ticket (desktop/tickets.py), for which
the browser gets the cookie and the address without the ticket.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
import sys
from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from contrastive_lab import locale
from contrastive_lab.desktop import tickets

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """The Content-Security-Policy: nothing comes from elsewhere, no page frames this one, and of
    scripts written into a page only those that are known run. Components are blobs; styles are
    written into the page.

    Args: hosts: names of this server; page: Streamlit's index.html, and what else of HTML may run.
    """
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
        holds the page to; token: that a request must show, or None.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str], policy: str, token: str | None = None) -> None:
        self.app, self.hosts, self.token = app, hosts, token
        headers = {"content-security-policy": policy, **HEADERS}
        self.headers = [(k.encode(), v.encode()) for k, v in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        with_ticket = scope.get("method") == "GET" and _query(scope, "ticket")
        if self.token and with_ticket and not self._foreign(headers):
            await self._admit(scope, headers, send)
            return
        reason = self._refusal(scope, headers)
        if reason:
            await self._refuse(scope, send, reason)
            return
        added = [*self.headers]
        if self.token and self._is_token(_query(scope, "token")):
            added.append(self._cookie(scope))
        names = {name for name, _ in self.headers}

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                others = [(k, v) for k, v in message.get("headers", ()) if k.lower() not in names]
                message["headers"] = [*others, *added]
            await send(message)

        await self.app(scope, receive, with_headers)

    def _foreign(self, headers: MutableMapping[str, str]) -> str:
        """Why a request by its host or origin is refused, in a sentence; "" where it is not."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if _name_of(f"//{host}") not in self.hosts:
            return "This server answers under the names of its own computer only."
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return "Another page may not speak to this server."
        return ""

    def _refusal(self, scope: Scope, headers: MutableMapping[str, str]) -> str:
        """Why a request is refused, in a sentence; "" where it is not."""
        if reason := self._foreign(headers):
            return reason
        if scope["type"] == "websocket" and "origin" not in headers:
            return "A websocket must say which page opens it."
        tokens = (_query(scope, "token"), _cookie_token(scope, headers))
        if self.token and scope["path"] not in PUBLIC and not any(map(self._is_token, tokens)):
            return "Open the address that was printed at the start, with its token."
        return ""

    async def _admit(self, scope: Scope, headers: MutableMapping[str, str], send: Send) -> None:
        """Whoever comes with a ticket gets the cookie, and the address without the ticket."""
        ports = int((scope.get("client") or ("", 0))[1]), int((scope.get("server") or ("", 0))[1])
        has_cookie = self._is_token(_cookie_token(scope, headers))
        if not has_cookie and not (tickets.is_own_connection(*ports) and tickets.redeem(_query(scope, "ticket"))):
            await self._refuse(scope, send, USED)
            return
        query = parse_qs(scope["query_string"].decode("latin-1"))
        other_parameters = urlencode({k: v for k, v in query.items() if k != "ticket"}, doseq=True)
        place = quote("/" + scope["path"].lstrip("/")) + (f"?{other_parameters}" if other_parameters else "")
        added = [*self.headers, self._cookie(scope), (b"location", place.encode())]
        await send({"type": "http.response.start", "status": 303, "headers": added})
        await send({"type": "http.response.body", "body": b""})

    def _cookie(self, scope: Scope) -> tuple[bytes, bytes]:
        value = f"{_cookie_name(scope)}={quote(str(self.token), safe='')}"
        return b"set-cookie", f"{value}; Path=/; HttpOnly; SameSite=Strict".encode()

    def _is_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), str(self.token).encode())

    async def _refuse(self, scope: Scope, send: Send, reason: str) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8"), *self.headers]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": reason.encode()})


def _name_of(address: str) -> str:
    """The host of an address, without port; "" for what is none."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for what is no port
    except ValueError:
        return ""
    plain = not (parts.username or parts.password or parts.path or parts.query or parts.fragment)
    return (parts.hostname or "").rstrip(".") if plain else ""


def _query(scope: Scope, name: str) -> str:
    """A value of the address; "" where it has none."""
    return parse_qs(scope.get("query_string", b"").decode("latin-1")).get(name, [""])[0]


def _cookie_name(scope: Scope) -> str:
    """Cookies are shared by all ports of a computer: each server has its own name for its token."""
    return f"contrastive-lab-{(scope.get('server') or ('', 0))[1]}"


def _cookie_token(scope: Scope, headers: MutableMapping[str, str]) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(scope))
    except CookieError:
        return ""
    return unquote(cookie.value) if cookie else ""


def token_from_environment() -> str | None:
    """The token that this start asks for, if any; one that is made is printed."""
    token = os.environ.get("CONTRASTIVE_LAB_TOKEN", "").strip()
    if token == "new":
        token = secrets.token_urlsafe(24)
        print(f"  Open the address below with ?token={token}", file=sys.stderr, flush=True)
    return token or None


def guards() -> list[Any]:
    """The middleware of the app, by Streamlit's configuration and the environment."""
    import streamlit
    from starlette.middleware import Middleware
    from streamlit import config

    hosts = [str(h).lower() for h in config.get_option("server.allowedHosts")]
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text("utf-8")
    rules = policy(hosts, page + "".join(locale.SCRIPTS.values()))
    return [Middleware(Guard, hosts=hosts, policy=rules, token=token_from_environment())]
