"""What the tests of locks on several servers share: looks at what each of them has."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import sneck
from sneck.testing import Server


def urls(servers: Sequence[Server]) -> list[str]:
    """Give the addresses of servers."""
    return [server.url for server in servers]


def values(servers: Sequence[Server], name: str) -> list[object]:
    """Give what each server has at a key."""
    found: list[object] = []
    for server in servers:
        with sneck.connect(server.url) as client:
            found.append(client.execute("GET", name))
    return found


def forget(servers: Sequence[Server], name: str) -> None:
    """Delete a key on all of them."""
    for server in servers:
        with sneck.connect(server.url) as client:
            client.execute("DEL", name)


def kill(servers: Sequence[Server]) -> None:
    """End servers; what is at their addresses answers nothing any more."""
    for server in servers:
        os.kill(server.pid, signal.SIGKILL)
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
