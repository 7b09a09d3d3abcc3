"""sneck.aio: how many threads a client has, and what those who wait take, each in a process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from aio import LIMIT

from sneck.testing import Server

Spawn = Callable[..., "subprocess.Popen[str]"]
FEW, MANY = 500, 4500
MOST_FOR_EACH = 10 * 1024  # bytes; about half of that are needed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

THREADS = """
import asyncio, os, sys, sneck.aio

def count():  # those that Python does not know, too
    return len(os.listdir("/proc/self/task"))

async def main(url, name):
    async with sneck.aio.connect(url) as client:
        counts = [count()]
        async with client.lock(name, renew=False):
            await client.update(name + ":value", lambda _: None)
            counts.append(count())
        async with client.lock(name), client.lock(name + ":other"):
            counts.append(count())
    print(*counts, count())

asyncio.run(main(*sys.argv[1:]))
"""


def test_no_thread_but_the_one_that_renews(server: Server, name: str, spawn: Spawn) -> None:
    output, _ = spawn(THREADS, server.url, name).communicate(timeout=LIMIT)
    assert output == "1 1 2 1\n"


CROWD = """
import asyncio, gc, os, sys, sneck.aio, uvloop

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

async def wait(client, name):
    async with client.lock(name, renew=False):
        pass

async def crowd(client, name, size):
    queue = "{" + name + "}:sneck:queue"
    tasks = [asyncio.ensure_future(wait(client, name)) for _ in range(size)]
    while await client.execute("ZCARD", queue) != size:
        await asyncio.sleep(0.01)
    return resident(), tasks

async def main(url, name, few, many):
    async with sneck.aio.connect(url) as client:
        async with client.lock(name, ttl=600):
            first, tasks = await crowd(client, name, few)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            second, tasks = await crowd(client, name, many)
        await asyncio.gather(*tasks)
    print((second - first) // (many - few))

loop, url, name, few, many = sys.argv[1:]
if loop == "uvloop":
    uvloop.install()
asyncio.run(main(url, name, int(few), int(many)))
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_who_waits_takes_less_than_ten_kibibytes(
    server: Server, name: str, spawn: Spawn, loop: str
) -> None:
    child = spawn(CROWD, loop, server.url, name, str(FEW), str(MANY))
    output, _ = child.communicate(timeout=LIMIT)
    assert child.returncode == 0, output
    assert 1024 < int(output) < MOST_FOR_EACH
