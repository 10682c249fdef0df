"""Owner of the process at the other end of a connection, if the system tells it (Linux)."""

import ipaddress
import os
import struct
from pathlib import Path

CONNECTIONS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ROOT_USER = 0  # it can do anything here in any case, and relays connections from Windows to Linux inside it
Address = tuple[str, int]


def is_own(client: Address | None, server: Address | None) -> bool | None:
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


def is_supported() -> bool:
    """Return whether the system tells the owners of connections."""
    return CONNECTIONS[0].exists()


def _columns(address: Address) -> set[str]:
    """Return an address in the notation of the kernel's two tables, IPv4 also as IPv6."""
    ip, port = ipaddress.ip_address(address[0].partition("%")[0]), f"{address[1]:04X}"
    v4 = ip if ip.version == 4 else ip.ipv4_mapped
    v6 = ip if ip.version == 6 else ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + ip.packed)
    written = {"".join(f"{word:08X}" for word in struct.unpack("=4I", v6.packed))}
    if v4 is not None:
        written.add(f"{struct.unpack('=I', v4.packed)[0]:08X}")
    return {f"{host}:{port}" for host in written}
