"""Token locks on Redis and Valkey.

    import sneck

    client = sneck.connect("redis://localhost:6379/0")
    with client.lock("reports:42", ttl=10, wait=30) as lock:
        ...

Times are seconds, names are str or bytes. The documentation is installed along: its
pages are in share/doc/sneck/docs below sys.prefix, and `pip show --files sneck` lists
them. guarantees.md says what a lock promises, and what it does not.
"""

from sneck._client import KEEP, Client, Keep, Stats, connect, quorum
from sneck._core import (
    Conflict,
    ConnectionError,
    Error,
    Interrupted,
    LockTimeout,
    NotOwned,
    OutcomeUnknown,
    ProtocolError,
    QuorumImpossible,
    ServerError,
    Transaction,
    __version__,
)
from sneck._default import lock, locked
from sneck._lock import Holder, LegacyLock, Lock, RLock, Waiter

__all__ = [
    "KEEP",
    "Client",
    "Conflict",
    "ConnectionError",
    "Error",
    "Holder",
    "Interrupted",
    "Keep",
    "LegacyLock",
    "Lock",
    "LockTimeout",
    "NotOwned",
    "OutcomeUnknown",
    "ProtocolError",
    "QuorumImpossible",
    "RLock",
    "ServerError",
    "Stats",
    "Transaction",
    "Waiter",
    "__version__",
    "connect",
    "lock",
    "locked",
    "quorum",
]
