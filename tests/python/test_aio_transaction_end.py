"""sneck.aio: a transaction whose function ends early, in a group of tasks, or with its client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import anyio
import pytest
from aio import LOOPS, TaskGroup, keys, run_on, until, until_waiting

import sneck
import sneck.aio
from sneck.testing import Server

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]
Transaction = sneck.aio.Transaction


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine function on each kind of loop."""
    return partial(run_on, LOOPS[request.param])


@pytest.fixture
def aclient(server: Server) -> sneck.aio.Client:
    """A client that no loop has used yet."""
    return sneck.aio.connect(server.url, client_name="ends")


async def ended(task: asyncio.Future[Any]) -> BaseException | None:
    """Give what a task has raised, which must not hang."""
    with anyio.fail_after(20):
        await asyncio.wait([task])
    return task.exception()


async def talk(count: int) -> None:
    """Make connections that take the lowest numbers, and see that the loop serves them."""
    pairs = [socket.socketpair() for _ in range(count)]
    for ours, theirs in pairs:
        reader, writer = await asyncio.open_connection(sock=ours)
        theirs.send(b"heard\n")
        with anyio.fail_after(20):
            assert await reader.readline() == b"heard\n"
        writer.close()
        theirs.close()


# ------------------------------------------------------------- more than one call


def test_a_second_call_at_once_is_refused_and_the_first_one_ends(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    reads: list[asyncio.Task[bytes | None]] = []

    async def both(tx: Transaction) -> None:
        await tx.get(name)
        reads[:] = [asyncio.ensure_future(tx.get(key)) for key in (name, f"{name}:b")]
        await asyncio.gather(*reads)

    async def main() -> None:
        async with aclient:
            for _ in range(3):
                with pytest.raises(RuntimeError, match="one call at a time"):
                    await aclient.transaction(both, name)
                await talk(4)
                assert isinstance(await ended(reads[0]), RuntimeError)
            assert await aclient.update(name, lambda _: 1) == b"1"
            await aclient.execute("DEL", name)

    run(main)


def test_what_is_refused_does_no_harm_to_what_is_under_way(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    async def both(tx: Transaction) -> None:
        first = asyncio.ensure_future(tx.get(name))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one call at a time"):
            await tx.get(name)
        tx.queue("SET", name, await first or "none")

    async def main() -> None:
        async with aclient:
            assert await aclient.transaction(both, name) == [b"OK"]
            assert await aclient.execute("GETDEL", name) == b"none"

    run(main)


def test_a_function_that_leaves_a_read_behind_is_an_error(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    reads: list[asyncio.Task[bytes | None]] = []

    async def leave(tx: Transaction) -> None:
        await tx.get(name)
        tx.queue("SET", name, 1)
        reads.append(asyncio.ensure_future(tx.get(name)))
        await asyncio.sleep(0)

    async def main() -> None:
        async with aclient:
            for turn in range(3):
                with pytest.raises(RuntimeError, match="await it"):
                    await aclient.transaction(leave, name)
                assert len(reads) == turn + 1
                await talk(4)
                error = await ended(reads[-1])
                assert isinstance(error, RuntimeError)
                assert "has ended" in str(error)
            assert keys(client, name) == []

    run(main)


def test_a_function_that_aborts_leaves_no_read_behind(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    reads: list[asyncio.Task[bytes | None]] = []

    async def abort(tx: Transaction) -> None:
        reads.append(asyncio.ensure_future(tx.get(name)))
        await asyncio.sleep(0)
        tx.abort()

    async def main() -> None:
        async with aclient:
            assert await aclient.transaction(abort, name) is None
            await talk(4)
            assert isinstance(await ended(reads[-1]), RuntimeError)

    run(main)


# ------------------------------------------------------------- groups of tasks


async def in_group(child: Coroutine[Any, Any, None], *others: Coroutine[Any, Any, None]) -> None:
    """Run it beside others that never end."""
    async with TaskGroup() as group:
        for other in others:
            group.create_task(other)
        group.create_task(child)


async def in_anyio_group(
    child: Coroutine[Any, Any, None], *others: Coroutine[Any, Any, None]
) -> None:
    """Run it beside others that never end."""

    async def run(coroutine: Coroutine[Any, Any, None]) -> None:
        await coroutine

    async with anyio.create_task_group() as group:
        for each in (*others, child):
            group.start_soon(run, each)


@pytest.mark.parametrize("group", [in_group, in_anyio_group])
def test_a_task_of_a_group_may_abort(
    run: Run, aclient: sneck.aio.Client, name: str, group: Callable[..., Coroutine[Any, Any, None]]
) -> None:
    async def abort(tx: Transaction) -> None:
        tx.queue("SET", name, await tx.get(name) or "none")
        tx.abort()

    async def main() -> None:
        async with aclient:
            assert await aclient.transaction(lambda tx: group(abort(tx)), name) is None
            assert (
                await aclient.transaction(
                    lambda tx: group(group(abort(tx)), asyncio.sleep(60)), name
                )
                is None
            )
            assert await aclient.execute("EXISTS", name) == 0

    run(main)


@pytest.mark.parametrize("group", [in_group, in_anyio_group])
def test_what_a_group_raises_beside_goes_on(
    run: Run, aclient: sneck.aio.Client, name: str, group: Callable[..., Coroutine[Any, Any, None]]
) -> None:
    async def abort(tx: Transaction) -> None:
        tx.abort()

    async def fail() -> None:
        raise KeyError("mine")

    async def main() -> None:
        async with aclient:
            with pytest.raises(BaseException, match="unhandled errors") as caught:
                await aclient.transaction(lambda tx: group(abort(tx), fail()), name)
            assert "KeyError" in repr(caught.value)

    run(main)


@pytest.mark.parametrize("group", [in_group, in_anyio_group])
def test_a_connection_that_is_lost_in_a_group_is_another_attempt(
    run: Run,
    aclient: sneck.aio.Client,
    client: sneck.Client,
    name: str,
    group: Callable[..., Coroutine[Any, Any, None]],
) -> None:
    conflicts: list[int] = []

    async def read(tx: Transaction) -> None:
        conflicts.append(tx.conflicts)
        number = await tx.execute("CLIENT", "ID")
        if tx.conflicts == 0:
            assert isinstance(number, int)
            client.execute("CLIENT", "KILL", "ID", number)
        tx.queue("SET", name, await tx.get(name) or "none")

    async def main() -> None:
        async with aclient:
            assert await aclient.transaction(lambda tx: group(read(tx)), name) == [b"OK"]
            assert await aclient.execute("GETDEL", name) == b"none"

    run(main)
    assert conflicts == [0, 1]


# ------------------------------------------------------------- a client that closes


def test_a_client_that_closes_ends_its_transactions(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    seen: list[BaseException | object] = []
    begun = asyncio.Event()

    async def compute(tx: Transaction) -> None:
        await tx.get(name)
        begun.set()
        await asyncio.sleep(0.2)
        try:
            await tx.get(name)
        except sneck.Interrupted as error:
            seen.append(error)
            with pytest.raises(sneck.Interrupted):
                tx.queue("SET", name, 1)
            raise

    async def main() -> None:
        aclient = sneck.aio.connect(server.url, client_name="closing")
        running = asyncio.ensure_future(aclient.transaction(compute, name))
        queued = [
            asyncio.ensure_future(aclient.update(f"{name}:{number}", lambda _: 1))
            for number in range(100)
        ]
        cancelled = asyncio.ensure_future(aclient.update(name, lambda _: 1))
        await begun.wait()
        cancelled.cancel()
        await aclient.aclose()
        await until(lambda: b" name=closing " not in clients(client))
        for task in (running, *queued):
            assert isinstance(await ended(task), sneck.Interrupted)
        assert len(seen) == 1
        with pytest.raises(ValueError, match="closed"):
            await aclient.update(name, lambda _: 1)
        assert keys(client, name) == []

    run(main)


def clients(client: sneck.Client) -> bytes:
    """List the server's clients."""
    listed = client.execute("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    return listed


def test_a_client_that_closes_gives_its_turn_back(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    begun = asyncio.Event()

    async def stay(tx: Transaction) -> None:
        await tx.get(name)
        if tx.conflicts < 4:  # after that it has the turn
            client.update(name, lambda old: int(old or 0) + 1)
            tx.queue("SET", name, "mine")
            return
        begun.set()
        await asyncio.sleep(60)

    async def main() -> None:
        aclient = sneck.aio.connect(server.url)
        task = asyncio.ensure_future(aclient.transaction(stay, name))
        await begun.wait()
        assert keys(client, f"{name}}}:sneck:order") != []
        await aclient.aclose()
        assert keys(client, name) == [name.encode()]
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        client.execute("DEL", name)

    run(main)


def test_a_client_that_closes_waits_for_no_turn(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    order = f"{{{name}}}:sneck:order"

    async def main() -> None:
        with client.lock(order, ttl=60):
            aclient = sneck.aio.connect(server.url)
            task = asyncio.ensure_future(aclient.update(name, lambda _: 1, wait=None))
            await until_waiting(client, order, 1)
            await aclient.aclose()
            assert client.waiters(order) == []
            assert isinstance(await ended(task), sneck.Interrupted)
        await until(lambda: keys(client, name) == [])

    run(main)
