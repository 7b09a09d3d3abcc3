"""The lock, who holds it and who waits: what `_core.Lock` leaves to Python.

The methods that take part in every acquire and release are C; here stand the
end of a `with` block, whose rule is that a body's own exception is never replaced,
and conversions that are not worth C.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, TypeVar

from sneck import _core

if TYPE_CHECKING:
    from typing_extensions import Self

    from sneck._client import Client
    from sneck._core import _LockOptions

_Kind = TypeVar("_Kind", bound="Lock")
_Legacy = TypeVar("_Legacy", bound="LegacyLock")
OnLost: TypeAlias = Callable[["Lock"], object] | None


class Options(NamedTuple):
    """The options of a lock, as Client.lock() tells, with their defaults.

    What `on_lost` may be is each client's own: see its LockOptions.
    """

    ttl: float = 10.0
    wait: float | None = None
    label: str | None = None
    fair: bool = False
    poll: float = 0.05
    renew: bool | None = None
    max_hold: float | None = None
    fence: bool = False
    on_lost: Any = None


class CommonOptions(TypedDict, total=False):
    """Those that are the same with and without asyncio, for functions that pass them on."""

    ttl: float
    wait: float | None
    label: str | None
    fair: bool
    poll: float
    renew: bool | None
    max_hold: float | None
    fence: bool


class LockOptions(CommonOptions, total=False):
    """All of them."""

    on_lost: OnLost


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, as its token tells.

    `ttl` is the time left in seconds, None for a key that never expires. A foreign
    token is not of sneck's form (or never expires): its host and label are then
    empty and its pid is 0. Of a very long token only the first bytes are given.
    """

    token: bytes
    host: str
    pid: int
    label: str
    ttl: float | None
    foreign: bool


@dataclass(frozen=True)
class Waiter:
    """Who waits for a lock, and for how many seconds so far."""

    host: str
    pid: int
    label: str
    waited: float


class Lock(_core.Lock):
    """A named lock on a server, made by Client.lock() or Client.adopt().

    Several threads may use one lock at once. It is not re-entrant: acquiring it
    again waits, as for anybody else. Pickled, it is its client, name and options; who
    gets it owns nothing.
    """

    __slots__ = ("__weakref__", "_options")
    _client: Client
    _options: Options

    def clone(self) -> Self:
        """Make another lock of the same name and options, which owns nothing."""
        return make_lock(type(self), self._client, self.name, self._options)

    def _tell_lost(self) -> None:
        """Call on_lost, in the thread that renews."""
        if self._options.on_lost is not None:
            self._options.on_lost(self)

    def locked(self) -> bool:
        """Ask the server whether anybody holds the lock.

        Raises ConnectionError and ServerError.
        """
        return self._holder() is not None

    def holder(self) -> Holder | None:
        """Ask the server who holds the lock; None when it is free.

        Raises ConnectionError and ServerError.
        """
        fields = self._holder()
        return None if fields is None else Holder(*fields)

    def force_release(self) -> bool:
        """Take the lock away from whoever holds it and tell whether it was held.

        As Client.force_release(), and for timestamp locks, which that does not know.
        Raises OutcomeUnknown when the reply was lost, ConnectionError and ServerError.
        """
        return self._force_release()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Release the lock.

        Raises NotOwned when it was lost meanwhile, and whatever release() raises.
        When the body raised, its exception goes on and tells of the loss.
        """
        if error is None:
            self._leave()
            return
        try:
            self._leave()
        except Exception as loss:  # noqa: BLE001 - whatever it is, the body's comes first
            _attach(error, loss)

    def __reduce__(self) -> tuple[object, ...]:
        """Give what makes another lock of the same name and options."""
        return make_lock, (type(self), self._client, self.name, self._options)

    def __repr__(self) -> str:
        """Name the lock and tell whether it is owned."""
        return (
            f"<sneck.{type(self).__name__} {self.name!r} {'owned' if self.owned else 'not owned'}>"
        )


class RLock(Lock):
    """A lock that its thread may acquire again, made by Client.rlock().

    It is released when it was released as often. What it tells (`owned`, `token`,
    `lease` and the like) is the calling thread's; threads exclude each other.
    """

    __slots__ = ()


class LegacyLock(Lock):
    """A timestamp lock, made by Client.legacy_lock().

    Its ttl is its timeout, and its token is not for adopt().
    """

    __slots__ = ("_milliseconds",)
    _milliseconds: bool

    def clone(self) -> Self:
        """Make another lock of the same name and options, which owns nothing."""
        return make_legacy_lock(
            type(self), self._client, self.name, self._options, self._milliseconds
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Give what makes another lock of the same name and options."""
        kind = type(self)
        return make_legacy_lock, (
            kind,
            self._client,
            self.name,
            self._options,
            self._milliseconds,
        )


def make_lock(kind: type[_Kind], client: Client, name: str | bytes, options: Options) -> _Kind:
    """Make a lock of the client; nothing is sent."""
    make = client._rlock if issubclass(kind, RLock) else client._lock
    lock = make(kind, name, _for_core(options))
    lock._options = options
    return lock


def make_legacy_lock(
    kind: type[_Legacy],
    client: Client,
    name: str | bytes,
    options: Options,
    milliseconds: bool,
) -> _Legacy:
    """Make a timestamp lock of the client; nothing is sent."""
    lock = client._legacy_lock(kind, name, _for_core(options), milliseconds)
    lock._options = options
    lock._milliseconds = milliseconds
    return lock


def adopt_lock(client: Client, name: str | bytes, token: str | bytes, options: Options) -> Lock:
    """Make a lock of the client that owns a token; nothing is sent."""
    lock = client._adopt(Lock, name, _for_core(options), token)
    lock._options = options
    return lock


def _for_core(options: Options) -> _LockOptions:
    """Give the options as `_core` takes them. Raises TypeError."""
    on_lost = options.on_lost
    if on_lost is not None and not callable(on_lost):
        raise TypeError(f"on_lost must be callable or None, not {type(on_lost).__name__}")
    if on_lost is not None:
        refuse_coroutine_function(on_lost)
    return (*options[:-1], on_lost is not None)


def refuse_coroutine_function(on_lost: Callable[..., object]) -> None:
    """Refuse an on_lost whose call would do nothing. Raises TypeError."""
    if any(inspect.iscoroutinefunction(each) for each in (on_lost, type(on_lost).__call__)):
        raise TypeError(
            f"on_lost must be no coroutine function, since nobody awaits it; {on_lost!r} is one"
        )


def _attach(error: BaseException, loss: Exception) -> None:
    """Make a body's exception tell that the release failed, too."""
    add_note = getattr(error, "add_note", None)
    if add_note is not None:
        add_note(f"the lock was not released: {type(loss).__name__}: {loss}")
        return
    # Python 3.10: the loss was raised while `error` was handled, so it refers to it.
    loss.__context__ = None
    last = error
    while last.__context__ is not None:
        last = last.__context__
    last.__context__ = loss
