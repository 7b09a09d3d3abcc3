"""The body of an `async with` that ends when its lock is lost: on_lost="cancel".

As asyncio.timeout() does it: the task is cancelled, and the cancellation taken back when
it comes out of the body. If the task was cancelled by others, too, theirs goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Any


class Body:
    """One run of a body in its task."""

    __slots__ = ("_before", "_task", "lost")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        """Note who cancels the task already."""
        self._task = task
        self._before = _cancelling(task)
        self.lost = False

    def lose(self) -> None:
        """Cancel the task, once."""
        if not self.lost:
            self.lost = True
            self._task.cancel()

    async def take_back(self, error: BaseException | None) -> bool:
        """Take our cancellation back, and tell whether nobody else has cancelled the task.

        A body that had ended anyway did not get it; it is waited for, so that it does
        not strike what comes later.
        """
        if not isinstance(error, asyncio.CancelledError):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        return _uncancel(self._task) <= self._before


if sys.version_info >= (3, 11):

    def _cancelling(task: asyncio.Task[Any]) -> int:
        return task.cancelling()

    def _uncancel(task: asyncio.Task[Any]) -> int:
        return task.uncancel()

else:  # nothing tells who has cancelled a task: it is taken to be us alone

    def _cancelling(_task: asyncio.Task[Any]) -> int:
        return 0

    def _uncancel(_task: asyncio.Task[Any]) -> int:
        return 0
