"""The lock, who holds it and who waits: what `_core.Lock` leaves to Python.

The methods that take part in every acquire and release are C; here stand the
end of a `with` block, whose rule is that a body's own exception is never replaced,
and conversions that are not worth C.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn

from sneck import _core


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
    again waits, as for anybody else.
    """

    __slots__ = ()

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
            self.release()
            return
        try:
            self.release()
        except Exception as loss:  # noqa: BLE001 - whatever it is, the body's comes first
            _attach(error, loss)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled. Raises TypeError."""
        raise TypeError("a lock cannot be pickled: hand over its name and token, then adopt() them")

    def __repr__(self) -> str:
        """Name the lock and tell whether it is owned."""
        return f"<sneck.Lock {self.name!r} {'owned' if self.owned else 'not owned'}>"


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
