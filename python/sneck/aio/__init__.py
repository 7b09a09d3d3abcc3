"""Sneck on asyncio: any number of waiting tasks on two connections.

    import sneck.aio

    async with sneck.aio.connect("redis://localhost:6379/0") as client:
        async with client.lock("reports:42", ttl=10, wait=30) as lock:
            ...

Names, options and exceptions are those of the client that blocks. The loop itself
carries the calls: there is no thread but the one that renews locks, so that a loop
that is blocked for a while loses none. docs/asyncio.md tells the rest.
"""

from sneck.aio._client import Client, connect, quorum
from sneck.aio._lock import LegacyLock, Lock
from sneck.aio._rlock import RLock
from sneck.aio._transaction import Transaction

__all__ = ["Client", "LegacyLock", "Lock", "RLock", "Transaction", "connect", "quorum"]
