"""Other interpreters of the process have locks of their own, and may end at any time."""

from __future__ import annotations

import importlib
import subprocess
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
# Python 3.12 with a GIL for each crashes at the end of one that has imported asyncio
LOOP_KINDS = [kind for kind in KINDS if (kind, *sys.version_info[:2]) != ("isolated", 3, 12)]
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
with client.lock({name!r}, ttl=60) as lock:
    lock.extend(30)  # which is renewed at once
    while lock.remaining() <= 30:
        time.sleep(0.01)
lock = client.lock({name!r}, ttl={ttl}, on_lost=lambda lock: told.append(lock.name))
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

ON_LOOP = """
import asyncio, sneck.aio

async def main():
    async with sneck.aio.connect({url!r}) as client:
        async with client.rlock({name!r}, ttl=60) as lock, lock:
            waiting = [asyncio.ensure_future(client.lock({name!r}).acquire()) for _ in range(20)]
            await lock.extend(30)  # which is renewed at once
            while lock.remaining() <= 30:
                await asyncio.sleep(0.01)
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
        assert await client.update({name!r}, lambda old: 1) == b"1"
        await client.execute("DEL", {name!r})
        try:
            async with client.lock({name!r}, ttl={ttl}, on_lost="cancel"):
                await client.execute("DEL", {name!r})
                await asyncio.sleep(60)
        except sneck.NotOwned:
            return
        raise AssertionError("the loss was not seen")

asyncio.run(main())
"""

HOST = """
import ast, importlib, sys
interpreters, kind = importlib.import_module(sys.argv[1]), ast.literal_eval(sys.argv[2])
new = sys.argv[1] == "_interpreters"
for _ in range(3 if new else 1):
    interpreter = interpreters.create(kind) if new else interpreters.create(isolated=kind)
    failure = (interpreters.exec if new else interpreters.run_string)(interpreter, sys.argv[3])
    interpreters.destroy(interpreter)
    if failure:
        sys.exit(failure.errdisplay)
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
    with client.lock(f"{name}:mine", ttl=60) as mine:
        for _ in range(3):
            interpreter = create(kind)
            failure = run(interpreter, SCRIPT.format(url=server.url, name=name, ttl=TTL))
            interpreters.destroy(interpreter)
            assert failure is None
        assert mine.owned


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_asyncio_works_there(
    spawn: Callable[..., subprocess.Popen[str]], server: Server, name: str, kind: str
) -> None:
    # in a process of its own, and before Python 3.13 once in it: there interpreters share
    # asyncio's exceptions
    script = ON_LOOP.format(url=server.url, name=name, ttl=TTL)
    process = spawn(HOST, interpreters.__name__, repr(KINDS[kind]), script)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")


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
