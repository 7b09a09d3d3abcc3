"""What the tests of Python's own behaviour share: a client, a fresh name, subprocesses."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from leases import wait_until

import sneck
from sneck.testing import Server

_numbers = itertools.count()


@pytest.fixture
def client(server: Server) -> Iterator[sneck.Client]:
    """A client of its own for each test."""
    with sneck.connect(server.url) as made:
        yield made


@pytest.fixture
def name() -> str:
    """A lock's name that no other test has."""
    return f"python:{next(_numbers)}"


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start Python on a script with arguments; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(script: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


@pytest.fixture
def is_connected(client: sneck.Client) -> Callable[[str], bool]:
    """Tell whether a client of the given name is connected to the server."""

    def look(client_name: str) -> bool:
        listed = client.execute("CLIENT", "LIST")
        assert isinstance(listed, bytes)
        return f" name={client_name} ".encode() in listed

    return look


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Give wait_until() to tests."""
    return wait_until
