"""Transactions of the asyncio client: the attempts, and what their function gets.

Each runs on a connection of its own from begin to commit. What it leaves behind, watches
and its turn, is given up at its end also when the task was cancelled; its connection is
free for the next one after that.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

from sneck import _core
from sneck.aio._steps import Steps

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

    __slots__ = ("_aborted", "_lost", "_open", "_pool", "_steps")

    def __init__(self, steps: Steps, pool: object) -> None:
        """Make one for one run of the function."""
        self._steps = steps
        self._pool = pool
        self._open = True
        self._aborted = self._lost = False

    def _usable(self) -> _core.Attempts:
        self._refuse_when_ended()
        if self._aborted:
            raise _core._AttemptEnded("aborted")
        return self._steps.usable()

    def _refuse_when_ended(self) -> None:
        if not self._open:
            raise RuntimeError("transaction: its function has ended; use it inside of that only")

    @property
    def _over(self) -> bool:
        return self._aborted or self._lost

    def _end(self) -> bool:
        """Let nothing more be done with it; tell whether a call was under way."""
        self._open = False
        return self._steps.stop()

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
        op = await self._steps.take(self._usable().read, *args)
        self._refuse_when_ended()
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

    def _put(self, key: str | bytes, value: bytes | None, ttl_ms: int) -> None:
        """Add a key's new value to them; None deletes it, and 0 keeps its expiry."""
        self._usable().put(key, value, ttl_ms)

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


async def settled(value: Awaitable[_Value] | _Value) -> _Value:
    """Give what a function of either kind has returned."""
    if inspect.isawaitable(value):
        result: _Value = await value
        return result
    return value


def _unwinds(error: BaseException) -> bool:
    """Tell whether that is what ends an attempt, or what a group of tasks makes of it."""
    inside = getattr(error, "exceptions", None)  # a group's, as Python 3.10 gets it from PyPI, too
    if isinstance(inside, tuple) and inside:
        return all(_unwinds(each) for each in inside)
    return isinstance(error, _core._AttemptEnded)


class Pool:
    """The connections of a client for transactions; who wants one waits in a queue.

    A transaction inside of another one's function would wait for itself: it gets one more.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, size: int) -> None:
        """Have so many."""
        self._loop = loop
        self._free = asyncio.Semaphore(size)
        self._queued = 0
        self._closed = False
        self._active: set[Steps] = set()

    async def run(
        self, make: Callable[[], _core.Attempts], function: Function
    ) -> list[_Reply] | None:
        """Run a function until its writes are committed. None: it has aborted."""
        if not callable(function):
            raise TypeError(f"transaction() needs a function, not {function!r}")
        attempts = make()  # what is not valid is refused at once
        if any(tx._pool is self and tx._open for tx in _inside.get()):
            return await self._run_and_leave(attempts, function, self._end)
        if self._free.locked():
            attempts.close()
            await self._queue()
            attempts = self._made(make)
        else:
            await self._free.acquire()
        return await self._run_and_leave(attempts, function, self._end_and_free)

    async def _queue(self) -> None:
        """Wait for a connection."""
        self._queued += 1
        try:
            await self._free.acquire()
        finally:
            self._queued -= 1

    def _made(self, make: Callable[[], _core.Attempts]) -> _core.Attempts:
        """Make the transaction anew: its time begins when it has its connection."""
        try:
            if self._closed:
                raise _core.Interrupted("transaction: the client is closed; connect again")
            return make()
        except BaseException:
            self._free.release()
            raise

    async def _run_and_leave(
        self, attempts: _core.Attempts, function: Function, end: Callable[[Steps], None]
    ) -> list[_Reply] | None:
        steps = Steps(attempts, self._loop, end)
        self._active.add(steps)
        try:
            return await self._run(attempts, steps, function)
        finally:
            await asyncio.shield(steps.leave())

    def _end(self, steps: Steps) -> None:
        self._active.discard(steps)

    def _end_and_free(self, steps: Steps) -> None:
        self._active.discard(steps)
        self._free.release()

    async def _run(
        self, attempts: _core.Attempts, steps: Steps, function: Function
    ) -> list[_Reply] | None:
        while True:
            op = await steps.take(attempts.begin)
            op.result()
            tx = Transaction(steps, self)
            await self._call(function, tx)
            if tx._aborted:
                return None
            if tx._lost:
                continue
            op = await steps.take(attempts.commit)
            if op.status != "CONFLICT":
                results: list[_Reply] = op.result()
                return results

    @staticmethod
    async def _call(function: Function, tx: Transaction) -> None:
        """Run the function once. What unwinds it is not let out."""
        token = _inside.set((*_inside.get(), tx))
        try:
            await settled(function(tx))
        except BaseException as error:
            if not (tx._over and _unwinds(error)):
                raise
        finally:
            left = tx._end()
            _inside.reset(token)
        if left and not tx._over:
            raise RuntimeError(
                "transaction: its function has ended within a call of it; await it there"
            )

    def close(self) -> None:
        """End all transactions."""
        self._closed = True
        for steps in list(self._active):
            steps.close()
        for _ in range(self._queued):
            self._free.release()  # each learns that it is closed

    async def drain(self) -> None:
        """Wait until nothing is left of them."""
        while self._active:
            await asyncio.wait([steps.leave() for steps in list(self._active)])
