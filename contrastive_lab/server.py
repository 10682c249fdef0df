"""A thin ASGI layer around Streamlit's server that checks each request.

`streamlit run app.py` starts it, since app.py holds an `App` with this layer. Streamlit alone checks a request's Host
only on the websocket, accepts a websocket without an Origin, and may be framed by any page. Here every request must
name this computer (`server.allowedHosts`), a websocket must come from the page that it serves, and every answer carries
headers that forbid framing and loading anything from elsewhere.

Other users of the computer are refused. On Linux the owner of each connection is checked. With a token
(CONTRASTIVE_LAB_TOKEN: your own, or `new` for one that is generated and printed; the command `contrastive-lab` always
generates one) the app opens only at the address that ends in `?token=…`. The browser then gets a cookie with a
different secret, and is redirected to the address without the token."""

import base64
import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import struct
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.web import cli

from contrastive_core.base import local_processes
from contrastive_lab import locale, query_params, stage
from contrastive_lab.locale import N_

HEADERS = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
PROXIES = ("x-forwarded-for", "x-forwarded-proto", "forwarded")  # by these uvicorn would believe another address
INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def policy(hosts: Sequence[str], page: str) -> str:
    """Return the Content-Security-Policy: nothing from elsewhere, no framing, and only known inline scripts. Components
    are blobs; inline styles are allowed. Args: hosts: names of this server; page: Streamlit's index.html, and further
    HTML whose scripts may run."""
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
    """ASGI middleware that refuses requests with another host, another origin or without the token.

    Args: hosts: allowed host names, without ports; policy: the Content-Security-Policy; token: required in a
        request, or None."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str], policy: str, token: str | None = None) -> None:
        self.app, self.hosts, self.token = app, hosts, token
        self.session = secrets.token_urlsafe(24)
        self.headers = {"content-security-policy": policy, **HEADERS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        request, is_page = HTTPConnection(scope), scope.get("method") == "GET"
        if reason := self._foreign(request):
            await self._refuse(reason, request, receive, send)
        elif self.token and is_page and _is_equal(request.query_params.get("token", ""), str(self.token)):
            await self._admit(request)(scope, receive, with_headers)
        elif self.token and not _is_equal(request.cookies.get(_cookie_name(request), ""), self.session):
            reason = N_("Open the address with its token, which was printed at the start.")
            await self._refuse(reason, request, receive, send)
        else:
            await self.app(scope, receive, with_headers)

    def _foreign(self, request: HTTPConnection) -> str:
        """Return the reason to refuse a request whatever its token, as a sentence; "" if there is none."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if _name_of(f"//{host}") not in self.hosts:
            return N_("This server answers only to 127.0.0.1 and localhost.")
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            return N_("Requests from other sites are refused.")
        if any(name in request.headers for name in PROXIES):
            return N_("Requests through a proxy are refused.")
        is_own = is_own_connection(request.scope.get("client"), request.scope.get("server"))
        if is_own is False:
            return N_("Contrastive Lab is running for another user of this computer. Start your own.")
        if is_own is None and not self.token and CONNECTIONS[0].exists():
            return N_(
                "The owner of this connection is unknown. Start contrastive-lab or set CONTRASTIVE_LAB_TOKEN=new."
            )
        if request.scope["type"] == "websocket" and origin is None:
            return N_("A WebSocket needs an Origin header.")
        return ""

    async def _refuse(self, reason: str, request: HTTPConnection, receive: Receive, send: Send) -> None:
        if request.scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
            return
        answer = HTMLResponse(_page(reason, request), 403, {**self.headers, "cache-control": "no-store"})
        await answer(request.scope, receive, send)

    def _admit(self, request: HTTPConnection) -> HTMLResponse:
        """Return the cookie for a request with the token, and a page that goes on to the address without it. With a 303
        redirect the cookie would be missing if a file led here, because the browser treats that as another site."""
        others = urlencode([(k, v) for k, v in request.query_params.multi_items() if k != "token"])
        place = quote("/" + request.scope["path"].lstrip("/")) + (f"?{others}" if others else "")
        head = f'<meta http-equiv="refresh" content="0; url={escape(place)}">'
        cookie = f"{_cookie_name(request)}={self.session}; Path=/; HttpOnly; SameSite=Strict"
        headers = {"set-cookie": cookie, "cache-control": "no-store"}
        return HTMLResponse(_page(N_("Opening Contrastive Lab…"), request, head), 200, headers)


def _is_equal(shown: str, secret: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), secret.encode())


def _page(sentence: str, request: HTTPConnection, head: str = "") -> str:
    """Return a page with one sentence in the browser's language."""
    is_chinese = request.headers.get("accept-language", "").lower().startswith("zh")
    language = "zh" if is_chinese else "en"
    title = f'<!doctype html><html lang="{language}"><meta charset="utf-8"><title>Contrastive Lab</title>'
    text = escape(locale.catalog(language).gettext(sentence))
    return f'{title}{head}<body style="font: 1.1rem sans-serif; margin: 4rem auto; max-width: 40rem"><p>{text}</p>'


def _name_of(address: str) -> str:
    """Return the host of an address, without port; "" for an invalid one."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for what is no port
    except ValueError:
        return ""
    plain = not (parts.username or parts.password or parts.path or parts.query or parts.fragment)
    return (parts.hostname or "").rstrip(".") if plain else ""


def _cookie_name(request: HTTPConnection) -> str:
    """Return a cookie name for this server, because all ports of a computer share cookies."""
    return f"contrastive-lab-{(request.scope.get('server') or ('', 0))[1]}"


def guards() -> list[Middleware]:
    """Return the app's middleware, from Streamlit's configuration and the environment. A new token is printed. Called
    once, as the server starts."""
    hosts = [str(h).lower() for h in config.get_option("server.allowedHosts")]
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text("utf-8")
    skip_late_timers()
    own = (*locale.SCRIPTS.values(), stage.SCROLL, stage.ARROWS, query_params.ONE_ENTRY)
    token = os.environ.get("CONTRASTIVE_LAB_TOKEN", "").strip()
    if token == "new":
        token = secrets.token_urlsafe(24)
        print(f"  Open the address below with ?token={token}", file=sys.stderr, flush=True)
    return [Middleware(Guard, hosts=hosts, policy=policy(hosts, page + "".join(own)), token=token or None)]


# --- timers of a page that was left ------------------------------------------------------------------


def skip_late_timers() -> None:
    """Let Streamlit skip the timer of a fragment on a page that the session has left. A browser that has not yet heard
    of `st.switch_page` sends it once more. Its run would announce the old page, so the browser would take away the new
    page's elements, and end in "Bad delta path index" with the next ones."""
    run = ScriptRunner._run_script

    def run_unless_late(self: ScriptRunner, rerun_data: RerunData) -> None:
        here = self._pages_manager.current_page_script_hash
        if not (rerun_data.is_auto_rerun and rerun_data.page_script_hash not in ("", here)):
            run(self, rerun_data)

    ScriptRunner._run_script = run_unless_late  # type: ignore[method-assign]


# --- owners of connections -------------------------------------------------------------------------


CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ROOT_USER = 0  # it can do anything here in any case, and relays connections from Windows to Linux inside it
Address = tuple[str, int]


def is_own_connection(client: Address | None, server: Address | None) -> bool | None:
    """Return whether the process at the client's end belongs to this user or to root; None if the system does not tell.
    A connection whose process has closed its end belongs to nobody."""
    if client is None or server is None:
        return None
    sides = _columns(client), _columns(server)
    owners = []
    for table in CONNECTIONS:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            local, remote, uid, inode = (line.split(None, 10)[i] for i in (1, 2, 7, 9))
            if local in sides[0] and remote in sides[1]:
                owners.append(int(uid) if int(inode) else -1)
    return all(uid in (os.getuid(), ROOT_USER) for uid in owners) if owners else None


def _columns(address: Address) -> set[str]:
    """Return an address in the notation of the kernel's two tables, IPv4 also as IPv6."""
    ip, port = ipaddress.ip_address(address[0].partition("%")[0]), f"{address[1]:04X}"
    v4 = ip if ip.version == 4 else ip.ipv4_mapped
    v6 = ip if ip.version == 6 else ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + ip.packed)
    written = {"".join(f"{word:08X}" for word in struct.unpack("=4I", v6.packed))}
    if v4 is not None:
        written.add(f"{struct.unpack('=I', v4.packed)[0]:08X}")
    return {f"{host}:{port}" for host in written}


if __name__ == "__main__":  # the server process of the command `contrastive-lab`
    local_processes.end_with_parent()
    cli.main(sys.argv[1:], prog_name="streamlit")
