"""A link on an event loop: who watches its descriptors, steps it, and tells who waits.

The loop's readers, writers, one timer and call_soon() do all; nothing polls, and no
thread is started. Calls that are started or cancelled in one turn of the loop leave in
one step, the next turn. An op that is under way is held here, and so is what waits for
it; so the loop, which holds the driver by what it watches, keeps all of them alive.

The descriptors are read anew after every call that may have changed them, as the link
demands: a closed one's number may be given to somebody else at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable

from sneck import _core


class Driver:
    """Drives one link on one loop; all of it belongs to the loop's thread."""

    __slots__ = (
        *("_context", "_drained", "_due", "_generation", "_going", "_loop", "_soon", "_timer"),
        *("_waiting", "_watched", "link"),
    )

    def __init__(self, link: _core.Link, loop: asyncio.AbstractEventLoop) -> None:
        """Watch nothing yet: a link has no descriptor before its first call."""
        self.link = link
        self._loop = loop
        self._context = contextvars.Context()  # no task's: what is kept here would keep it
        self._waiting: dict[_core.Op, asyncio.Future[None]] = {}  # cancelled with their tasks
        self._going: dict[_core.Op, asyncio.Future[None]] = {}  # cancelled by nobody
        self._watched: dict[int, tuple[bool, bool]] = {}
        self._generation = link.generation
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # when it fires
        self._drained: asyncio.Future[None] | None = None

    def begin(self, op: _core.Op) -> asyncio.Future[None]:
        """Carry an op to its end, whatever happens, and give what is done then."""
        return self._add(op, self._going)

    def _add(self, op: _core.Op, ops: dict[_core.Op, asyncio.Future[None]]) -> asyncio.Future[None]:
        future = self._loop.create_future()
        if op.status == "PENDING":
            ops[op] = future
        else:
            future.set_result(None)
        self._wake()
        return future

    async def wait(self, op: _core.Op) -> None:
        """Wait until an op has ended; it is cancelled with the task that waits."""
        try:
            await self._add(op, self._waiting)
        except BaseException:
            self._waiting.pop(op, None)
            op.cancel()
            if not self._loop.is_closed():
                self._wake()
            raise

    async def finish(self, op: _core.Op) -> None:
        """Wait until an op has ended; it goes on when the task is cancelled."""
        await self.begin(op)  # which only the future learns of

    def interrupt(self) -> None:
        """End all that waits."""
        for op in list(self._waiting):
            op.cancel()
            self._tell(op)

    async def drain(self) -> None:
        """End all that waits, and wait until nothing is left of it."""
        self.interrupt()
        await asyncio.sleep(0)  # whoever has waited may leave something behind
        while self._going or not self.link.quiet:
            self._drained = self._loop.create_future()
            self._wake()
            await self._drained

    def close(self) -> None:
        """Close the link, and watch nothing any more."""
        self._unwatch()
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._soon = self._timer = None
        self.link.close()

    # ------------------------------------------------------------- a turn of the loop

    def _wake(self) -> None:
        """Have the link stepped in the loop's next turn."""
        if self.link.generation != self._generation:
            self._watch()
        if self._soon is None:
            self._soon = self._loop.call_soon(self._woken, context=self._context)

    def _woken(self) -> None:
        self._soon = None
        self._step()

    def _fired(self) -> None:
        self._timer = None
        self._step()

    def _step(self) -> None:
        self.link.step()
        while (op := self.link.ended()) is not None:
            self._tell(op)
        self._watch()
        self._set_timer()
        if self._drained is not None and not self._going and self.link.quiet:
            _wake_up(self._drained)
            self._drained = None

    def _tell(self, op: _core.Op) -> None:
        future = self._waiting.pop(op, None) or self._going.pop(op, None)
        if future is not None:
            _wake_up(future)

    # ------------------------------------------------------------- what the loop watches

    def _watch(self) -> None:
        """Have the loop watch what the link wants now."""
        generation = self.link.generation
        if generation != self._generation:
            self._unwatch()
            self._generation = generation
        for fd, reads, writes in self.link.fds():
            self._watch_one(fd, reads, writes)

    def _watch_one(self, fd: int, reads: bool, writes: bool) -> None:
        had_reads, had_writes = self._watched.get(fd, (False, False))
        if reads and not had_reads:
            self._loop.add_reader(fd, self._step)
        elif had_reads and not reads:
            self._loop.remove_reader(fd)
        if writes and not had_writes:
            self._loop.add_writer(fd, self._step)
        elif had_writes and not writes:
            self._loop.remove_writer(fd)
        self._watched[fd] = reads, writes

    def _unwatch(self) -> None:
        for fd, (reads, writes) in self._watched.items():
            if reads:
                _remove(self._loop.remove_reader, fd)
            if writes:
                _remove(self._loop.remove_writer, fd)
        self._watched.clear()

    def _set_timer(self) -> None:
        """See that the link is stepped in time; a timer that comes too early does no harm."""
        timeout = self.link.timeout()
        if timeout is None:
            return
        due = self._loop.time() + timeout
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_at(due, self._fired, context=self._context)


def _remove(remove: Callable[[int], bool], fd: int) -> None:
    """Have the loop not watch a descriptor that may be closed already.

    One that was watched for both is to be changed in the selector, which fails. The loop has
    forgotten it then.
    """
    with contextlib.suppress(OSError):
        remove(fd)


def _wake_up(future: asyncio.Future[None]) -> None:
    """Wake whoever waits, unless it was cancelled."""
    if not future.done():
        future.set_result(None)
