"""async_tasks LIBRARY ADDRESS [OPTION ...] WAITERS PAGE: so many tasks wait for one lock.

LIBRARY is sneck, of which ADDRESS is a URL, or redis-py, of which it is the path of a
socket; its options are the pause between two looks in seconds and the number of
connections that its pool has, 0 for the default.

The lines are those of async_sneck.c: 1 is a round; 2 lets come in what has become due
since the last one. Between two lines the lock is held, and the loop does not run.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Protocol

from page import Page

ROUND, SETTLE = 1, 2
TTL = 3600


class Lock(Protocol):
    """What the libraries agree on."""

    async def acquire(self, blocking: bool = True) -> object:
        """Wait for the lock, or try once."""

    async def release(self) -> object:
        """Give it back."""


class Library(Protocol):
    """A library's client on this loop."""

    polls: bool  # who has just released takes it again, unless it stands back

    def lock(self) -> Lock:
        """Make the lock that a task has for itself."""

    async def settle(self) -> None:
        """Let come in what has become due."""


class Sneck:
    """Ours."""

    polls = False

    def __init__(self, url: str, name: str) -> None:
        """Make a client."""
        import sneck.aio

        self._client = sneck.aio.connect(url)
        self._name = name

    def lock(self) -> Lock:
        """Make a lock that is not renewed."""
        return self._client.lock(self._name, ttl=TTL)

    async def settle(self) -> None:
        """Wait until nothing is left to be answered."""
        link = self._client._driver().link
        await asyncio.sleep(0)
        while not link.quiet:
            await asyncio.sleep(0.001)


class RedisPy:
    """redis-py's own lock, which polls."""

    polls = True

    def __init__(self, path: str, name: str, poll: str, connections: str) -> None:
        """Make a client."""
        from redis import asyncio as redis

        if connections == "0":
            self._client = redis.Redis(unix_socket_path=path)
        else:
            pool = redis.BlockingConnectionPool(
                connection_class=redis.UnixDomainSocketConnection,
                path=path,
                max_connections=int(connections),
                timeout=None,
            )
            self._client = redis.Redis(connection_pool=pool)
        self._name, self._poll = name, float(poll)

    def lock(self) -> Lock:
        """Make a lock."""
        lock: Lock = self._client.lock(self._name, timeout=TTL, sleep=self._poll)
        return lock

    async def settle(self) -> None:
        """Let all look twice, so that they do not look at the same time."""
        await asyncio.sleep(2 * self._poll)


LIBRARIES: dict[str, Callable[..., Library]] = {"sneck": Sneck, "redis-py": RedisPy}


class Crowd:
    """The tasks; one of them has the lock, or it changes hands."""

    def __init__(self, library: Library, page: Page, count: int) -> None:
        """Start the tasks."""
        loop = asyncio.get_running_loop()
        self._library = library
        self._page = page
        self._count = count
        self._asked = 0  # how many have asked for the lock
        self._begins, self._over = asyncio.Event(), asyncio.Event()
        self._taken = asyncio.Event()  # by the next one
        self._released_ns = 0
        self._tasks = [loop.create_task(self._run(index)) for index in range(count)]
        for task in self._tasks:
            task.add_done_callback(_fail)

    async def do(self, what: int) -> None:
        """Do what a line says."""
        if what == ROUND:
            self._over.clear()
            self._begins.set()
        await self._over.wait()
        while what == SETTLE and self._asked < self._count:
            await asyncio.sleep(0.001)
        if what == SETTLE:
            await self._library.settle()

    async def _run(self, index: int) -> None:
        lock = self._library.lock()
        await self._acquire_first(lock)
        while True:
            await self._hold(index)
            taken = self._taken = asyncio.Event()
            self._released_ns = time.monotonic_ns()
            await lock.release()
            if self._library.polls:
                await taken.wait()
            await lock.acquire()

    async def _acquire_first(self, lock: Lock) -> None:
        """Acquire it, and note that it was asked for."""
        has_it = self._library.polls and await lock.acquire(blocking=False)
        self._asked += 1
        if not has_it:
            await lock.acquire()

    async def _hold(self, index: int) -> None:
        """Be in the section; keep the lock between rounds."""
        self._taken.set()
        if not self._page.hold(index, self._released_ns):
            self._over.set()
            await self._begins.wait()
            self._begins.clear()


def _fail(task: asyncio.Task[None]) -> None:
    error = task.exception()
    print(f"failed: {type(error).__name__}: {error}", flush=True)
    os._exit(1)


async def start(library: str, address: str, *more: str) -> Crowd:
    """Start the tasks, one more than wait: it has the lock."""
    *options, waiters, path = more
    client = LIBRARIES[library](address, f"bench:{os.getpid()}", *options)
    return Crowd(client, Page(path), int(waiters) + 1)


def main(*arguments: str) -> None:
    """Do what the lines say until the input ends."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    loop = asyncio.new_event_loop()
    crowd = loop.run_until_complete(start(*arguments))
    for line in sys.stdin:
        loop.run_until_complete(crowd.do(int(line)))
        print("done", flush=True)
    os._exit(0)


main(*sys.argv[1:])
