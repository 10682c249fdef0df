"""Tickets: how a window gets the server's token without its standing on a command line.

Everybody on a computer sees the command lines of everybody's processes, and with it the address
that a browser is started with. So this address carries a ticket: a file of its owner's, which the
server takes once, in the first minutes, and where the system says whose a connection is (Linux)
from this user's connections only. Imports nothing of Streamlit, which starts without this package."""

import os
import re
import secrets
import time
from pathlib import Path

from contrastive_core.records import atomic, data_home

TICKET = re.compile(r"[A-Za-z0-9_-]{32}")
SECONDS = 180  # a browser that starts on a busy machine
CONNECTIONS = Path("/proc/net/tcp")


def folder() -> Path:
    """Where the command keeps what it knows of the server, for this user alone."""
    return data_home() / "app"


def issue() -> str:
    """A new ticket. Raises OSError."""
    for path in (folder() / "tickets").glob("*"):
        if time.time() - path.stat().st_mtime > SECONDS:
            path.unlink(missing_ok=True)
    ticket = secrets.token_urlsafe(24)
    atomic.write_bytes(_path(ticket), b"")
    return ticket


def redeem(ticket: str) -> bool:
    """Whether it is a ticket that nobody has used; it is used then."""
    if not TICKET.fullmatch(ticket):
        return False
    path = _path(ticket)
    try:
        age = time.time() - path.stat().st_mtime
        path.unlink()  # of two that come with it, one can do so
    except OSError:
        return False
    return age < SECONDS


def is_own_connection(client_port: int, server_port: int) -> bool:
    """Whether the process at the other end is this user's; true where the system does not say."""
    if not CONNECTIONS.exists():
        return True
    ports = f":{client_port:04X}", f":{server_port:04X}"
    for line in CONNECTIONS.read_text().splitlines()[1:]:
        local, remote, uid = (line.split()[i] for i in (1, 2, 7))
        if local.endswith(ports[0]) and remote.endswith(ports[1]):
            return int(uid) == os.getuid()
    return False


def _path(ticket: str) -> Path:
    return folder() / "tickets" / ticket
