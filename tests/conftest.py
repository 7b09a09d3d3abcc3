"""Fixtures for all tests: a running server of each kind that is installed, or five.

Every server is private to the tests and started by them; see sneck.testing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import sneck
from programs import SERVERS
from sneck.testing import Server


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server on a unix socket and a loopback port, for the whole session."""
    with Server(request.param, port=True) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[sneck.Client]:
    """A client of an empty server."""
    with sneck.connect(server.url) as made:
        made.execute("FLUSHALL")
        yield made


@pytest.fixture(params=SERVERS)
def servers(request: pytest.FixtureRequest) -> Iterator[list[Server]]:
    """Five servers that know nothing of each other, for one test: it may stop some."""
    with ExitStack() as stack:
        yield [stack.enter_context(Server(request.param)) for _ in range(5)]
