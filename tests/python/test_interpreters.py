"""Other interpreters of the process have locks of their own, and may end at any time."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

import sneck
from sneck.testing import Server

NEW = sys.version_info >= (3, 13)
KINDS: dict[str, Any] = (
    {"isolated": "isolated", "legacy": "legacy"} if NEW else {"isolated": True, "legacy": False}
)
interpreters: Any = importlib.import_module("_interpreters" if NEW else "_xxsubinterpreters")


def create(kind: str) -> Any:
    """Make an interpreter; from Python 3.12 on an isolated one has a GIL of its own."""
    return interpreters.create(KINDS[kind]) if NEW else interpreters.create(isolated=KINDS[kind])


def run(interpreter: Any, script: str) -> Any:
    """Run a script there, and give what went wrong, or raise it."""
    return (interpreters.exec if NEW else interpreters.run_string)(interpreter, script)


TTL = 0.2

SCRIPT = """
import time, sneck
client = sneck.connect({url!r})
told = []
lock = client.lock({name!r}, ttl={ttl}, on_lost=lambda lock: told.append(lock.name))
with lock:
    time.sleep({ttl} * 2)
    assert lock.owned
try:
    with lock:
        client.execute("DEL", lock.name)
        while not told:
            time.sleep(0.01)
except sneck.NotOwned:
    assert told == [lock.name]
else:
    raise AssertionError("the loss was not seen")
"""

LEAVE = """
import sneck
client = sneck.connect({url!r})
cycle = []
cycle += [cycle, client.lock({name!r}, ttl={ttl}, renew=True, on_lost=cycle.append)]
cycle[1].acquire()
if {lose}:
    client.execute("DEL", {name!r})
"""


@pytest.mark.parametrize("kind", KINDS)
def test_locks_work_there(server: Server, client: sneck.Client, name: str, kind: str) -> None:
    with client.lock(f"{name}:mine", ttl=TTL) as mine:
        for _ in range(3):
            interpreter = create(kind)
            failure = run(interpreter, SCRIPT.format(url=server.url, name=name, ttl=TTL))
            interpreters.destroy(interpreter)
            assert failure is None
        assert mine.owned


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lose", [False, True])
def test_what_is_held_there_ends_with_it(
    server: Server,
    client: sneck.Client,
    name: str,
    until: Callable[[Callable[[], bool]], None],
    kind: str,
    lose: bool,
) -> None:
    for _ in range(10):
        interpreter = create(kind)
        script = LEAVE.format(url=server.url, name=name, ttl=TTL, lose=lose)
        assert run(interpreter, script) is None
        time.sleep(TTL / 4)
        interpreters.destroy(interpreter)
        until(lambda: client.execute("EXISTS", name) == 0)
