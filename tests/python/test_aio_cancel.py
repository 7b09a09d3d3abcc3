"""sneck.aio: a task cancelled anywhere leaves no key, no place in a queue, no file, no task."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio
import pytest
from aio import LOOPS, descriptors, run_on, timeout, until, until_waiting

import sneck
import sneck.aio
from sneck.testing import Server

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]
CANCELS = 10_000
AT_ONCE = 40
LOCKS = 5


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine function on each kind of loop."""
    return partial(run_on, LOOPS[request.param])


def left_behind(client: sneck.Client, name: str) -> list[object]:
    """List the keys of a test."""
    found = client.execute("KEYS", f"*{name}*")
    assert isinstance(found, list)
    return list(found)


async def work(client: sneck.aio.Client, name: str, chance: random.Random) -> None:
    """Do one of all things that await something."""
    make = chance.choice((client.lock, client.rlock))
    lock = make(f"{name}:{chance.randrange(LOCKS)}", renew=chance.random() < 0.5)
    what = chance.randrange(6)
    if what == 0:
        await client.update(f"{name}:value", lambda _: sneck.KEEP, attempts=100)
    elif what == 1:

        async def read(tx: sneck.aio.Transaction) -> None:
            await tx.get(f"{name}:value")
            await asyncio.sleep(0)
            tx.queue("SET", f"{name}:value", 1)
            tx.queue("DEL", f"{name}:value")

        await client.transaction(read, f"{name}:value", attempts=100)
    elif what == 2:
        with contextlib.suppress(sneck.NotOwned):
            if await lock.acquire(timeout=0.005):
                await lock.release()
    else:
        async with lock:
            await asyncio.sleep(chance.choice((0, 0, 0.001)))
            if what == 3:
                await lock.extend(5)


async def hurry(client: sneck.aio.Client, name: str, chance: random.Random, count: int) -> int:
    """Start and cancel at random points, one after the other; tell how many were cancelled."""
    cancelled = 0
    while cancelled < count:
        task = asyncio.ensure_future(work(client, name, chance))
        for _ in range(chance.randrange(12)):
            await asyncio.sleep(0)
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random() * 0.004)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        cancelled += task.cancelled()
    return cancelled


def test_ten_thousand_cancelled_tasks_leave_nothing(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")

    async def main() -> None:
        aclient = sneck.aio.connect(server.url, connections=2)
        async with aclient:
            counts = await asyncio.gather(
                *[
                    hurry(aclient, name, random.Random(seed + each), CANCELS // AT_ONCE)
                    for each in range(AT_ONCE)
                ]
            )
            assert sum(counts) >= CANCELS
        assert len(asyncio.all_tasks()) == 1  # this one
        assert left_behind(client, name) == []
        for number in range(LOCKS):
            assert client.waiters(f"{name}:{number}") == []

    client.execute("PING")
    run(lambda: asyncio.sleep(0))
    gc.collect()
    before = descriptors()
    run(main)
    gc.collect()
    assert descriptors() == before


def test_a_grant_in_the_last_moment_is_released(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url) as aclient:
            await aclient.execute("PING")
            driver = aclient._driver()
            for turn in range(30):
                task = asyncio.ensure_future(aclient.lock(name).acquire())
                await asyncio.sleep(0)
                while aclient.stats().acquisitions == turn:
                    driver.link.step()  # so that it ends, and the task is not told
                assert client.lock(name).holder() is not None
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await until(lambda: client.lock(name).holder() is None)

    run(main)


def test_whoever_waits_next_gets_what_was_granted_to_the_cancelled(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url) as aclient:
            for _ in range(50):
                held = aclient.lock(name)
                await held.acquire()
                first = asyncio.ensure_future(aclient.lock(name).acquire())
                second_lock = aclient.lock(name)
                second = asyncio.ensure_future(second_lock.acquire())
                await until_waiting(client, name, 2)
                await asyncio.gather(held.release(), cancel_soon(first))
                if not first.cancelled():
                    await aclient.force_release(name)
                assert await second
                await second_lock.release()

    async def cancel_soon(task: asyncio.Task[bool]) -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    run(main)


def test_a_release_goes_on_when_its_task_is_cancelled(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url) as aclient:
            lock = aclient.lock(name)
            await lock.acquire()
            task = asyncio.ensure_future(lock.release())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: client.lock(name).holder() is None)

    run(main)


def test_a_cancelled_body_releases_its_lock(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url) as aclient:
            with pytest.raises(TimeoutError):
                async with timeout(0.05), aclient.lock(name):
                    await asyncio.sleep(60)
            assert client.lock(name).holder() is None

    run(main)


def test_a_cancelled_transaction_gives_its_connection_and_turn_back(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url) as aclient:
            begun = asyncio.Event()

            async def stay(tx: sneck.aio.Transaction) -> None:
                await tx.get(name)
                if tx.conflicts < 4:  # after that it has the turn
                    client.update(name, lambda old: int(old or 0) + 1)
                    tx.queue("SET", name, "mine")
                    return
                begun.set()
                await asyncio.sleep(60)

            task = asyncio.ensure_future(aclient.transaction(stay, name))
            next_one = asyncio.ensure_future(aclient.update(name, lambda old: old))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await next_one == b"4"
        assert left_behind(client, name) == [name.encode()]
        client.execute("DEL", name)

    run(main)


# ------------------------------------------------------------- a client that is closed meanwhile


async def hold_until_cancelled(server: Server, client: sneck.Client, name: str) -> None:
    """Have the release need two round trips: the server forgets its scripts."""
    with anyio.move_on_after(0.02):
        async with sneck.aio.connect(server.url) as aclient, aclient.lock(name, ttl=600):
            client.execute("SCRIPT", "FLUSH")
            await asyncio.sleep(60)


def test_a_cancelled_scope_that_closes_its_client_releases_its_lock(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        for _ in range(5):
            await hold_until_cancelled(server, client, name)
            await until(lambda: client.lock(name).holder() is None)

    run(main)


@pytest.mark.parametrize("options", [{}, {"use_uvloop": True}])
def test_a_program_that_ends_so_releases_its_lock(
    server: Server, client: sneck.Client, name: str, options: dict[str, bool]
) -> None:
    for _ in range(5):
        anyio.run(hold_until_cancelled, server, client, name, backend_options=options)
        assert client.lock(name).holder() is None


def test_who_closes_again_waits_for_the_end(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        for _ in range(5):
            aclient = sneck.aio.connect(server.url)
            lock = aclient.lock(name, ttl=600)
            await lock.acquire()
            client.execute("SCRIPT", "FLUSH")
            release = asyncio.ensure_future(lock.release())
            closing = asyncio.ensure_future(aclient.aclose())
            for _ in range(2):
                await asyncio.sleep(0)
            closing.cancel()
            await aclient.aclose()
            assert closing.cancelled()
            assert client.lock(name).holder() is None
            await release
            await aclient.aclose()

    run(main)
