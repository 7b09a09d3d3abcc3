"""The default client, for programs that need but one.

It is made when it is first used, from the environment's SNECK_URL, so that an
import never fails for want of a server's address.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sneck._client import Client, connect
from sneck._decorator import Decorator, decorator
from sneck._lock import Lock, LockOptions, Options, make_lock

if TYPE_CHECKING:
    from typing_extensions import Unpack

_making = threading.Lock()
_made: list[Client] = []


def _client() -> Client:
    if not _made:
        with _making:
            if not _made:
                _made.append(connect())
    return _made[0]


def lock(name: str | bytes, **options: Unpack[LockOptions]) -> Lock:
    """Make a lock of the default client, as Client.lock() does."""
    return _client().lock(name, **options)


def locked(name: str, **options: Unpack[LockOptions]) -> Decorator:
    """Decorate a function to run under a lock of the default client.

    As Client.locked(); the client is made by the first call of the function.
    """
    given = Options(**options)
    return decorator(name, lambda key: make_lock(Lock, _client(), key, given))
