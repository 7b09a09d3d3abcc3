"""Fixtures for all tests: a running server of each kind that is installed.

Every server is private to the tests and started by them; see sneck.testing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from programs import SERVERS
from sneck.testing import Server


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server on a unix socket and a loopback port, for the whole session."""
    with Server(request.param, port=True) as running:
        yield running
