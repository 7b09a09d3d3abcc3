"""sneck.aio: what its calls do on a loop, and that names and errors are the usual ones."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio
import pytest
from aio import LOOPS, TaskGroup, descriptors, run_on, until_waiting

import sneck
import sneck.aio
from sneck.testing import Server

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]
MANY = 5000


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine function on each kind of loop."""
    return partial(run_on, LOOPS[request.param])


@pytest.fixture
def aclient(server: Server) -> sneck.aio.Client:
    """A client that no loop has used yet."""
    return sneck.aio.connect(server.url, label="tests")


def test_a_lock_is_held_in_the_body_only(run: Run, aclient: sneck.aio.Client, name: str) -> None:
    async def main() -> None:
        async with aclient, aclient.lock(name, ttl=60, fence=True) as lock:
            assert (lock.name, lock.ttl, lock.owned, lock.lost) == (name, 60, True, False)
            assert lock.lease == "held"
            assert lock.fence is not None
            assert 0 < lock.remaining() < 60
            holder = await lock.holder()
            assert holder is not None
            assert (holder.token, holder.label) == (lock.token, "tests")
            assert await lock.locked()
            other = lock.clone()
            assert not await other.acquire(blocking=False)
            assert not await other.acquire(timeout=0.02)
            assert "not owned" in repr(other)
            with pytest.raises(sneck.LockTimeout, match="held by"):
                async with aclient.lock(name, wait=0.02):
                    pass
            await lock.extend(120)
            assert lock.remaining() > 60
            await lock.release()
            assert await other.acquire()
            await other.release()
            with pytest.raises(sneck.NotOwned):
                await lock.extend()
            assert await lock.acquire()

    run(main)


def test_errors_are_those_of_the_client_that_blocks(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient as client:
            lock = client.lock(name)
            with pytest.raises(sneck.NotOwned):
                await lock.release()
            with pytest.raises(ValueError, match="non-blocking"):
                await lock.acquire(False, 1)
            with pytest.raises(ValueError, match="ttl"):
                client.lock(name, ttl=-1)
            with pytest.raises(TypeError, match="on_lost"):
                client.lock(name, on_lost="kill")  # type: ignore[arg-type]
            await client.execute("LPUSH", name, "x")
            with pytest.raises(sneck.ServerError) as caught:
                await lock.holder()
            assert caught.value.code == "WRONGTYPE"
            with pytest.raises(TypeError, match="command"):
                await client.execute()
            with pytest.raises(ValueError, match="SUBSCRIBE"):
                await client.execute("SUBSCRIBE", "x")
            await client.execute("DEL", name)
        with pytest.raises(ValueError, match="closed"):
            await lock.acquire()
        await client.aclose()

    run(main)
    with pytest.raises(ValueError, match="connections"):
        sneck.aio.connect(connections=0)
    with pytest.raises(TypeError, match="connections"):
        sneck.aio.connect(connections="1")  # type: ignore[arg-type]


def test_no_server_is_a_connection_error(run: Run) -> None:
    async def main() -> None:
        async with sneck.aio.connect("unix:///nowhere/at/all") as client:
            with pytest.raises(sneck.ConnectionError, match="/nowhere/at/all"):
                await client.lock("x").acquire()
            with pytest.raises(sneck.ConnectionError):
                await client.update("x", lambda old: old)

    run(main)


def test_waiters_are_listed_and_a_lock_can_be_taken_away(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient as client:
            held = client.lock(name)
            await held.acquire()
            task = asyncio.ensure_future(client.lock(name, label="second").acquire())
            while not (waiters := await client.waiters(name)):
                await asyncio.sleep(0.005)
            assert [waiter.label for waiter in waiters] == ["second"]
            assert await client.force_release(name)
            assert await task
            assert await client.force_release(name)
            assert not await client.force_release(name)

    run(main)


def test_a_token_can_be_adopted(run: Run, aclient: sneck.aio.Client, name: str) -> None:
    async def main() -> None:
        async with aclient as client:
            lock = client.lock(name)
            await lock.acquire()
            assert lock.token is not None
            adopted = client.adopt(name, lock.token, ttl=120)
            async with adopted:
                assert adopted.remaining() > 60
            assert not await adopted.locked()
            with pytest.raises(sneck.NotOwned):
                async with client.adopt(name, "other"):
                    pass

    run(main)


def test_a_coroutine_function_can_be_locked(run: Run, aclient: sneck.aio.Client, name: str) -> None:
    @aclient.locked(name + ":{id}", ttl=5)
    async def work(id: int) -> bool:  # noqa: A002
        return await aclient.lock(f"{name}:{id}").locked()

    async def main() -> None:
        async with aclient:
            assert await work(7)
            assert not await aclient.lock(f"{name}:7").locked()

    run(main)
    with pytest.raises(TypeError, match="coroutine"):
        aclient.locked(name)(print)  # type: ignore[arg-type]


def test_a_reentrant_lock_belongs_to_its_task(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient as client:
            lock = client.rlock(name)
            async with lock:
                async with lock:
                    assert await lock.acquire()
                    await lock.release()
                    assert not await asyncio.ensure_future(lock.acquire(blocking=False))
                assert lock.owned
                token = lock.token
                assert token is not None
                task = asyncio.ensure_future(lock.acquire())
            assert await task
            assert not lock.owned
            with pytest.raises(sneck.NotOwned, match="this task"):
                await lock.release()
            assert await client.force_release(name)

    run(main)


def test_a_reentrant_lock_tells_and_guards_as_its_tasks_own(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient as client:
            lock = client.rlock(name, ttl=10, fence=True)
            async with lock:
                assert (lock.lease, lock.ttl, lock.lost) == ("held", 10, False)
                assert lock.fence is not None
                await lock.extend(30)
                assert lock.remaining() > 20
                holder = await lock.holder()
                assert holder is not None
                assert holder.token == lock.token
                assert await client.update(f"{name}:value", lambda _: 1, guard=lock) == b"1"

                async def other() -> None:
                    assert (lock.lease, lock.token, lock.fence) == ("none", None, None)
                    with pytest.raises(sneck.NotOwned):
                        await client.update(f"{name}:value", lambda _: 2, guard=lock)
                    with pytest.raises(sneck.NotOwned):
                        await lock.extend()

                await asyncio.ensure_future(other())
                assert await lock.acquire()
                await client.force_release(name)
                with pytest.raises(sneck.NotOwned):
                    await lock.extend()
                with pytest.raises(sneck.NotOwned, match="this task"):
                    await lock.acquire()
                with pytest.raises(sneck.NotOwned, match="this task"):
                    await lock.release()
                with pytest.raises(sneck.NotOwned):
                    await lock.release()
                assert await lock.acquire()
            assert await lock.clone().acquire(blocking=False)
            assert await client.force_release(name)
            await client.execute("DEL", f"{name}:value")

    run(main)


def test_many_tasks_share_a_reentrant_lock(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    total = 0

    async def add(lock: sneck.aio.RLock, number: int) -> None:
        nonlocal total
        async with lock, lock:
            seen = total
            await asyncio.sleep(0)
            total = seen + 1
            order.append(number)

    order: list[int] = []

    async def main() -> None:
        async with aclient:
            lock = aclient.rlock(name, ttl=60, renew=False)
            await lock.acquire()
            tasks = [asyncio.ensure_future(add(lock, number)) for number in range(1000)]
            await until_waiting(client, name, 1000)
            for task in tasks[::2]:
                task.cancel()
            await lock.release()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert await aclient.waiters(name) == []
            assert not await lock.locked()

    run(main)
    assert total == 500
    assert order == list(range(1, 1000, 2))


def test_a_lock_is_renewed_though_the_loop_is_blocked(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient as client, client.lock(name, ttl=60) as lock:
            await lock.extend(30)
            while lock.remaining() <= 30:
                time.sleep(0.01)

    run(main)


# ------------------------------------------------------------- one client, one loop


def test_a_client_belongs_to_one_loop(run: Run, aclient: sneck.aio.Client, name: str) -> None:
    async def main() -> None:
        await aclient.lock(name).acquire(blocking=False)
        with contextlib.suppress(sneck.NotOwned):
            await aclient.lock(name).release()

    async def elsewhere() -> None:
        with pytest.raises(RuntimeError, match="another event loop"):
            await aclient.lock(name).acquire()
        with pytest.raises(RuntimeError, match="another event loop"):
            await aclient.update(name, lambda old: old)
        with pytest.raises(RuntimeError, match="another event loop"):
            await aclient.aclose()

    async def both() -> None:
        await main()
        await asyncio.to_thread(run_on, asyncio.new_event_loop, elsewhere)

    run(both)
    run(elsewhere)


def test_what_is_dropped_with_its_loop_leaves_no_descriptor(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    client.execute("PING")

    async def main() -> None:
        aclient = sneck.aio.connect(server.url)
        await aclient.lock(name).acquire()
        waiting = [asyncio.ensure_future(aclient.lock(name).acquire()) for _ in range(10)]
        await until_waiting(client, name, 10)
        assert await aclient.update(f"{name}:value", lambda _: 1) == b"1"
        assert not any(task.done() for task in waiting)
        # asyncio.run() cancels those that wait, and nobody closes the client

    run(lambda: asyncio.sleep(0))
    gc.collect()
    before = descriptors()
    run(main)
    gc.collect()
    assert descriptors() == before
    assert client.force_release(name)
    assert client.waiters(name) == []
    client.execute("DEL", name, f"{name}:value")


def test_closing_ends_what_waits_and_leaves_nothing(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        aclient = sneck.aio.connect(server.url)
        held = aclient.lock(name)
        await held.acquire()
        waiting = [asyncio.ensure_future(aclient.lock(name).acquire()) for _ in range(50)]
        await until_waiting(client, name, 50)
        release = asyncio.ensure_future(held.release())
        await asyncio.sleep(0)
        await aclient.aclose()
        results = await asyncio.gather(*waiting, release, return_exceptions=True)
        assert results[-1] is None
        assert {type(result) for result in results[:-1]} == {sneck.Interrupted}
        assert client.lock(name).holder() is None
        assert client.waiters(name) == []

    run(main)


# ------------------------------------------------------------- many tasks


def test_many_tasks_wait_on_three_connections(run: Run, server: Server, name: str) -> None:
    order: list[int] = []

    async def wait(client: sneck.aio.Client, number: int) -> None:
        async with client.lock(name, renew=False):
            order.append(number)

    async def main() -> None:
        with sneck.connect(server.url) as other:
            client = sneck.aio.connect(server.url, client_name="many")
            async with client, TaskGroup() as group, client.lock(name, ttl=60):
                for number in range(MANY):
                    group.create_task(wait(client, number))
                while len(await client.waiters(name)) < 1000:
                    await asyncio.sleep(0.01)
                await client.execute("PING")  # which is answered after all of them
                listed = other.execute("CLIENT", "LIST")
                assert isinstance(listed, bytes)
                assert 2 <= listed.count(b" name=many ") <= 3

    run(main)
    assert order == list(range(MANY))


def test_additions_under_a_lock_are_exact_and_in_their_order(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    total = 0
    order: list[int] = []

    async def add(number: int) -> None:
        nonlocal total
        for _ in range(10):
            async with aclient.lock(name, ttl=60, renew=False):
                seen = total
                order.append(number)
                await asyncio.sleep(0)
                total = seen + 1

    async def main() -> None:
        async with aclient:
            async with aclient.lock(name, ttl=60):  # until all have queued
                adding = asyncio.gather(*[add(number) for number in range(2000)])
                while await aclient.execute("ZCARD", f"{{{name}}}:sneck:queue") != 2000:
                    await asyncio.sleep(0.01)
            await adding
            assert aclient.stats().acquisitions == 20001

    run(main)
    assert total == 20000
    assert order == list(range(2000)) * 10


def test_anyio_runs_it(server: Server, name: str) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url) as client:
            async with client.lock(name):
                with anyio.move_on_after(0.05) as scope:
                    async with client.lock(name):
                        pass
                assert scope.cancelled_caught
                async with anyio.create_task_group() as group:

                    async def wait() -> None:
                        async with client.lock(name):
                            pass

                    group.start_soon(wait)
                    while not await client.waiters(name):
                        await anyio.sleep(0.005)
                    group.cancel_scope.cancel()
                assert await client.waiters(name) == []
            assert await client.lock(name).holder() is None

    anyio.run(main)
