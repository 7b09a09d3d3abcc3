"""The steps of one transaction: one after the other, each driven until it ends.

Whoever ends the transaction early, its function or its client, ends the step under way
first, through what drives it: a step that ends otherwise would leave a descriptor that
the loop still watches, and a task that nobody wakes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sneck import _core
from sneck.aio._driver import Driver


class Steps:
    """Takes the steps, and gives up what the last one leaves: watches and a turn."""

    __slots__ = ("_attempts", "_closed", "_driver", "_end", "_left", "_loop")

    def __init__(
        self,
        attempts: _core.Attempts,
        loop: asyncio.AbstractEventLoop,
        end: Callable[[Steps], None],
    ) -> None:
        """Take none yet. `end` is called when nothing is left."""
        self._attempts = attempts
        self._loop = loop
        self._end = end
        self._closed = False
        self._driver: Driver | None = None  # of the step under way
        self._left: asyncio.Future[None] | None = None

    def usable(self) -> _core.Attempts:
        """Give the transaction. Raises Interrupted when the client was closed."""
        if self._closed:
            raise _core.Interrupted("transaction: the client is closed; connect again")
        return self._attempts

    async def take(self, start: Callable[..., _core.Op], *args: str | bytes | float) -> _core.Op:
        """Start a step, and give it when it has ended. Raises RuntimeError within another."""
        self.usable()
        if self._driver is not None:
            raise RuntimeError(
                "transaction: another call of it is under way; make one call at a time"
            )
        op = start(*args)
        if op.status == "PENDING":
            await self._drive(op)
        return op

    async def _drive(self, op: _core.Op) -> None:
        driver = self._driver = Driver(op.link(), self._loop)
        try:
            await driver.wait(op)
        finally:
            if self._driver is driver:
                self.stop()

    def stop(self) -> bool:
        """End the step under way, and tell whether there is one."""
        driver, self._driver = self._driver, None
        if driver is not None and not self._loop.is_closed():
            driver.interrupt()
            driver.close()
        return driver is not None

    def close(self) -> None:
        """End it all, for its client is closed."""
        self._closed = True
        self.leave()

    def leave(self) -> asyncio.Future[None]:
        """Give up what is left, and give what is done then."""
        if self._left is None:
            self._left = self._leave()
        return self._left

    def _leave(self) -> asyncio.Future[None]:
        self.stop()
        op = self._attempts.unwatch()
        if op.status != "PENDING" or self._loop.is_closed():
            self._free()
            left = self._loop.create_future()
            left.set_result(None)
            return left
        driver = Driver(op.link(), self._loop)
        left = driver.begin(op)
        left.add_done_callback(lambda _: self._free(driver))
        return left

    def _free(self, driver: Driver | None = None) -> None:
        if driver is not None:
            driver.close()
        self._attempts.close()
        self._end(self)
