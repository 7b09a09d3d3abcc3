"""What the tests of sneck.aio share: loops to run on, and looks at what is left."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

import sneck

T = TypeVar("T")
Main = Callable[[], Coroutine[Any, Any, T]]

LIMIT = 60.0  # seconds; what does not happen by then never will
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


def run_on(new_loop: Callable[[], asyncio.AbstractEventLoop], main: Main[T]) -> T:
    """Run a coroutine function to its end, and the loop as asyncio.run() does.

    What the loop reports about exceptions that nobody catches fails the test.
    """
    reports: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.get_loop().set_exception_handler(lambda _, report: reports.append(report))

        async def limited() -> T:
            async with asyncio.timeout(LIMIT):
                return await main()

        result = runner.run(limited())
    assert reports == []
    return result


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something comes true that must."""
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0.005)


async def until_waiting(client: sneck.Client, name: str, count: int) -> None:
    """Wait until so many wait for a lock."""
    await until(lambda: len(client.waiters(name)) == count)


def descriptors() -> set[str]:
    """List the process's open files."""
    return set(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))


def keys(client: sneck.Client, pattern: str) -> object:
    """List the keys that are there."""
    return client.execute("KEYS", f"*{pattern}*")
