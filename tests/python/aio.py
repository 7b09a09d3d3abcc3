"""What the tests of sneck.aio share: loops to run on, and looks at what is left."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import anyio
import uvloop

import sneck

if sys.version_info >= (3, 11):
    from asyncio import TaskGroup, timeout
else:  # so that this can be imported; a loss is not told from other cancellations there
    TaskGroup: Any = None
    timeout: Any = None

T = TypeVar("T")
Main = Callable[[], Coroutine[Any, Any, T]]

LIMIT = 300.0  # seconds; what does not happen by then never will, though a busy machine needs one
LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


def run_on(new_loop: Callable[[], asyncio.AbstractEventLoop], main: Main[T]) -> T:
    """Run a coroutine function to its end, and the loop as asyncio.run() does.

    What the loop reports about exceptions that nobody catches fails the test.
    """
    reports: list[dict[str, Any]] = []
    loop = new_loop()
    loop.set_exception_handler(lambda _, report: reports.append(report))

    async def limited() -> T:
        with anyio.fail_after(LIMIT):
            return await main()

    try:
        result = loop.run_until_complete(limited())
    finally:
        _cancel_all(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
    assert reports == [], reports
    return result


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something comes true that must."""
    with anyio.fail_after(LIMIT):
        while not condition():
            await asyncio.sleep(0.005)


async def until_waiting(client: sneck.Client, name: str, count: int) -> None:
    """Wait until so many wait for a lock."""
    await until(lambda: len(client.waiters(name)) == count)


def descriptors() -> set[str]:
    """List the process's open files."""
    return {path.name for path in Path("/dev/fd").iterdir()}


def keys(client: sneck.Client, pattern: str) -> object:
    """List the keys that are there."""
    return client.execute("KEYS", f"*{pattern}*")
