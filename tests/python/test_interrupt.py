"""Ctrl-C during a wait: KeyboardInterrupt, and no token of ours stays."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

import sneck
from sneck.testing import Server

Spawn = Callable[..., subprocess.Popen[str]]
LIMIT = 30.0

# A shell starts its background jobs, such as these tests, with SIGINT ignored.
LISTEN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""

WAITER = (
    LISTEN
    + """
import sys, sneck
url, name = sys.argv[1:]
lock = sneck.connect(url, client_name=f"waiter-{name}").lock(name, ttl=600)
try:
    if sys.stdin.readline() == "with\\n":
        with lock:
            print("the body ran")
    else:
        lock.acquire()
except KeyboardInterrupt:
    print("interrupted", lock.owned, lock.token)
"""
)

STALLED = (
    LISTEN
    + """
import sys, sneck
client = sneck.connect(sys.argv[1], timeout=600)
client.execute("PING")
lock = client.lock(sys.argv[2], ttl=600)
print("ready", flush=True)
sys.stdin.readline()
print("going", flush=True)
try:
    lock.acquire()
except KeyboardInterrupt:
    print("interrupted")
"""
)

HANDLED = """
import signal, sys, sneck
client = sneck.connect(sys.argv[1])
lock = client.lock(sys.argv[2])
signal.signal(signal.SIGALRM, lambda *_: client.execute("DEL", sys.argv[2]))
signal.setitimer(signal.ITIMER_REAL, 0.1)
print(lock.acquire())
"""


@pytest.mark.parametrize("how", ["acquire", "with"])
def test_ctrl_c_ends_a_wait(
    server: Server,
    client: sneck.Client,
    name: str,
    spawn: Spawn,
    is_connected: Callable[[str], bool],
    until: Callable[[Callable[[], bool]], None],
    how: str,
) -> None:
    with client.lock(name, ttl=600):
        waiter = spawn(WAITER, server.url, name)
        assert waiter.stdin is not None
        waiter.stdin.write(how + "\n")
        waiter.stdin.flush()
        until(lambda: is_connected(f"waiter-{name}"))
        waiter.send_signal(signal.SIGINT)
        output, _ = waiter.communicate(timeout=LIMIT)
        assert output == "interrupted False None\n"
    assert client.execute("EXISTS", name) == 0


def test_ctrl_c_while_the_server_is_silent_leaves_no_token(
    name: str, spawn: Spawn, until: Callable[[Callable[[], bool]], None]
) -> None:
    with Server() as own, sneck.connect(own.url) as client:
        stalled = spawn(STALLED, own.url, name)
        assert stalled.stdin is not None
        assert stalled.stdout is not None
        assert stalled.stdout.readline() == "ready\n"
        os.kill(own.pid, signal.SIGSTOP)
        try:
            stalled.stdin.write("\n")
            stalled.stdin.flush()
            assert stalled.stdout.readline() == "going\n"
            time.sleep(0.2)  # enough to be in the call; if not, it is interrupted earlier
            stalled.send_signal(signal.SIGINT)
            output, _ = stalled.communicate(timeout=LIMIT)
        finally:
            os.kill(own.pid, signal.SIGCONT)
        assert output == "interrupted\n"
        until(lambda: client.execute("EXISTS", name) == 0)


def test_a_signal_handler_that_returns_does_not_end_a_wait(
    server: Server, client: sneck.Client, name: str, spawn: Spawn
) -> None:
    client.execute("SET", name, "somebody else")
    waiter = spawn(HANDLED, server.url, name)
    output, _ = waiter.communicate(timeout=LIMIT)
    assert output == "True\n"
