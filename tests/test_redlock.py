"""Other libraries that lock by the same algorithm exclude us, and are excluded."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import sneck
from programs import NODE, NODE_MODULES, PYTHON, TESTS, environment
from sneck.testing import Server

NAME = "door"


@dataclass
class Kind:
    """How a library is run, and what it puts before the name of a lock."""

    command: list[str]
    prefix: str = ""


KINDS = {
    "redlock-py": Kind([*PYTHON, str(TESTS / "peers/redlock_py.py")]),
    "pottery": Kind([*PYTHON, str(TESTS / "peers/pottery_redlock.py")], "redlock:"),
    "redlock of npm": Kind([str(NODE), str(TESTS / "peers/redlock.js")]),
}


class Peer:
    """A process with a lock of another library."""

    def __init__(self, kind: Kind, servers: list[Server]) -> None:
        """Start it."""
        self.kind = kind
        self.process = subprocess.Popen(
            [*kind.command, NAME, *(server.socket for server in servers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environment(), "NODE_PATH": str(NODE_MODULES)},
            text=True,
        )

    def ask(self, line: str) -> str:
        """Tell it what to do, and give its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@pytest.fixture(params=KINDS)
def peer(request: pytest.FixtureRequest, servers: list[Server]) -> Iterator[Peer]:
    """Start each of them."""
    made = Peer(KINDS[request.param], servers)
    yield made
    made.process.communicate(timeout=60)


@pytest.fixture
def client(servers: list[Server], peer: Peer) -> Iterator[sneck.Client]:
    """A client of the servers that means the same lock by the same name."""
    urls = [server.url for server in servers]
    with sneck.quorum(urls, prefix=peer.kind.prefix) as made:
        yield made


def test_it_excludes_us(peer: Peer, client: sneck.Client) -> None:
    lock = client.lock(NAME, ttl=60)
    assert peer.ask("acquire") == "held"
    assert not lock.acquire(blocking=False)
    holder = lock.holder()
    assert holder is not None
    assert holder.foreign
    assert peer.ask("release") == "released"
    assert lock.acquire()
    lock.release()


def test_we_exclude_it(peer: Peer, client: sneck.Client) -> None:
    lock = client.lock(NAME)
    with lock:
        assert peer.ask("acquire") == "busy"
        assert lock.owned
        lock.extend()
    assert peer.ask("acquire") == "held"
    assert peer.ask("release") == "released"


def test_its_lock_outlasts_our_attempts(peer: Peer, client: sneck.Client) -> None:
    assert peer.ask("acquire") == "held"
    lock = client.lock(NAME, ttl=60, poll=0.002)
    before = lock.holder()
    assert not lock.acquire(timeout=0.05)
    after = lock.holder()
    assert before is not None
    assert after is not None
    assert before.token == after.token
    assert peer.ask("release") == "released"
