"""sneck.aio: on_lost is called on the loop, or cancels the body as asyncio.timeout() does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from aio import LOOPS, TaskGroup, run_on, timeout, until

import sneck
import sneck.aio
from sneck.testing import Server

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]
TTL = 1.0  # of leases that are to be lost


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine function on each kind of loop."""
    return partial(run_on, LOOPS[request.param])


@pytest.fixture
def aclient(server: Server) -> sneck.aio.Client:
    """A client that no loop has used yet."""
    return sneck.aio.connect(server.url)


def test_it_is_called_on_the_loop(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    told: list[tuple[sneck.aio.Lock, bool, int]] = []

    def on_lost(lock: sneck.aio.Lock) -> None:
        asyncio.get_running_loop()
        told.append((lock, lock.lost, threading.get_ident()))

    async def main() -> None:
        async with aclient:
            with pytest.raises(sneck.NotOwned):
                async with aclient.lock(name, ttl=TTL, on_lost=on_lost) as lock:
                    client.execute("DEL", name)
                    await until(lambda: len(told) == 1)
            assert told == [(lock, True, threading.get_ident())]

    run(main)


def test_a_loss_cancels_the_body(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient:
            task = asyncio.current_task()
            assert task is not None
            for _ in range(2):
                cleaned = False
                with pytest.raises(sneck.NotOwned, match="lost") as caught:
                    async with aclient.lock(name, ttl=TTL, on_lost="cancel"):
                        client.execute("DEL", name)
                        try:
                            await asyncio.sleep(60)
                        finally:
                            cleaned = True
                assert cleaned
                assert isinstance(caught.value.__cause__, asyncio.CancelledError)
                assert task.cancelling() == 0  # type: ignore[attr-defined]
                await asyncio.sleep(0)

    run(main)


def test_a_loss_is_told_of_also_where_the_client_is_closed_meanwhile(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(sneck.NotOwned, match="lost"):
            async with aclient.lock(name, ttl=TTL, on_lost="cancel"):
                client.execute("DEL", name)
                try:
                    await asyncio.sleep(60)
                finally:
                    await aclient.aclose()
        assert task.cancelling() == 0  # type: ignore[attr-defined]

    run(main)


def test_no_loss_no_cancel(run: Run, aclient: sneck.aio.Client, name: str) -> None:
    async def main() -> None:
        async with aclient, aclient.lock(name, ttl=60, on_lost="cancel") as lock:
            await lock.extend(30)  # which is renewed at once
            await until(lambda: lock.remaining() > 30)

    run(main)


@pytest.mark.parametrize("taken", [False, True])
def test_whoever_took_the_lock_keeps_it(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str, taken: bool
) -> None:
    async def main() -> None:
        async with aclient:
            with pytest.raises(sneck.NotOwned):
                async with aclient.lock(name, ttl=TTL, on_lost="cancel"):
                    client.execute(*(("SET", name, "theirs") if taken else ("DEL", name)))
                    await asyncio.sleep(60)
        assert client.execute("GET", name) == (b"theirs" if taken else None)
        client.execute("DEL", name)

    run(main)


def test_a_loss_cancels_the_body_of_the_task_that_had_a_reentrant_lock(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def lose(lock: sneck.aio.RLock) -> None:
        with pytest.raises(sneck.NotOwned, match="while its body ran"):
            async with lock:
                with pytest.raises(asyncio.CancelledError):
                    async with lock:
                        client.execute("DEL", name)
                        await asyncio.sleep(60)
                assert lock.lost
                raise asyncio.CancelledError
        assert not lock.lost

    async def main() -> None:
        async with aclient:
            lock = aclient.rlock(name, ttl=6, on_lost="cancel")
            async with aclient.rlock(f"{name}:kept", ttl=60, on_lost="cancel"):
                await asyncio.ensure_future(lose(lock))
                async with lock, lock:
                    await asyncio.sleep(0.01)

    run(main)


def test_a_timeout_around_is_not_mistaken_for_a_loss(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient:
            with pytest.raises(TimeoutError):
                async with timeout(0.05), aclient.lock(name, on_lost="cancel"):
                    await asyncio.sleep(60)
            assert client.lock(name).holder() is None
            with pytest.raises(sneck.NotOwned):
                async with timeout(60), aclient.lock(name, ttl=TTL, on_lost="cancel"):
                    client.execute("DEL", name)
                    await asyncio.sleep(60)
            with pytest.raises(sneck.NotOwned):
                async with aclient.lock(name, ttl=TTL, on_lost="cancel"), timeout(60):
                    client.execute("DEL", name)
                    await asyncio.sleep(60)

    run(main)


def test_a_cancellation_from_outside_wins(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def body(lock: sneck.aio.Lock, started: asyncio.Event) -> None:
        async with lock:
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                assert lock.lost

    async def main() -> None:
        # both in one turn of the loop: the loss first, then the cancellation
        async with aclient:
            lock = aclient.lock(name, ttl=TTL, on_lost="cancel")
            started = asyncio.Event()
            task = asyncio.ensure_future(body(lock, started))
            await started.wait()
            client.execute("DEL", name)
            while not lock.lost:
                await asyncio.sleep(0)
            lock._lose_bodies()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(main)


def test_a_task_group_inside_is_cancelled_with_its_tasks(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    ended: list[int] = []

    async def child(number: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(number)

    async def main() -> None:
        async with aclient:
            with pytest.raises(sneck.NotOwned):
                async with aclient.lock(name, ttl=TTL, on_lost="cancel"), TaskGroup() as group:
                    for number in range(3):
                        group.create_task(child(number))
                    await asyncio.sleep(0)
                    client.execute("DEL", name)

    run(main)
    assert sorted(ended) == [0, 1, 2]


def test_a_task_group_around_sees_the_loss(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def lose() -> None:
        async with aclient.lock(name, ttl=TTL, on_lost="cancel"):
            client.execute("DEL", name)
            await asyncio.sleep(60)

    async def main() -> None:
        async with aclient:
            with pytest.raises(BaseException) as caught:  # noqa: PT011 - Python 3.10 has no name
                async with TaskGroup() as group:
                    group.create_task(lose())
            (loss,) = caught.value.exceptions  # type: ignore[attr-defined]
            assert isinstance(loss, sneck.NotOwned)

    run(main)


def test_a_body_that_ended_at_the_same_time_is_told_and_nothing_strikes_later(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient:
            lock = aclient.lock(name, ttl=TTL, on_lost="cancel")
            with pytest.raises(sneck.NotOwned):
                async with lock:
                    client.execute("DEL", name)
                    while not lock.lost:
                        await asyncio.sleep(0)
                    lock._lose_bodies()  # and no await after it
            await asyncio.sleep(0.01)

    run(main)


def test_an_exception_of_the_bodys_own_goes_on(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with aclient:
            with pytest.raises(KeyError, match="mine") as caught:
                async with aclient.lock(name, ttl=TTL, on_lost="cancel"):
                    client.execute("DEL", name)
                    try:
                        await asyncio.sleep(60)
                    except asyncio.CancelledError:
                        raise KeyError("mine") from None
            assert "NotOwned" in str(getattr(caught.value, "__notes__", "NotOwned"))
            await asyncio.sleep(0.01)

    run(main)
