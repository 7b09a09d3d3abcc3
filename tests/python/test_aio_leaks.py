"""sneck.aio: nothing is left behind by any call, whether it succeeds, fails or is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import tracemalloc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aio import run_on

import sneck
import sneck.aio
from sneck import _core
from sneck.testing import Server

ROUNDS = 200
SLACK = 10_000  # bytes; a leak of 50 bytes a round is more
Action = Callable[[sneck.aio.Client, str], Coroutine[Any, Any, None]]


async def use_lock(client: sneck.aio.Client, name: str) -> None:
    async with client.lock(name, label="label", fence=True, on_lost=print) as lock:
        await lock.extend(60)
        assert lock.token is not None
        await lock.holder()
        await client.adopt(name, lock.token).extend()
        assert not await lock.clone().acquire(timeout=0.001)
        await client.waiters(name)
    await client.force_release(name)
    await client.execute("DEL", name, f"{{{name}}}:sneck:fence")


async def reenter(client: sneck.aio.Client, name: str) -> None:
    lock = client.rlock(name, on_lost="cancel")
    async with lock, lock:
        await lock.extend()
        await client.update(f"{name}:value", lambda _: None, guard=lock)
        assert not await asyncio.ensure_future(lock.acquire(blocking=False))
    for call in (lock.release, lock.extend):
        with contextlib.suppress(sneck.NotOwned):
            await call()


async def be_cancelled(client: sneck.aio.Client, name: str) -> None:
    async with client.lock(name):
        for make in (client.lock, client.rlock):
            for turns in range(4):
                task = asyncio.ensure_future(make(name).acquire())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task


async def change(client: sneck.aio.Client, name: str) -> None:
    async def move(tx: sneck.aio.Transaction) -> None:
        tx.watch(name, f"{name}:b")
        await tx.execute("MGET", name, 1, 0.5)
        if tx.conflicts == 0:
            await client.execute("INCR", name)
        tx.queue("SET", name, 1)
        tx.queue("LPUSH", name, "x")

    async def fail(_: object) -> str:
        raise KeyError(name)

    await client.update(name, lambda old: int(old or 0) + 1)
    await client.compare_and_set(name, 1, "x", ttl=1.5)
    await client.compare_and_set(name, "x", 2)
    with contextlib.suppress(sneck.ServerError):
        await client.transaction(move, name)
    with contextlib.suppress(sneck.Conflict):
        await client.transaction(move, name, attempts=1)
    with contextlib.suppress(KeyError):
        await client.update(name, fail)
    await client.transaction(lambda tx: tx.abort())
    await client.update(name, lambda _: None)


async def end_early(client: sneck.aio.Client, name: str) -> None:
    async def both(tx: sneck.aio.Transaction) -> None:
        await asyncio.gather(tx.get(name), tx.get(name))

    async def leave(tx: sneck.aio.Transaction) -> None:
        read = asyncio.ensure_future(tx.get(name))
        read.add_done_callback(lambda read: read.exception())
        await asyncio.sleep(0)

    for function in (both, leave):
        with contextlib.suppress(RuntimeError):
            await client.transaction(function, name)
    other = sneck.aio.connect("unix://" + client.servers[0])
    updates = [asyncio.ensure_future(other.update(name, lambda _: None)) for _ in range(3)]
    await asyncio.sleep(0)
    await other.aclose()
    await asyncio.gather(*updates, return_exceptions=True)


async def fail(client: sneck.aio.Client, name: str) -> None:
    lock = client.lock(name)
    bad: list[Callable[[], Coroutine[Any, Any, object]]] = [
        lock.release,
        lock.extend,
        lambda: lock.extend(-1),
        lambda: lock.acquire(timeout=-5),
        lambda: client.rlock(name).acquire(timeout=-5),
        lambda: client.execute("ECHO", *range(20), None),  # type: ignore[arg-type]
        lambda: client.execute("MULTI"),
        lambda: client.execute("EVAL", "return redis.error_reply('BAD x')", 0),
        lambda: client.transaction(lambda tx: tx.queue("GET", None)),  # type: ignore[arg-type]
        lambda: client.transaction(lambda tx: tx.watch(None)),  # type: ignore[arg-type]
        lambda: client.transaction(print, *[name] * 20, 5),  # type: ignore[arg-type]
        lambda: client.update(name, print, attempts=0),
    ]
    for attempt in bad:
        with contextlib.suppress(TypeError, ValueError, sneck.NotOwned, sneck.ServerError):
            await attempt()
    async with sneck.aio.connect("unix:///nowhere") as nobody:
        with contextlib.suppress(sneck.ConnectionError):
            await nobody.lock(name).acquire()


async def forget_timers() -> None:
    """Have the loop drop cancelled timers: it keeps some until there are many."""
    loop = asyncio.get_running_loop()
    for timer in [loop.call_later(3600, print) for _ in range(1000)]:
        timer.cancel()
    await asyncio.sleep(0)


@pytest.mark.parametrize("action", [use_lock, reenter, be_cancelled, change, end_early, fail])
def test_calls_leave_nothing_behind(server: Server, name: str, action: Action) -> None:
    classes = (
        *(sneck.aio.Client, sneck.aio.Lock, sneck.aio.RLock, sneck.aio.Transaction),
        *(_core.Op, _core.Link, _core.Attempts, _core.Lock, sneck.NotOwned, sneck.Conflict),
    )

    async def main() -> None:
        async with sneck.aio.connect(server.url) as client:

            def counts() -> list[int]:
                gc.collect()
                return [sys.getrefcount(each) for each in (*classes, client, name)]

            async def repeat() -> None:
                for _ in range(ROUNDS):
                    await action(client, name)
                await client.execute("PING")  # behind what was cancelled
                await forget_timers()

            async def grow() -> int:
                tracemalloc.start()
                try:
                    await repeat()
                    assert counts() == before
                    return tracemalloc.get_traced_memory()[0]
                finally:
                    tracemalloc.stop()

            await repeat()
            before = counts()
            # a leak grows each time, and not only once, as a table of the loop does
            assert min([await grow() for _ in range(3)]) < SLACK

    run_on(asyncio.new_event_loop, main)
