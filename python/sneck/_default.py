"""The default client, for programs that need but one.

It is made when it is first used, from the environment's SNECK_URL, so that an
import never fails for want of a server's address.
"""

from __future__ import annotations

import threading

from sneck._client import DEFAULT_POLL, DEFAULT_TTL, Client, connect
from sneck._decorator import Decorator, decorator
from sneck._lock import Lock

_making = threading.Lock()
_made: list[Client] = []


def _client() -> Client:
    if not _made:
        with _making:
            if not _made:
                _made.append(connect())
    return _made[0]


def lock(
    name: str | bytes,
    *,
    ttl: float = DEFAULT_TTL,
    wait: float | None = None,
    label: str | None = None,
    fair: bool = False,
    poll: float = DEFAULT_POLL,
) -> Lock:
    """Make a lock of the default client, as Client.lock() does."""
    return _client().lock(name, ttl=ttl, wait=wait, label=label, fair=fair, poll=poll)


def locked(
    name: str,
    *,
    ttl: float = DEFAULT_TTL,
    wait: float | None = None,
    label: str | None = None,
    fair: bool = False,
    poll: float = DEFAULT_POLL,
) -> Decorator:
    """Decorate a function to run under a lock of the default client.

    As Client.locked(); the client is made by the first call of the function.
    """
    return decorator(
        name, lambda key: lock(key, ttl=ttl, wait=wait, label=label, fair=fair, poll=poll)
    )
