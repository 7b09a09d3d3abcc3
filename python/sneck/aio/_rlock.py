"""The lock that its task may acquire again: a lock of its own for each task, and a count."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sneck import _core
from sneck._lock import Options, _attach
from sneck.aio._lock import Lock

if TYPE_CHECKING:
    from typing_extensions import Self

    from sneck.aio._client import Client


class _Held:
    """A task's lock, and how often it has it."""

    __slots__ = ("count", "lock")

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        self.count = 1


class RLock:
    """A lock that its task may acquire again, made by Client.rlock().

    It is released when it was released as often. What it tells (`owned`, `token`,
    `lease` and the like) is the calling task's; tasks exclude each other.
    """

    __slots__ = ("__weakref__", "_held", "_plain")

    def __init__(self, client: Client, name: str | bytes, options: Options) -> None:
        """Make a lock; use Client.rlock()."""
        self._plain = Lock(client, name, options)  # answers for tasks that have none
        self._held: dict[asyncio.Task[Any] | None, _Held] = {}

    def _mine(self) -> _Held | None:
        return self._held.get(asyncio.current_task()) if self._held else None

    def _lock(self) -> Lock:
        held = self._mine()
        return self._plain if held is None else held.lock

    def _lost(self) -> _core.NotOwned:
        return _core.NotOwned(
            f"lock {self.name!r}: lost, or not held by this task; release it as often as "
            "it was acquired, then acquire it anew"
        )

    def _again(self) -> bool:
        """Count, if the task has it. Raises NotOwned when that was lost."""
        held = self._mine()
        if held is None:
            return False
        if not held.lock.owned:
            raise self._lost()
        held.count += 1
        return True

    def _leave_inner(self) -> bool:
        """Count back. False: it is the outermost, and to be released."""
        held = self._mine()
        if held is None:
            raise self._lost()
        if held.count == 1:
            return False
        held.count -= 1
        if not held.lock.owned:
            raise self._lost()
        return True

    def _keep(self, lock: Lock) -> None:
        self._held[asyncio.current_task()] = _Held(lock)

    def _drop(self) -> Lock:
        return self._held.pop(asyncio.current_task()).lock

    async def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock, as Lock.acquire(); without I/O if the task has it.

        Raises NotOwned when the task has it, but has lost it.
        """
        if self._again():
            return True
        lock = self._plain.clone()
        acquired = await lock.acquire(blocking, timeout)
        if acquired:
            self._keep(lock)
        return acquired

    async def release(self) -> None:
        """Undo the task's last acquire, as Lock.release() if that was the first one."""
        if self._leave_inner():
            return
        lock = self._drop()
        try:
            await lock.release()
        except _core.NotOwned:
            raise
        except _core.Error:
            self._keep(lock)  # it can be released again
            raise

    async def extend(self, ttl: float | None = None) -> None:
        """Set the time that the lease has left, as Lock.extend()."""
        await self._lock().extend(ttl)

    async def __aenter__(self) -> Self:
        """Acquire the lock, and renew it, as Lock does."""
        if not self._again():
            lock = self._plain.clone()
            await lock.__aenter__()
            self._keep(lock)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock, as Lock does."""
        try:
            inner = self._leave_inner()
        except _core.NotOwned as loss:
            if error is None:
                raise
            _attach(error, loss)
            return
        if not inner:
            await self._drop().__aexit__(kind, error, traceback)

    @property
    def name(self) -> str | bytes:
        """The name, as it was given."""
        return self._plain.name

    @property
    def owned(self) -> bool:
        """Whether the lock is surely this task's now."""
        return self._lock().owned

    @property
    def lost(self) -> bool:
        """Whether the lock was lost since this task has acquired it."""
        return self._lock().lost

    @property
    def token(self) -> bytes | None:
        """The proof of ownership; None without one."""
        return self._lock().token

    @property
    def fence(self) -> int | None:
        """A number greater than that of every acquire before; None without one."""
        return self._lock().fence

    def remaining(self) -> float:
        """Tell for how many seconds the lock is surely this task's."""
        return self._lock().remaining()
