"""sneck.aio: update and transactions, by functions of both kinds, one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from aio import LOOPS, run_on, until, until_waiting

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
    return sneck.aio.connect(server.url, client_name="transactions")


def test_update_takes_functions_of_both_kinds(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    async def double(old: bytes | None) -> int:
        await asyncio.sleep(0)
        return int(old or 0) * 2

    async def main() -> None:
        async with aclient as client:
            assert await client.update(name, lambda old: int(old or 0) + 1, ttl=100) == b"1"
            assert await client.update(name, double) == b"2"
            assert await client.update(name, functools.partial(double)) == b"4"
            assert await client.update(name, lambda _: sneck.KEEP) == b"4"
            assert await client.update(name, lambda _: 1.5) == b"1.5"
            ttl = await client.execute("TTL", name)
            assert isinstance(ttl, int)
            assert 90 < ttl <= 100
            assert await client.update(name, lambda _: None) is None
            assert await client.execute("EXISTS", name) == 0
            with pytest.raises(TypeError, match="str, bytes"):
                await client.update(name, lambda _: [])  # type: ignore[arg-type,return-value]
            with pytest.raises(TypeError, match="function"):
                await client.update(name, 1)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="ttl"):
                await client.update(name, double, ttl=0)
            with pytest.raises(ValueError, match="attempts"):
                await client.update(name, double, attempts=0)

    run(main)


def test_compare_and_set(run: Run, aclient: sneck.aio.Client, name: str) -> None:
    async def main() -> None:
        async with aclient as client:
            assert not await client.compare_and_set(name, 1, 2)
            assert await client.compare_and_set(name, None, 2)
            assert not await client.compare_and_set(name, None, 3)
            assert await client.compare_and_set(name, "2", b"3", ttl=50)
            assert not await client.compare_and_delete(name, 2)
            assert await client.compare_and_delete(name, 3)
            assert await client.execute("EXISTS", name) == 0

    run(main)


def test_a_transaction_reads_waits_and_writes(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    kept: list[sneck.aio.Transaction] = []

    async def move(tx: sneck.aio.Transaction) -> None:
        value = await tx.get(name)
        if tx.conflicts == 0:
            client.execute("INCR", name)
        await asyncio.sleep(0)
        kept.append(tx)
        tx.queue("SET", f"{name}:copy", value or b"none")
        tx.queue("DEL", name)

    def plain(tx: sneck.aio.Transaction) -> None:
        tx.watch(name)
        tx.queue("INCR", name)

    async def give_up(tx: sneck.aio.Transaction) -> None:
        tx.queue("INCR", name)
        tx.abort()

    async def fail(tx: sneck.aio.Transaction) -> None:
        await tx.get(name)
        raise KeyError("mine")

    async def swallow(tx: sneck.aio.Transaction) -> None:
        with contextlib.suppress(BaseException):
            tx.abort()
        with pytest.raises(BaseException, match="aborted"):
            tx.queue("INCR", name)

    async def main() -> None:
        async with aclient as aio:
            assert await aio.transaction(move, name) == [b"OK", 1]
            assert await aio.execute("GET", f"{name}:copy") == b"1"
            with pytest.raises(RuntimeError, match="has ended"):
                await kept[0].get(name)
            with pytest.raises(RuntimeError, match="has ended"):
                kept[1].queue("PING")
            assert await aio.transaction(plain) == [1]
            assert await aio.transaction(give_up) is None
            assert await aio.transaction(swallow) is None
            with pytest.raises(KeyError, match="mine"):
                await aio.transaction(fail, name)
            assert await aio.execute("GET", name) == b"1"
            with pytest.raises(TypeError, match="key"):
                await aio.transaction(lambda tx: tx.get(1), name)  # type: ignore[arg-type]
            await aio.execute("DEL", name, f"{name}:copy")

    run(main)


def test_errors_tell_what_those_of_the_client_that_blocks_tell(
    run: Run, aclient: sneck.aio.Client, client: sneck.Client, name: str
) -> None:
    async def contend(tx: sneck.aio.Transaction) -> None:
        await tx.get(name)
        client.execute("INCR", name)
        tx.queue("SET", name, 0)

    def break_one(tx: sneck.aio.Transaction) -> None:
        tx.queue("INCR", name)
        tx.queue("LPUSH", name, "x")

    async def main() -> None:
        async with aclient as aio:
            with pytest.raises(sneck.Conflict) as conflict:
                await aio.transaction(contend, name, attempts=3)
            assert (conflict.value.attempts, conflict.value.keys) == (3, (name,))
            assert conflict.value.waited >= 0
            with pytest.raises(sneck.ServerError) as broken:
                await aio.transaction(break_one)
            assert (broken.value.code, broken.value.index) == ("WRONGTYPE", 1)
            assert broken.value.results is not None
            assert broken.value.results[0] == 4
            guards: tuple[Any, ...] = ("x", client.lock(name), aio.lock(name)._lock, 0)
            for wrong in guards:
                with pytest.raises(TypeError, match="guard must be a Lock or None"):
                    await aio.update(name, lambda _: 7, guard=wrong)
            guard = aio.lock(f"{name}:guard")
            with pytest.raises(sneck.NotOwned):
                await aio.transaction(break_one, guard=guard)
            async with guard:
                assert await aio.update(name, lambda _: 7, guard=guard) == b"7"
            await aio.execute("DEL", name)

    run(main)


def test_transactions_take_turns_on_their_connections_in_order(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    order: list[int] = []

    async def add(aio: sneck.aio.Client, number: int) -> None:
        for _ in range(10):
            await aio.update(name, lambda old: int(old or 0) + 1)
        order.append(number)

    async def main() -> None:
        async with sneck.aio.connect(server.url, client_name="adders") as aio:
            tasks = [asyncio.ensure_future(add(aio, number)) for number in range(2000)]
            await until(lambda: client.execute("EXISTS", name) == 1)
            listed = client.execute("CLIENT", "LIST")
            assert isinstance(listed, bytes)
            assert listed.count(b" name=adders ") == 1
            await asyncio.gather(*tasks)
        assert client.execute("GET", name) == b"20000"
        client.execute("DEL", name)

    run(main)
    assert order == list(range(2000))


def test_a_client_that_does_everything_has_five_connections(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    def count() -> int:
        listed = client.execute("CLIENT", "LIST")
        assert isinstance(listed, bytes)
        return listed.count(b" name=everything ")

    async def main() -> None:
        async with sneck.aio.connect(server.url, client_name="everything") as aio:
            await aio.lock(f"{name}:other", renew=False).acquire()
            assert count() == 1
            waiting = asyncio.ensure_future(aio.lock(f"{name}:other").acquire())
            await until_waiting(client, f"{name}:other", 1)
            assert count() == 2
            async with aio.lock(f"{name}:renewed", ttl=60) as renewed:
                await renewed.extend(30)  # which is renewed at once
                await until(lambda: count() == 3)
            for _ in range(3):
                await aio.update(name, lambda _: 1)
            assert count() == 4
            order = f"{{{name}}}:sneck:order"
            turn = client.lock(order, ttl=60)
            turn.acquire()
            adding = asyncio.ensure_future(aio.update(name, lambda _: 2))
            await until_waiting(client, order, 1)
            turn.release()
            await adding
            assert count() == 5
            waiting.cancel()
            await aio.force_release(f"{name}:other")
        client.execute("DEL", name)

    run(main)


def test_a_transaction_inside_of_another_does_not_wait_for_it(
    run: Run, aclient: sneck.aio.Client, name: str
) -> None:
    async def outer(tx: sneck.aio.Transaction) -> None:
        seen = await aclient.update(f"{name}:inner", lambda old: int(old or 0) + 1)
        tx.queue("SET", name, seen or b"")

    async def main() -> None:
        async with aclient:
            assert await aclient.transaction(outer, name) == [b"OK"]
            assert await aclient.execute("GET", name) == b"1"
            await aclient.execute("DEL", name, f"{name}:inner")

    run(main)
