"""sneck.aio: a lock on several servers on a loop, and what a cancelled task leaves there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from aio import LOOPS, descriptors, run_on
from leases import LONG
from quorum import forget, kill, urls, values

import sneck
import sneck.aio
from sneck.testing import Server

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]
TTL = 3.0  # of leases that are to be lost; each server has a twentieth of it to answer


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine function on each kind of loop."""
    return partial(run_on, LOOPS[request.param])


@pytest.fixture
def aclient(servers: list[Server]) -> sneck.aio.Client:
    """A client of all servers that no loop has used yet."""
    return sneck.aio.quorum(urls(servers))


def test_async_with(run: Run, aclient: sneck.aio.Client, servers: list[Server], name: str) -> None:
    async def main() -> None:
        async with aclient:
            async with aclient.lock(name) as lock:
                assert values(servers, name).count(lock.token) >= 3
                assert not await aclient.lock(name, ttl=LONG).acquire(blocking=False)
            assert values(servers, name) == [None] * 5

    run(main)


def test_all_descriptors_are_given_back(run: Run, servers: list[Server], name: str) -> None:
    run(lambda: asyncio.sleep(0))  # a first loop of its kind keeps some
    before = descriptors()

    async def main() -> None:
        async with sneck.aio.quorum(urls(servers)) as client, client.lock(name):
            assert len(descriptors() - before) >= 5

    run(main)
    assert descriptors() <= before


def test_fifteen_servers(run: Run, servers: list[Server], name: str) -> None:
    # ten of them are not there: that is a majority
    nowhere = [f"unix:///nonexistent/{number}" for number in range(10)]

    async def main() -> None:
        async with sneck.aio.quorum([*urls(servers), *nowhere]) as client:
            with pytest.raises(sneck.QuorumImpossible) as caught:
                await client.lock(name).acquire(blocking=False)
            assert len(caught.value.servers) >= 8

    run(main)
    assert values(servers, name) == [None] * 5


def test_tasks_exclude_each_other(run: Run, aclient: sneck.aio.Client, name: str) -> None:
    async def main() -> None:
        inside = most = done = 0

        async def work() -> None:
            nonlocal inside, most, done
            for _ in range(5):
                async with aclient.lock(name, poll=0.002):
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0)
                    inside -= 1
                    done += 1

        async with aclient:
            await asyncio.gather(*(work() for _ in range(6)))
        assert (most, done) == (1, 30)

    run(main)


def test_cancelled_acquire_leaves_no_token(
    run: Run, aclient: sneck.aio.Client, servers: list[Server], name: str
) -> None:
    async def main() -> None:
        async with aclient:
            for turns in range(12):
                task = asyncio.ensure_future(aclient.lock(name).acquire())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                if await asyncio.wait_for(asyncio.wait([task]), 60) and not task.cancelled():
                    assert task.result()
                    await aclient.force_release(name)
        assert values(servers, name) == [None] * 5

    run(main)


def test_cancelled_waiter_leaves_no_token(
    run: Run, aclient: sneck.aio.Client, servers: list[Server], name: str
) -> None:
    async def main() -> None:
        async with aclient:
            async with aclient.lock(name) as lock:
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(aclient.lock(name, poll=0.005).acquire(), 0.05)
                assert set(values(servers, name)) <= {lock.token, None}
            assert await aclient.lock(name, ttl=LONG).acquire(blocking=False)

    run(main)


def test_loss_cancels_the_body(
    run: Run, aclient: sneck.aio.Client, servers: list[Server], name: str
) -> None:
    async def main() -> None:
        async with aclient:
            with pytest.raises(sneck.NotOwned, match="lost"):
                async with aclient.lock(name, ttl=TTL, on_lost="cancel"):
                    forget(servers[:3], name)
                    await asyncio.sleep(60)

    run(main)


def test_error_tells_what_each_server_said(
    run: Run, aclient: sneck.aio.Client, servers: list[Server], name: str
) -> None:
    async def main() -> None:
        async with aclient:
            lock = aclient.lock(name)
            assert await lock.acquire()
            kill(servers[2:])
            with pytest.raises(sneck.QuorumImpossible) as caught:
                await lock.release()
            assert set(caught.value.servers) == {server.socket for server in servers[2:]}

    run(main)


async def nothing(_: object) -> None:
    """Read and write nothing."""


async def hold_fair(client: sneck.aio.Client) -> None:
    async with client.lock("k", fair=True):
        raise AssertionError


async def make_legacy(client: sneck.aio.Client) -> None:
    client.legacy_lock("k")


REFUSED: dict[str, Callable[[sneck.aio.Client], Coroutine[Any, Any, object]]] = {
    "execute": lambda client: client.execute("PING"),
    "update": lambda client: client.update("k", lambda old: old),
    "set": lambda client: client.compare_and_set("k", None, "v"),
    "delete": lambda client: client.compare_and_delete("k", "v"),
    "transaction": lambda client: client.transaction(nothing),
    "writes": lambda client: client.transaction(nothing, "k"),
    "try_lock": lambda client: client.try_lock("k", "v", 60000),
    "release_lock": lambda client: client.release_lock("k", "v"),
    "legacy_lock": make_legacy,
    "fair": hold_fair,
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_needs_one_server_is_refused(
    run: Run,
    aclient: sneck.aio.Client,
    servers: list[Server],
    call: Callable[[sneck.aio.Client], Coroutine[Any, Any, object]],
) -> None:
    async def main() -> None:
        nowhere = sneck.aio.quorum(["unix:///none/a", "unix:///none/b"])
        for each in (aclient, nowhere):  # whatever is sent to nowhere fails with another error
            async with each:
                with pytest.raises(ValueError, match=r"^[^\n]*quorum[^\n]*$"):
                    await call(each)
                assert await each.waiters("k") == []
        assert values(servers, "k") == [None] * 5

    run(main)


def test_its_lock_is_no_guard(
    run: Run, aclient: sneck.aio.Client, servers: list[Server], name: str
) -> None:
    async def main() -> None:
        async with aclient, sneck.aio.connect(servers[0].url) as one, aclient.lock(name) as lock:
            with pytest.raises(ValueError, match="quorum"):
                await one.update("k", lambda _: "written", guard=lock)
            assert await one.execute("GET", "k") is None

    run(main)


def test_wrong_urls_are_refused() -> None:
    with pytest.raises(TypeError):
        sneck.aio.quorum("redis://localhost")
    with pytest.raises(ValueError, match="quorum"):
        sneck.aio.quorum([])


def test_client_names_its_servers() -> None:
    client = sneck.aio.quorum(["redis://:secret@one:1", "redis://two"])
    assert client.servers == ("one:1", "two:6379")
    assert repr(client) == "<sneck.aio.Client of one:1, two:6379>"
