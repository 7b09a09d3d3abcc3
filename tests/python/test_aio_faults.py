"""sneck.aio where the server stalls or ends connections; the corpus has the single calls."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from aio import LOOPS, descriptors, run_on, until_waiting

import sneck
import sneck.aio
from sneck.testing import Server

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]
WAITING = 20


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run a coroutine function on each kind of loop."""
    return partial(run_on, LOOPS[request.param])


def test_a_client_closes_though_the_server_answers_nothing(run: Run, name: str) -> None:
    async def main() -> None:
        with Server() as own, sneck.connect(own.url) as client:
            aclient = sneck.aio.connect(own.url, timeout=5)
            await aclient.lock(name).acquire()
            tasks: list[asyncio.Future[Any]] = [
                asyncio.ensure_future(aclient.lock(name).acquire()) for _ in range(WAITING)
            ]
            await until_waiting(client, name, WAITING)
            await _read(aclient, name)
            os.kill(own.pid, signal.SIGSTOP)
            try:
                tasks += [asyncio.ensure_future(_read(aclient, name)) for _ in range(2)]
                tasks.append(asyncio.ensure_future(_ping(aclient)))
                await asyncio.sleep(0.01)
                await aclient.aclose()
            finally:
                os.kill(own.pid, signal.SIGCONT)
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(result) for result in results[:-1]} == {sneck.Interrupted}
            assert isinstance(results[-1], sneck.OutcomeUnknown)

    run(lambda: asyncio.sleep(0))
    gc.collect()
    before = descriptors()
    run(main)
    gc.collect()
    assert descriptors() == before


def test_a_connection_that_ends_while_it_could_not_write_is_no_fault_of_the_loop(
    run: Run, name: str
) -> None:
    # its descriptor is closed while the loop watches it for both; `run` looks at what the loop says
    async def main() -> None:
        with Server() as own:
            async with sneck.aio.connect(own.url) as aclient:
                await _ping(aclient)
                os.kill(own.pid, signal.SIGSTOP)
                writing = asyncio.ensure_future(aclient.execute("SET", name, bytes(2**24)))
                await asyncio.sleep(0.1)
                assert not writing.done()
                os.kill(own.pid, signal.SIGKILL)
                with pytest.raises(sneck.OutcomeUnknown):
                    await writing
                with pytest.raises(sneck.ConnectionError):
                    await _ping(aclient)

    run(main)


async def _ping(client: sneck.aio.Client) -> object:
    return await client.execute("PING")


async def _read(client: sneck.aio.Client, name: str) -> object:
    return await client.update(name + ":value", lambda _: sneck.KEEP)


def test_connections_that_are_killed_are_watched_anew(
    run: Run, server: Server, client: sneck.Client, name: str
) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url, client_name="killed") as aclient:
            for _ in range(20):
                held = aclient.lock(name)
                await held.acquire()
                second = aclient.lock(name)
                waiting = asyncio.ensure_future(second.acquire())
                await until_waiting(client, name, 1)
                kill(client)
                files = [os.open(os.devnull, os.O_RDONLY) for _ in range(5)]  # take the numbers
                await held.release()
                assert await waiting
                await second.release()
                assert await aclient.update(f"{name}:value", lambda _: None) is None
                for file in files:
                    os.close(file)

    run(main)


def kill(client: sneck.Client) -> None:
    """Kill the connections of a client that is named so."""
    listed = client.execute("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    for line in listed.decode().splitlines():
        fields = dict(field.partition("=")[::2] for field in line.split())
        if fields["name"] == "killed":
            client.execute("CLIENT", "KILL", "ID", fields["id"])
