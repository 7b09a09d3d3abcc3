"""Transactions of the asyncio client: the attempts, and what their function gets.

Each runs on a connection of its own from begin to commit, driven only while one of its
steps is under way. What it leaves behind, watches and its turn, is given up at its end
also when the task was cancelled; its connection is free for the next one after that.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

from sneck import _core
from sneck.aio._driver import Driver

if TYPE_CHECKING:
    from sneck._core import _Reply

_Value = TypeVar("_Value")
Function: TypeAlias = Callable[["Transaction"], Awaitable[object] | object]

_inside: contextvars.ContextVar[tuple[Transaction, ...]] = contextvars.ContextVar(
    "_inside", default=()
)


class Transaction:
    """What a transaction's function reads and writes with; only inside of that function.

    One call at a time. Reads are awaited; queue(), watch() and abort() are not.
    """

    __slots__ = ("_aborted", "_attempts", "_loop", "_lost", "_open", "_pool")

    def __init__(
        self, attempts: _core.Attempts, loop: asyncio.AbstractEventLoop, pool: object
    ) -> None:
        """Make one for one run of the function."""
        self._attempts = attempts
        self._loop = loop
        self._pool = pool
        self._open = True
        self._aborted = self._lost = False

    def _usable(self) -> _core.Attempts:
        if not self._open:
            raise RuntimeError("transaction: its function has ended; use it inside of that only")
        if self._aborted:
            raise _core._AttemptEnded("aborted")
        return self._attempts

    async def get(self, key: str | bytes) -> bytes | None:
        """Read the string at a key; None when there is none.

        The key should be watched. Raises what execute() raises.
        """
        if not isinstance(key, str | bytes):
            raise TypeError(f"a key must be str or bytes, not {type(key).__name__}")
        value = await self.execute("GET", key)
        assert value is None or isinstance(value, bytes)
        return value

    async def execute(self, *args: str | bytes | float) -> _Reply:
        """Send one command now and give its reply.

        For reads: it may be sent again. As Client.execute(). Raises ServerError,
        ConnectionError, ProtocolError, and ValueError for commands that block or
        belong to transactions.
        """
        op = self._usable().read(*args)
        await drive(op, self._loop)
        if op.status == "CONFLICT":
            self._lost = True
            raise _core._AttemptEnded("the connection was lost")
        reply: _Reply = op.result()
        return reply

    def queue(self, *args: str | bytes | float) -> None:
        """Add a command to those that are run at the end, all together.

        Raises ValueError for commands that block or belong to transactions.
        """
        self._usable().queue(*args)

    def watch(self, *keys: str | bytes) -> None:
        """Watch more keys, from the next read on."""
        self._usable().watch(*keys)

    def abort(self) -> NoReturn:
        """End the transaction with nothing written and the result None.

        Does not return: it raises what only transaction() should catch.
        """
        self._usable()
        self._aborted = True
        raise _core._AttemptEnded("aborted")

    @property
    def conflicts(self) -> int:
        """How often the function was run before this time."""
        return self._usable().conflicts


async def drive(op: _core.Op, loop: asyncio.AbstractEventLoop) -> None:
    """Carry an op on a link of its own to its end."""
    if op.status != "PENDING":
        return
    driver = Driver(op.link(), loop)
    try:
        await driver.wait(op)
    finally:
        if not loop.is_closed():
            driver.close()


async def settled(value: Awaitable[_Value] | _Value) -> _Value:
    """Give what a function of either kind has returned."""
    if inspect.isawaitable(value):
        result: _Value = await value
        return result
    return value


def _nothing() -> None:
    """Free nothing."""


class Pool:
    """The connections of a client for transactions; who wants one waits in a queue.

    A transaction inside of another one's function would wait for itself: it gets one more.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, size: int) -> None:
        """Have so many."""
        self._loop = loop
        self._free = asyncio.Semaphore(size)
        self._leaving: set[asyncio.Future[None]] = set()

    async def run(
        self, make: Callable[[], _core.Attempts], function: Function
    ) -> list[_Reply] | None:
        """Run a function until its writes are committed. None: it has aborted."""
        if not callable(function):
            raise TypeError(f"transaction() needs a function, not {function!r}")
        attempts = make()  # what is not valid is refused at once
        if any(tx._pool is self and tx._open for tx in _inside.get()):
            return await self._run_and_leave(attempts, function, _nothing)
        if self._free.locked():
            attempts.close()
            await self._free.acquire()
            attempts = self._made(make)
        else:
            await self._free.acquire()
        return await self._run_and_leave(attempts, function, self._free.release)

    def _made(self, make: Callable[[], _core.Attempts]) -> _core.Attempts:
        """Make the transaction anew: its time begins when it has its connection."""
        try:
            return make()
        except BaseException:
            self._free.release()
            raise

    async def _run_and_leave(
        self, attempts: _core.Attempts, function: Function, free: Callable[[], None]
    ) -> list[_Reply] | None:
        try:
            return await self._run(attempts, function)
        finally:
            left = self._leave(attempts, free)
            if left is not None:
                await asyncio.shield(left)

    async def _run(self, attempts: _core.Attempts, function: Function) -> list[_Reply] | None:
        while True:
            op = attempts.begin()
            await drive(op, self._loop)
            op.result()
            tx = Transaction(attempts, self._loop, self)
            await self._call(function, tx)
            if tx._aborted:
                return None
            if tx._lost:
                continue
            op = attempts.commit()
            await drive(op, self._loop)
            if op.status != "CONFLICT":
                results: list[_Reply] = op.result()
                return results

    @staticmethod
    async def _call(function: Function, tx: Transaction) -> None:
        """Run the function once. What unwinds it is not let out."""
        token = _inside.set((*_inside.get(), tx))
        try:
            await settled(function(tx))
        except _core._AttemptEnded:
            if not (tx._aborted or tx._lost):
                raise
        finally:
            tx._open = False
            _inside.reset(token)

    def _leave(
        self, attempts: _core.Attempts, free: Callable[[], None]
    ) -> asyncio.Future[None] | None:
        """Give up what is left, then the connection; None: that is done."""
        op = attempts.unwatch()
        if op.status != "PENDING" or self._loop.is_closed():
            attempts.close()
            free()
            return None
        driver = Driver(op.link(), self._loop)
        left = driver.begin(op)

        def end(left: asyncio.Future[None]) -> None:
            driver.close()
            attempts.close()
            self._leaving.discard(left)
            free()

        self._leaving.add(left)
        left.add_done_callback(end)
        return left

    async def drain(self) -> None:
        """Wait until nothing is left of those that have ended."""
        while self._leaving:
            await asyncio.wait(list(self._leaving))
