"""The lock that its task may acquire again: the library counts, by the task's number."""

from __future__ import annotations

import asyncio
import itertools
import weakref
from typing import Any

from sneck import _core
from sneck.aio._lock import Lock, _for_core


class Owners:
    """The numbers of a client's tasks, of which none is given twice."""

    __slots__ = ("_numbers", "_others", "_unused")

    def __init__(self) -> None:
        """Know no task."""
        self._unused = itertools.count(1)
        self._numbers: weakref.WeakKeyDictionary[asyncio.Task[Any], int] = (
            weakref.WeakKeyDictionary()
        )
        self._others: asyncio.Task[Any] | None = None

    def calling(self) -> int:
        """Give the number of the task that calls; 0 outside of any."""
        task = self._others or _current_task()
        if task is None:
            return 0
        number = self._numbers.get(task)
        if number is None:
            number = self._numbers[task] = next(self._unused)
        return number

    def is_lost_to(self, task: asyncio.Task[Any] | None, lock: _core.Lock) -> bool:
        """Tell whether another task has lost a lock."""
        self._others = task
        try:
            return lock.lost
        finally:
            self._others = None


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs
        return None


class RLock(Lock):
    """A lock that its task may acquire again, made by Client.rlock().

    It is released when it was released as often. What it tells (`owned`, `token`,
    `lease` and the like) is the calling task's; tasks exclude each other.
    """

    __slots__ = ()

    def _make(self, name: str | bytes) -> _core.Lock:
        client, options = self._client, _for_core(self._options)
        return client._core._rlock(self._kind(), name, options, client._owners.calling)

    def _is_lost_to(self, task: asyncio.Task[Any] | None) -> bool:
        return self._client._owners.is_lost_to(task, self._lock)
