"""contend LIBRARY ADDRESS [POLL] PAGE INDEX: wants a lock that others want.

LIBRARY is sneck, of which ADDRESS is a URL, or one of the others, of which it is
the path of a socket.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol

from page import Page


class Lock(Protocol):
    """What the libraries agree on."""

    def acquire(self) -> object:
        """Wait for the lock."""

    def release(self) -> object:
        """Give it back."""


def sneck(address: str) -> Lock:
    """Make a lock of ours."""
    import sneck

    return sneck.connect(address).lock("bench:lock", ttl=10)


def redis_py(address: str, poll: str) -> Lock:
    """Make redis-py's own lock, which polls."""
    import redis

    client = redis.Redis(unix_socket_path=address)
    lock: Lock = client.lock("bench:lock", timeout=10, sleep=float(poll))
    return lock


def python_redis_lock(address: str) -> Lock:
    """Make one of python-redis-lock, which wakes whoever pops from a list."""
    import redis
    import redis_lock  # type: ignore[import-untyped]

    client = redis.StrictRedis(unix_socket_path=address)
    lock: Lock = redis_lock.Lock(client, "bench:lock", expire=10)
    return lock


LIBRARIES: dict[str, Callable[..., Lock]] = {
    "sneck": sneck,
    "redis-py": redis_py,
    "python-redis-lock": python_redis_lock,
}


def main(library: str, address: str, *more: str) -> None:
    """Run rounds until the input ends."""
    *options, path, index = more
    page, me = Page(path), int(index)
    lock = LIBRARIES[library](address, *options)
    acquire, release, hold, now = lock.acquire, lock.release, page.hold, time.monotonic_ns
    for _ in sys.stdin:
        in_time = True
        while in_time:
            asked_ns = now()
            if not acquire():
                sys.exit("worker: the lock was not acquired")
            in_time = hold(me, asked_ns)
            release()
        print("done", flush=True)


main(*sys.argv[1:])
