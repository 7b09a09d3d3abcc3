"""The asyncio client, and how it is made."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sneck import _core
from sneck._client import DEFAULT_ATTEMPTS, DEFAULT_WAIT, KEEP, Keep, Stats, url_tuple
from sneck._lock import Options, Waiter
from sneck.aio._decorator import Decorator, decorator
from sneck.aio._driver import Driver
from sneck.aio._lock import LegacyLock, Lock, LockOptions, OnLost
from sneck.aio._rlock import Owners, RLock
from sneck.aio._transaction import Function, Pool, Transaction, settled

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sneck._core import _Reply

Value = str | bytes | float


class Client:
    """The connections to one server, made by connect(), or to several, made by quorum().

    It belongs to the event loop in which it is first used.
    """

    __slots__ = (
        *("__weakref__", "_closed", "_closing", "_connections", "_core", "_drives", "_loop"),
        *("_owners", "_pool"),
    )

    def __init__(self, core: _core.Client, connections: int) -> None:
        """Make a client; use connect()."""
        self._core = core
        self._connections = connections
        self._closed = False
        self._closing: asyncio.Task[None] | None = None
        self._owners = Owners()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drives: Driver | None = None
        self._pool: Pool | None = None

    # ------------------------------------------------------------- its loop

    def _bind(self) -> asyncio.AbstractEventLoop:
        """Give the loop that runs; the first one is the client's. Raises RuntimeError."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError(
                "this client belongs to another event loop; "
                "make one with sneck.aio.connect() for each loop"
            )
        if self._closed:
            raise ValueError("the client is closed; connect again")
        return loop

    def _driver(self) -> Driver:
        """Give what drives the link of all locks."""
        loop = self._bind()
        if self._drives is None:
            self._drives = Driver(self._core._link(), loop)
        return self._drives

    def _transactions(self) -> Pool:
        loop = self._bind()
        if self._pool is None:
            self._pool = Pool(loop, self._connections)
        return self._pool

    def _call_soon(self, function: Callable[[], None]) -> None:
        """Have the loop call a function; from any thread."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function)
        except RuntimeError:  # the loop is closed: nobody is left to be told
            pass

    # ------------------------------------------------------------- locks

    def lock(
        self,
        name: str | bytes,
        *,
        ttl: float = 10.0,
        wait: float | None = None,
        label: str | None = None,
        fair: bool = False,
        poll: float = 0.05,
        renew: bool | None = None,
        max_hold: float | None = None,
        fence: bool = False,
        on_lost: OnLost = None,
    ) -> Lock:
        """Make a lock; nothing is sent yet.

        The server keeps it for `ttl` seconds. `async with` and acquire() wait for
        `wait` seconds at most, None for ever, 0 not at all. `label` tells others who
        has the lock, in place of the client's. A `fair` lock never takes a free lock
        before those who wait. Where no wake-up can come, a waiter asks after every
        `poll` seconds.

        `async with` renews the lock until its end, acquire() does not; `renew` says so
        for both. It is renewed for `max_hold` seconds at most, None for ever, by a
        thread: a loop that is blocked does not lose it. When the lock is lost all the
        same, `on_lost`, no coroutine function, is called with it, on the loop; or, where
        it is "cancel", the body of `async with` is cancelled, which raises NotOwned then.
        With `fence` each acquire gets a number greater than those before.

        Raises ValueError and TypeError.
        """
        options = Options(ttl, wait, label, fair, poll, renew, max_hold, fence, on_lost)
        return Lock(self, name, options)

    def legacy_lock(
        self,
        name: str | bytes,
        *,
        timeout: float = 10.0,
        wait: float | None = None,
        label: str | None = None,
        poll: float = 0.05,
        renew: bool | None = None,
        max_hold: float | None = None,
        on_lost: OnLost = None,
        milliseconds: bool = False,
    ) -> LegacyLock:
        """Make a timestamp lock, whose key holds the Unix time at which it runs out.

        For older clients that use SETNX and GETSET: it excludes them, and they exclude
        it. It is held for `timeout` seconds, by the server's clock. Who waits for it
        asks after every `poll` seconds. With `milliseconds` the key holds these: beside
        older clients that write them, and take seconds for a time that is over. The
        other options are those of lock(). Raises ValueError and TypeError.
        """
        options = Options(timeout, wait, label, False, poll, renew, max_hold, False, on_lost)
        return LegacyLock(self, name, options, milliseconds)

    def adopt(self, name: str | bytes, token: str | bytes, **options: Unpack[LockOptions]) -> Lock:
        """Make a lock that owns a token handed over by whoever acquired it.

        Nothing is sent, so nothing is known of its lease until extend() or `async with`
        confirms it. Options as for lock(). Raises ValueError and TypeError.
        """
        return Lock._adopt(self, name, token, Options(**options))

    def rlock(self, name: str | bytes, **options: Unpack[LockOptions]) -> RLock:
        """Make a lock that the task that has it may acquire again.

        Options as for lock(). Raises ValueError and TypeError.
        """
        return RLock(self, name, Options(**options))

    def locked(self, name: str, **options: Unpack[LockOptions]) -> Decorator:
        """Decorate a coroutine function to run under a lock, a new one for each call.

        `name` is a format of the call's arguments, such as "reports:{id}". Calls
        raise as `async with` does. Options as for lock(). Raises TypeError for what
        is no coroutine function.
        """
        given = Options(**options)
        return decorator(name, lambda key: Lock(self, key, given))

    async def waiters(self, name: str | bytes) -> list[Waiter]:
        """Ask the server who waits for a lock, the next one first, 1,000 at most.

        Raises ConnectionError, ServerError, ValueError and TypeError.
        """
        driver = self._driver()
        op = driver.link.waiters(self.lock(name)._lock)
        await driver.wait(op)
        return [Waiter(*fields) for fields in op.result()]

    async def force_release(self, name: str | bytes) -> bool:
        """Take a lock away from whoever holds it and tell whether it was held.

        Whoever waits first has it then. This is for people who know that the holder
        is gone: one that is not learns of it only at its release. Raises
        OutcomeUnknown when the reply was lost, ConnectionError, ServerError,
        ValueError and TypeError.
        """
        return await self.lock(name).force_release()

    async def try_lock(
        self, key: str | bytes, value: str | bytes, expire_ms: int, timeout_ms: int | None = 0
    ) -> bool:
        """Do `SET key value NX PX expire_ms` until it succeeds, and tell whether it did.

        As sneck.Client.try_lock(). A task that is cancelled while a request is under way
        may leave the value until it expires, since it may be another's as well.
        """
        driver = self._driver()
        op = driver.link.try_lock(key, value, expire_ms, timeout_ms)
        try:
            await driver.wait(op)
        except BaseException:
            if op.status == "OK":
                driver.begin(driver.link.release_lock(key, value))
            raise
        return _told(op, "BUSY", "TIMEOUT")

    async def release_lock(self, key: str | bytes, value: str | bytes) -> bool:
        """Release what try_lock() took, if the key still holds the value; tell whether it did.

        As sneck.Client.release_lock(). It is done even if the task is cancelled meanwhile.
        """
        driver = self._driver()
        op = driver.link.release_lock(key, value)
        await driver.finish(op)
        return _told(op, "NOT_OWNER")

    async def execute(self, *args: Value) -> _Reply:
        """Send one command and give its reply.

        Arguments and replies as for sneck.Client.execute(). Commands that block, such as
        BLPOP, hold up all locks of the client. Raises ServerError, OutcomeUnknown when
        the reply was lost, ConnectionError, ProtocolError, and ValueError for commands
        that would change the connection.
        """
        driver = self._driver()
        op = driver.link.execute(*args)
        await driver.wait(op)
        reply: _Reply = op.result()
        return reply

    # ------------------------------------------------------------- compare and set

    async def transaction(
        self,
        function: Function,
        *keys: str | bytes,
        attempts: int = DEFAULT_ATTEMPTS,
        wait: float | None = DEFAULT_WAIT,
        guard: Lock | None = None,
    ) -> list[_Reply] | None:
        """Run a function that reads and queues writes, and write all or nothing.

        As sneck.Client.transaction(). `function` gets a Transaction, whose get() and
        execute() are awaited; so one that reads is a coroutine function, and a plain one
        can queue, watch and abort. `wait` begins when the transaction has a connection:
        the client has `connections` of them, and gives them in the order of the calls.
        """
        lock = _lock_of(guard)
        return await self._transactions().run(
            lambda: self._core._attempts(keys, attempts, wait, lock), function
        )

    async def update(
        self,
        key: str | bytes,
        function: Callable[[bytes | None], Awaitable[Value | Keep | None] | Value | Keep | None],
        *,
        ttl: float | None = None,
        attempts: int = DEFAULT_ATTEMPTS,
        wait: float | None = DEFAULT_WAIT,
        guard: Lock | None = None,
    ) -> bytes | None:
        """Change the string at a key by a function of it, and give what it is then.

        `function` gets the old value, None when the key is absent, and returns the new
        one, None to delete the key, or KEEP to leave it; it may be a coroutine function.
        It is run again when another client has changed the key meanwhile. The key keeps
        its expiry unless `ttl` (seconds) sets one. Options and exceptions as for
        transaction().
        """
        if not callable(function):
            raise TypeError(f"update() needs a function, not {function!r}")
        ttl_ms = _ttl_ms(ttl)
        result: bytes | None = None

        async def change(tx: Transaction) -> None:
            nonlocal result
            old = await tx.get(key)
            new: Any = await settled(function(old))
            result = old if new is KEEP else _bytes(new)
            if new is not KEEP:
                tx._put(key, result, ttl_ms)

        await self.transaction(change, key, attempts=attempts, wait=wait, guard=guard)
        return result

    async def compare_and_set(
        self,
        key: str | bytes,
        expected: Value | None,
        new: Value | None,
        *,
        ttl: float | None = None,
    ) -> bool:
        """Change the string at a key if it is `expected`, and tell whether it was.

        None stands for no key: as `expected` it must be absent, as `new` it is deleted.
        The key keeps its expiry unless `ttl` (seconds) sets one. Raises as transaction()
        does.
        """
        ttl_ms, before, after = _ttl_ms(ttl), _bytes(expected), _bytes(new)
        matches = False

        async def change(tx: Transaction) -> None:
            nonlocal matches
            matches = await tx.get(key) == before
            if matches:
                tx._put(key, after, ttl_ms)

        await self.transaction(change, key)
        return matches

    async def compare_and_delete(self, key: str | bytes, expected: Value) -> bool:
        """Delete a key if the string there is `expected`, and tell whether it was.

        Raises as transaction() does.
        """
        return await self.compare_and_set(key, expected, None)

    # ------------------------------------------------------------- what is known, and its end

    @property
    def servers(self) -> tuple[str, ...]:
        """The addresses of its servers, without what is secret in them."""
        return self._core.servers

    def __repr__(self) -> str:
        """Name its servers."""
        return f"<sneck.aio.Client of {', '.join(self.servers)}>"

    def stats(self) -> Stats:
        """Tell what the client and its locks have done so far. Asks nobody."""
        return Stats(*self._core._stats())

    async def aclose(self) -> None:
        """End what is under way, and close the connections.

        Tasks that wait get Interrupted, and nothing of theirs stays on the server.
        Locks that are held stay until their ttl ends. Later calls raise ValueError. It
        goes on when the task is cancelled meanwhile; a loop that ends waits for it.
        """
        if not self._closed:
            self._begin_to_close()
        if self._closing is not None:
            await asyncio.shield(self._closing)

    def _begin_to_close(self) -> None:
        if self._loop is None:
            self._core.close()
        else:
            self._closing = self._bind().create_task(self._close())
        self._closed = True

    async def _close(self) -> None:
        drained = False
        try:
            while not drained:
                with contextlib.suppress(asyncio.CancelledError):  # by a loop that ends
                    await self._drain()
                    drained = True
        finally:
            if self._drives is not None:
                self._drives.close()
            self._core.close()

    async def _drain(self) -> None:
        if self._pool is not None:
            self._pool.close()
        if self._drives is not None:
            await self._drives.drain()
        if self._pool is not None:
            await self._pool.drain()

    async def __aenter__(self) -> Client:
        """Give the client itself."""
        self._bind()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the client."""
        await self.aclose()


def _told(op: _core.Op, *refusals: str) -> bool:
    """Tell whether an op succeeded; raise what is no refusal."""
    if op.status in refusals:
        return False
    op.result()
    return True


def _lock_of(guard: object) -> _core.Lock | None:
    """Give the lock that guards a transaction. Raises TypeError."""
    if guard is None:
        return None
    if isinstance(guard, Lock):
        return guard._lock
    raise TypeError(f"guard must be a Lock or None, not {guard!r}")


def _ttl_ms(ttl: float | None) -> int:
    """Give a ttl in milliseconds; 0 for none. Raises ValueError and TypeError."""
    return 0 if ttl is None else _core.milliseconds(ttl)


def _bytes(value: object) -> bytes | None:
    """Give a value as it is stored; None for no key. Raises TypeError."""
    return None if value is None else _core.bytes_of(value)


def connect(
    url: str | None = None,
    *,
    timeout: float = 5.0,
    connect_timeout: float | None = None,
    client_name: str | None = None,
    prefix: str | bytes | None = None,
    label: str | None = None,
    connections: int = 1,
) -> Client:
    """Make a client for a server; nothing is sent yet, and no loop need run.

    Options as for sneck.connect(). Transactions run on `connections` of their own at
    most. Raises ValueError and TypeError.
    """
    if not isinstance(connections, int) or isinstance(connections, bool):
        raise TypeError(f"connections must be int, not {connections!r}")
    if connections < 1:
        raise ValueError(f"connections must be 1 or more, not {connections}")
    core = _core.connect(_core.Client, url, timeout, connect_timeout, client_name, prefix, label)
    return Client(core, connections)


def quorum(
    urls: Iterable[str],
    *,
    timeout: float = 5.0,
    connect_timeout: float | None = None,
    client_name: str | None = None,
    prefix: str | bytes | None = None,
    label: str | None = None,
) -> Client:
    """Make a client whose locks are held by a majority of several servers.

    As sneck.quorum(); nothing is sent yet, and no loop need run.
    """
    options = timeout, connect_timeout, client_name, prefix, label
    return Client(_core.quorum(_core.Client, url_tuple(urls), *options), 1)
