"""sneck.aio: one Lock for several tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from aio import LOOPS, run_on, until

import sneck
import sneck.aio
from sneck.testing import Server

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine function on each kind of loop."""
    return partial(run_on, LOOPS[request.param])


@pytest.fixture
def aclient(server: Server) -> sneck.aio.Client:
    """A client that no loop has used yet."""
    return sneck.aio.connect(server.url)


@pytest.mark.parametrize("on_lost", [None, "cancel"])
def test_a_body_that_lost_it_leaves_what_another_task_has_got(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str, on_lost: Any
) -> None:
    async def main() -> None:
        async with aclient:
            lock = aclient.lock(name, ttl=60, on_lost=on_lost)
            left = asyncio.Event()

            async def other() -> bytes | None:
                async with lock:
                    token = lock.token
                    await left.wait()
                    await lock.extend()
                    return token

            with pytest.raises(sneck.NotOwned):
                async with lock:
                    mine = lock.token
                    task = asyncio.create_task(other())
                    await asyncio.sleep(0)
                    client.execute("DEL", name)
                    await until(lambda: lock.token != mine)
                    await asyncio.sleep(0)
            assert client.execute("GET", name) == lock.token
            with pytest.raises(sneck.LockTimeout):
                await aclient.lock(name, wait=0).__aenter__()
            left.set()
            assert await task != mine
            assert client.execute("EXISTS", name) == 0

    run(main)


def test_an_acquire_without_a_body_cancels_whoever_is_in_one(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient:
            lock = aclient.lock(name, ttl=60, on_lost="cancel")

            async def other() -> None:
                client.execute("DEL", name)
                assert await lock.acquire()

            with pytest.raises(sneck.NotOwned):
                async with lock:
                    task = asyncio.create_task(other())
                    await asyncio.sleep(60)
            await task
            await aclient.execute("PING")
            assert client.execute("GET", name) == lock.token
            await lock.release()

    run(main)


def test_a_body_may_be_left_in_another_task(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient:
            lock = aclient.lock(name, ttl=60)
            for _ in range(3):
                await asyncio.create_task(lock.__aenter__())
                await lock.__aexit__(None, None, None)
                assert client.execute("EXISTS", name) == 0

    run(main)


def test_a_body_that_never_began_leaves_nothing_behind(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient:
            lock = aclient.lock(name, ttl=60)
            client.execute("SET", name, "theirs")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(lock.__aenter__(), 0.01)
            client.execute("DEL", name)
            await lock.acquire()
            await lock.__aexit__(None, None, None)
            assert client.execute("EXISTS", name) == 0

    run(main)


def test_its_task_acquires_an_rlock_anew_whose_release_was_cancelled(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient:
            rlock = aclient.rlock(name, ttl=60)
            await rlock.acquire()
            with pytest.raises(asyncio.CancelledError):
                task = asyncio.current_task()
                assert task is not None
                asyncio.get_running_loop().call_soon(task.cancel)
                await rlock.release()
            getattr(task, "uncancel", int)()
            assert await rlock.acquire()
            assert rlock.owned
            assert client.execute("GET", name) == rlock.token
            await rlock.release()
            assert client.execute("EXISTS", name) == 0

    run(main)


def test_acquires_that_were_given_up_are_contended(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    def has_counted(contended: int) -> bool:
        return aclient.stats().contended == contended

    async def main() -> None:
        async with aclient:
            client.execute("SET", name, "theirs")
            lock = aclient.lock(name)
            for number in range(1, 4):
                task = asyncio.ensure_future(lock.acquire())
                await until(partial(has_counted, number))
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert aclient.stats().contended == 3

    run(main)
