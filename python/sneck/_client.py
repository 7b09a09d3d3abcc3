"""The client and how it is made."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn

from sneck import _core
from sneck._decorator import Decorator, decorator
from sneck._lock import Lock

DEFAULT_TTL = 10.0


class Client(_core.Client):
    """The connections to one server, made by connect().

    Any number of threads may use one client. After a fork the child owns none of
    its locks and connects anew.
    """

    __slots__ = ()

    def lock(
        self,
        name: str | bytes,
        *,
        ttl: float = DEFAULT_TTL,
        wait: float | None = None,
        label: str | None = None,
    ) -> Lock:
        """Make a lock; nothing is sent yet.

        The server keeps it for `ttl` seconds. `with` and acquire() wait for `wait`
        seconds at most, None for ever, 0 not at all. `label` tells others who has
        the lock, in place of the client's. Raises ValueError and TypeError.
        """
        return self._lock(Lock, name, ttl, wait, label)

    def adopt(
        self,
        name: str | bytes,
        token: str | bytes,
        *,
        ttl: float = DEFAULT_TTL,
        wait: float | None = None,
        label: str | None = None,
    ) -> Lock:
        """Make a lock that owns a token handed over by whoever acquired it.

        Nothing is sent, so nothing is known of its lease until extend() or `with`
        confirms it. Options as for lock(). Raises ValueError and TypeError.
        """
        return self._adopt(Lock, name, token, ttl, wait, label)

    def locked(
        self,
        name: str,
        *,
        ttl: float = DEFAULT_TTL,
        wait: float | None = None,
        label: str | None = None,
    ) -> Decorator:
        """Decorate a function to run under a lock, a new one for each call.

        `name` is a format of the call's arguments, such as "reports:{id}". Calls
        raise as `with` does. Raises TypeError for coroutines and generators.
        """
        return decorator(name, lambda key: self.lock(key, ttl=ttl, wait=wait, label=label))

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

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled. Raises TypeError."""
        raise TypeError("a client cannot be pickled: connect() again")


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
    return _core.connect(Client, url, timeout, connect_timeout, client_name, prefix, label)
