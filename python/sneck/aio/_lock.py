"""The lock of the asyncio client.

A cancelled acquire leaves nothing: what the server has granted in the last moment is
released. A release goes on when whoever waits for it is cancelled.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sneck import _core
from sneck._lock import CommonOptions, Holder, Options, _attach, refuse_coroutine_function
from sneck.aio._body import Body

if TYPE_CHECKING:
    from typing_extensions import Self

    from sneck._core import _LockOptions
    from sneck.aio._client import Client
    from sneck.aio._driver import Driver

OnLost: TypeAlias = Callable[["Lock"], object] | Literal["cancel"] | None


class LockOptions(CommonOptions, total=False):
    """The options of a lock, for functions that pass them on."""

    on_lost: OnLost


class _Told(_core.Lock):
    """A lock that passes the news of its loss on to the loop."""

    __slots__ = ("__weakref__", "tell")
    tell: Callable[[], None]

    def _tell_lost(self) -> None:
        self.tell()


class Lock:
    """A named lock on a server, made by Client.lock() or Client.adopt().

    It is not re-entrant: acquiring it again waits, as for anybody else. Two tasks may
    share one; better, each has its own.
    """

    __slots__ = ("__weakref__", "_adopted", "_bodies", "_client", "_lock", "_options")

    def __init__(self, client: Client, name: str | bytes, options: Options) -> None:
        """Make a lock; use Client.lock()."""
        self._set(client, options)
        self._lock = self._make(name)
        self._listen()

    def _make(self, name: str | bytes) -> _core.Lock:
        return self._client._core._lock(self._kind(), name, _for_core(self._options))

    @classmethod
    def _adopt(
        cls, client: Client, name: str | bytes, token: str | bytes, options: Options
    ) -> Lock:
        """Make one that owns a token."""
        self = cls.__new__(cls)
        self._set(client, options)
        self._adopted = True
        self._lock = client._core._adopt(self._kind(), name, _for_core(options), token)
        self._listen()
        return self

    def _set(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options
        self._adopted = False
        self._bodies: dict[asyncio.Task[Any] | None, Body] = {}

    def _kind(self) -> type[_core.Lock]:
        return _core.Lock if self._options.on_lost is None else _Told

    def _listen(self) -> None:
        """Be told of the loss on the loop, as long as somebody has the lock."""
        if not isinstance(self._lock, _Told):
            return
        client, reference = self._client, weakref.ref(self)

        def deliver() -> None:
            lock = reference()
            if lock is not None:
                lock._is_lost()

        self._lock.tell = lambda: client._call_soon(deliver)

    def _is_lost(self) -> None:
        """Do what on_lost says, on the loop."""
        on_lost = self._options.on_lost
        if on_lost == "cancel":
            for task, body in self._bodies.items():
                if self._is_lost_to(task):
                    body.lose()
        elif on_lost is not None:
            on_lost(self)

    def _is_lost_to(self, _task: asyncio.Task[Any] | None) -> bool:
        """Tell whether that task has lost it."""
        return self._lock.lost

    def _lose_bodies(self) -> None:
        for body in self._bodies.values():
            body.lose()

    def _lose_bodies_of_others(self) -> None:
        """Cancel whoever is in a body still: the calling task has acquired the lock."""
        if self._bodies:
            task = asyncio.current_task()
            for other, body in self._bodies.items():
                if other is not task:
                    body.lose()

    # ------------------------------------------------------------- acquire, release

    async def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock and tell whether it is held now.

        Waits for `timeout` seconds at most; -1 means the lock's own `wait`, 0 and
        `blocking=False` mean one try. False: another owner had it to the end. Raises
        OutcomeUnknown when the reply was lost, ConnectionError, ServerError, and
        ValueError for a timeout that is not valid.
        """
        try:
            await self._acquire(blocking, timeout)
        except _core.LockTimeout:
            return False
        return True

    async def _acquire(self, blocking: bool, timeout: float) -> None:
        driver = self._client._driver()
        op = driver.link.acquire(self._lock, blocking, timeout)
        self._adopted = False
        try:
            await driver.wait(op)
        except BaseException:
            if op.status == "OK":
                driver.begin(driver.link.release_lease(self._lock, op.lease))
            raise
        if op.status == "OK" and self._client._closed:  # it was too late to be cancelled
            driver.begin(driver.link.release_lease(self._lock, op.lease))
            raise _core.Interrupted(f"lock {self.name!r}: the client is closed; connect again")
        op.result()
        self._lock._set_body(self._client._owners.calling(), op.lease)
        self._lose_bodies_of_others()

    async def release(self) -> None:
        """Release the lock. It is released even if the task is cancelled meanwhile.

        Raises NotOwned when it is not held, or was lost meanwhile, and OutcomeUnknown,
        ConnectionError or ServerError, after which it can be called again.
        """
        await self._leave(None)

    async def extend(self, ttl: float | None = None) -> None:
        """Set the time that the lease has left.

        `ttl` is in seconds, None for the lock's own. Raises NotOwned when the lock is
        not held, or was lost, and OutcomeUnknown, ConnectionError, ServerError or
        ValueError.
        """
        driver = self._client._driver()
        op = driver.link.extend(self._lock, ttl)
        await driver.wait(op)
        op.result()

    async def holder(self) -> Holder | None:
        """Ask the server who holds the lock; None when it is free.

        Raises ConnectionError and ServerError.
        """
        driver = self._client._driver()
        op = driver.link.holder(self._lock)
        await driver.wait(op)
        fields: Any = op.result()
        return None if fields is None else Holder(*fields)

    async def locked(self) -> bool:
        """Ask the server whether anybody holds the lock.

        Raises ConnectionError and ServerError.
        """
        return await self.holder() is not None

    async def force_release(self) -> bool:
        """Take the lock away from whoever holds it and tell whether it was held.

        As Client.force_release(), and for timestamp locks, which that does not know.
        Raises OutcomeUnknown when the reply was lost, ConnectionError and ServerError.
        """
        driver = self._client._driver()
        op = driver.link.force_release(self._lock)
        await driver.wait(op)
        was_held: bool = op.result()
        return was_held

    # ------------------------------------------------------------- async with

    async def __aenter__(self) -> Self:
        """Acquire the lock, or confirm an adopted one, and renew it.

        Raises LockTimeout when `wait` ends, and NotOwned when an adopted lock is not
        ours.
        """
        owner = self._client._owners.calling()
        self._lock._begin_body(owner)
        try:
            await self._take(owner)
        except BaseException:
            self._lock._end_body(owner)
            raise
        if self._lock._outermost:
            await self._begin_body()
        return self

    async def _take(self, owner: int) -> None:
        if not self._adopted or self._lock.token is None:
            await self._acquire(True, -1)
            return
        driver = self._client._driver()
        op = driver.link.extend(self._lock, None)
        await driver.wait(op)
        op.result()
        self._lock._set_body(owner, op.lease)

    async def _begin_body(self) -> None:
        if self._options.renew is None or self._options.renew:
            await self._renew()
        if self._options.on_lost == "cancel":
            self._enter_body()

    async def _renew(self) -> None:
        """Have it renewed; a body that cannot be kept safe does not begin."""
        try:
            self._lock.keep_alive()
        except Exception as error:
            await self._leave_after(error, self._end_body())
            raise

    def _end_body(self) -> int | None:
        """Give the number of the lease of the task's body; None where it has none."""
        return self._lock._end_body(self._client._owners.calling())

    def _enter_body(self) -> None:
        self._lose_bodies()  # whoever is in a body of this lock still has lost it
        task = asyncio.current_task()
        assert task is not None
        self._bodies[task] = Body(task)
        if self._lock.lost:
            self._bodies[task].lose()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock.

        Raises NotOwned when it was lost meanwhile, and whatever release() raises.
        When the body raised, its exception goes on and tells of the loss.
        """
        lease = self._end_body()
        body = None
        if self._bodies and self._lock._outermost:
            body = self._bodies.pop(asyncio.current_task(), None)
        if body is not None and body.lost:
            await self._leave_lost(body, error, lease)
        elif error is None:
            await self._leave(lease)
        else:
            await self._leave_after(error, lease)

    def _start_leaving(self, driver: Driver, lease: int | None) -> _core.Op:
        """Release that lease, and nothing that another task has acquired since."""
        if lease is None:
            return driver.link.release(self._lock)
        return driver.link.release_lease(self._lock, lease)

    async def _leave(self, lease: int | None) -> None:
        driver = self._client._driver()
        op = self._start_leaving(driver, lease)
        await driver.finish(op)
        op.result()

    async def _leave_after(self, error: BaseException, lease: int | None) -> None:
        try:
            await self._leave(lease)
        except Exception as loss:  # noqa: BLE001 - whatever it is, the body's comes first
            _attach(error, loss)

    async def _leave_lost(self, body: Body, error: BaseException | None, lease: int | None) -> None:
        """End a body that was cancelled for its lock's loss."""
        alone = await body.take_back(error)
        if not self._client._closed:
            driver = self._client._driver()
            driver.begin(self._start_leaving(driver, lease))  # maybe it is ours still
        loss = _core.NotOwned(
            f"lock {self.name!r}: lost while its body ran, which was cancelled; "
            "acquire it anew and look at what was done"
        )
        if error is not None and not isinstance(error, asyncio.CancelledError):
            _attach(error, loss)
        elif alone:
            raise loss from error
        elif error is None:
            raise asyncio.CancelledError

    # ------------------------------------------------------------- what is known, asking nobody

    def clone(self) -> Self:
        """Make another lock of the same name and options, which owns nothing."""
        return type(self)(self._client, self.name, self._options)

    def keep_alive(self, on: bool = True) -> None:
        """Begin to renew a lock that is held, or end it. Raises NotOwned."""
        self._lock.keep_alive(on)

    def remaining(self) -> float:
        """Tell for how many seconds the lock is surely ours."""
        return self._lock.remaining()

    @property
    def name(self) -> str | bytes:
        """The name, as it was given."""
        return self._lock.name

    @property
    def ttl(self) -> float:
        """For how many seconds the server keeps the lock."""
        return self._lock.ttl

    @property
    def owned(self) -> bool:
        """Whether the lock is surely ours now."""
        return self._lock.owned

    @property
    def lost(self) -> bool:
        """Whether the lock was lost since it was acquired."""
        return self._lock.lost

    @property
    def lease(self) -> Literal["none", "held", "uncertain", "lost"]:
        """What is known of the lease."""
        return self._lock.lease

    @property
    def fence(self) -> int | None:
        """A number greater than that of every acquire before; None without one."""
        return self._lock.fence

    @property
    def token(self) -> bytes | None:
        """The proof of ownership, for adopt(); None without one."""
        return self._lock.token

    def __repr__(self) -> str:
        """Name the lock and tell whether it is owned."""
        return (
            f"<sneck.aio.{type(self).__name__} {self.name!r} "
            f"{'owned' if self.owned else 'not owned'}>"
        )


class LegacyLock(Lock):
    """A timestamp lock, made by Client.legacy_lock().

    Its ttl is its timeout, and its token is not for adopt().
    """

    __slots__ = ("_milliseconds",)

    def __init__(
        self, client: Client, name: str | bytes, options: Options, milliseconds: bool
    ) -> None:
        """Make a lock; use Client.legacy_lock()."""
        self._milliseconds = milliseconds
        super().__init__(client, name, options)

    def _make(self, name: str | bytes) -> _core.Lock:
        return self._client._core._legacy_lock(
            self._kind(), name, _for_core(self._options), self._milliseconds
        )

    def clone(self) -> Self:
        """Make another lock of the same name and options, which owns nothing."""
        return type(self)(self._client, self.name, self._options, self._milliseconds)


def _for_core(options: Options) -> _LockOptions:
    """Give the options as `_core` takes them. Raises TypeError."""
    on_lost = options.on_lost
    if on_lost is not None and on_lost != "cancel" and not callable(on_lost):
        raise TypeError(f'on_lost must be callable, "cancel" or None, not {on_lost!r}')
    if callable(on_lost):
        refuse_coroutine_function(on_lost)
    return (*options[:-1], on_lost is not None)
