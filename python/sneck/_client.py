"""The client, how it is made, and what it has done."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal

from sneck import _core
from sneck._decorator import Decorator, decorator
from sneck._lock import (
    LegacyLock,
    Lock,
    LockOptions,
    OnLost,
    Options,
    RLock,
    Waiter,
    adopt_lock,
    make_legacy_lock,
    make_lock,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from sneck._core import _Reply

DEFAULT_ATTEMPTS = 16
DEFAULT_WAIT = 5.0


class Keep(enum.Enum):
    """The type of KEEP."""

    KEEP = "KEEP"

    def __repr__(self) -> str:
        """Give the name by which it is known."""
        return "sneck.KEEP"


KEEP: Final = Keep.KEEP


@dataclass(frozen=True)
class Stats:
    """What a client and its locks have done since it was made.

    `acquisitions` succeeded and `contended` found the lock busy; these took `wait`
    seconds in all. `handoffs` are locks that whoever released them handed to us, and
    `polls` requests that a waiter's timer sent. `losses` are leases that ended before
    their release or extend, `unknown` calls whose outcome is. `wakeups` tells whether
    the server lets waiters be woken: where that is "denied" they poll.
    """

    acquisitions: int
    contended: int
    handoffs: int
    polls: int
    wait: float
    losses: int
    unknown: int
    wakeups: Literal["untried", "used", "denied"]


class Client(_core.Client):
    """The connections to one server, made by connect(), or to several, made by quorum().

    Any number of threads may use one client. After a fork the child owns none of
    its locks and connects anew. Pickled, it is what connect() was given, with the
    password if there is one.
    """

    __slots__ = ("_options",)
    _options: tuple[object, ...]

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

        The server keeps it for `ttl` seconds. `with` and acquire() wait for `wait`
        seconds at most, None for ever, 0 not at all. `label` tells others who has
        the lock, in place of the client's. A `fair` lock never takes a free lock
        before those who wait. Where no wake-up can come, a waiter asks after every
        `poll` seconds.

        `with` renews the lock until its end, acquire() does not; `renew` says so for
        both. It is renewed for `max_hold` seconds at most, None for ever. When that
        finds the lock lost, `on_lost` is called with it, from the thread that renews.
        With `fence` each acquire gets a number greater than those before.

        Raises ValueError and TypeError.
        """
        options = Options(ttl, wait, label, fair, poll, renew, max_hold, fence, on_lost)
        return make_lock(Lock, self, name, options)

    def rlock(self, name: str | bytes, **options: Unpack[LockOptions]) -> RLock:
        """Make a lock that the thread that has it may acquire again.

        Options as for lock(). Raises ValueError and TypeError.
        """
        return make_lock(RLock, self, name, Options(**options))

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
        return make_legacy_lock(LegacyLock, self, name, options, milliseconds)

    def adopt(self, name: str | bytes, token: str | bytes, **options: Unpack[LockOptions]) -> Lock:
        """Make a lock that owns a token handed over by whoever acquired it.

        Nothing is sent, so nothing is known of its lease until extend() or `with`
        confirms it. Options as for lock(). Raises ValueError and TypeError.
        """
        return adopt_lock(self, name, token, Options(**options))

    def locked(self, name: str, **options: Unpack[LockOptions]) -> Decorator:
        """Decorate a function to run under a lock, a new one for each call.

        `name` is a format of the call's arguments, such as "reports:{id}". Calls
        raise as `with` does. Options as for lock(). Raises TypeError for coroutines
        and generators.
        """
        given = Options(**options)
        return decorator(name, lambda key: make_lock(Lock, self, key, given))

    def waiters(self, name: str | bytes) -> list[Waiter]:
        """Ask the server who waits for a lock, the next one first, 1,000 at most.

        Raises ConnectionError, ServerError, ValueError and TypeError.
        """
        return [Waiter(*fields) for fields in self.lock(name)._waiters()]

    def force_release(self, name: str | bytes) -> bool:
        """Take a lock away from whoever holds it and tell whether it was held.

        Whoever waits first has it then. This is for people who know that the holder
        is gone: one that is not learns of it only at its release. Raises
        OutcomeUnknown when the reply was lost, ConnectionError, ServerError,
        ValueError and TypeError.
        """
        return self.lock(name)._force_release()

    def try_lock(
        self, key: str | bytes, value: str | bytes, expire_ms: int, timeout_ms: int | None = 0
    ) -> bool:
        """Do `SET key value NX PX expire_ms` until it succeeds, and tell whether it did.

        The caller chooses the value, and others may use the same: they exclude each
        other. Waits for `timeout_ms` milliseconds at most, None for ever, in the lock's
        queue. The client's prefix is put before the key. Raises OutcomeUnknown when a
        reply was lost, so that the key may hold the value until it expires,
        ConnectionError, ServerError, ValueError and TypeError.
        """
        return self._try_lock(key, value, expire_ms, timeout_ms)

    def release_lock(self, key: str | bytes, value: str | bytes) -> bool:
        """Release what try_lock() took, if the key still holds the value; tell whether it did.

        Whoever waits first has the lock then. False: it had expired, or was deleted or
        taken, and nothing was changed. Raises OutcomeUnknown when the reply was lost,
        ConnectionError, ServerError, ValueError and TypeError.
        """
        return self._release_lock(key, value)

    def update(
        self,
        key: str | bytes,
        function: Callable[[bytes | None], str | bytes | float | Keep | None],
        *,
        ttl: float | None = None,
        attempts: int = DEFAULT_ATTEMPTS,
        wait: float | None = DEFAULT_WAIT,
        guard: Lock | None = None,
    ) -> bytes | None:
        """Change the string at a key by a function of it, and give what it is then.

        `function` gets the old value, None when the key is absent, and returns the
        new one, None to delete the key, or KEEP to leave it. It is run again when
        another client has changed the key meanwhile. The key keeps its expiry unless
        `ttl` (seconds) sets one. Options and exceptions as for transaction().
        """
        return self._update(key, function, ttl, attempts, wait, guard, KEEP)

    def compare_and_set(
        self,
        key: str | bytes,
        expected: str | bytes | float | None,
        new: str | bytes | float | None,
        *,
        ttl: float | None = None,
    ) -> bool:
        """Change the string at a key if it is `expected`, and tell whether it was.

        None stands for no key: as `expected` it must be absent, as `new` it is
        deleted. The key keeps its expiry unless `ttl` (seconds) sets one. Raises as
        transaction() does.
        """
        return self._compare_and_set(key, expected, new, ttl)

    def compare_and_delete(self, key: str | bytes, expected: str | bytes | float) -> bool:
        """Delete a key if the string there is `expected`, and tell whether it was.

        Raises as transaction() does.
        """
        return self._compare_and_set(key, expected, None, None)

    def transaction(
        self,
        function: Callable[[_core.Transaction], object],
        *keys: str | bytes,
        attempts: int = DEFAULT_ATTEMPTS,
        wait: float | None = DEFAULT_WAIT,
        guard: Lock | None = None,
    ) -> list[_Reply] | None:
        """Run a function that reads and queues writes, and write all or nothing.

        Gives what the writes gave; None after tx.abort(). `keys` are watched from
        the first read on: when another client has changed one, nothing is written
        and the function is run again, `attempts` times at most, and none begins
        after `wait` seconds; None sets no limit. With a `guard` it writes only while
        that lock is ours. An exception of the function's own ends it with nothing
        written. Raises Conflict when the attempts are used up, NotOwned when the
        guard was lost, OutcomeUnknown when the reply to the writes was lost,
        ServerError when writes failed, ConnectionError, ValueError and TypeError.
        """
        return self._transaction(function, keys, attempts, wait, guard)

    def stats(self) -> Stats:
        """Tell what the client and its locks have done so far. Asks nobody."""
        return Stats(*self._stats())

    def __enter__(self) -> Client:
        """Give the client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the client."""
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        """Give what makes another client of the same server or servers."""
        return _make, self._options

    def __repr__(self) -> str:
        """Name its servers."""
        return f"<sneck.Client of {', '.join(self.servers)}>"


def _make(function: Callable[..., Client], *options: object) -> Client:
    """Make a client by a function of the C module."""
    client = function(Client, *options)
    client._options = (function, *options)
    return client


def connect(
    url: str | None = None,
    *,
    timeout: float = 5.0,
    connect_timeout: float | None = None,
    client_name: str | None = None,
    prefix: str | bytes | None = None,
    label: str | None = None,
) -> Client:
    """Make a client for a server; nothing is sent yet.

    `url` is redis://[[user]:password@]host[:port][/db] or unix:///path[?db=N], None
    the environment's SNECK_URL or else redis://localhost:6379. A command is answered
    within `timeout` seconds, a connection made within `connect_timeout`, None for
    the same. `client_name` shows in CLIENT LIST, `prefix` is put before every lock's
    name, and `label` tells others who has a lock. Raises ValueError and TypeError.
    """
    options = timeout, connect_timeout, client_name, prefix, label
    return _make(_core.connect, url, *options)


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

    Nothing is sent yet. The servers, 1 to 15, know nothing of each other: none is
    another's replica. Urls and options are those of connect(). Only locks can be had of
    the client: commands, transactions, update() and the like, legacy_lock(), try_lock(),
    release_lock() and `fair` locks raise ValueError. Nobody stands in a queue, so
    waiters() is empty. Calls that less than a majority answers raise QuorumImpossible;
    what each server said is in the error's `servers`. Raises ValueError and TypeError.
    """
    options = timeout, connect_timeout, client_name, prefix, label
    return _make(_core.quorum, url_tuple(urls), *options)


def url_tuple(urls: Iterable[str]) -> tuple[str, ...]:
    """Give the urls of a quorum. Raises TypeError for one that stands alone."""
    if isinstance(urls, str | bytes):
        raise TypeError("urls must be a list of urls, not one; connect() takes one")
    return tuple(urls)
