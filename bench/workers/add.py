"""add WAY ADDRESS PAGE INDEX: adds 1 to the number at a key that others add to, too.

WAY is sneck-update or sneck-transaction, of which ADDRESS is a URL, or redis-py, of
which it is the path of a socket.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from page import Page

if TYPE_CHECKING:
    import redis.client

    import sneck

KEY = "bench:number"


def add_one(old: bytes | str | None) -> int:
    """Say what follows."""
    return int(old or 0) + 1


def sneck_update(address: str) -> Callable[[], object]:
    """Add by a function of the old value."""
    import sneck

    return partial(sneck.connect(address).update, KEY, add_one)


def sneck_transaction(address: str) -> Callable[[], object]:
    """Add by a function that reads and queues."""
    import sneck

    def read_and_queue(tx: sneck.Transaction) -> None:
        tx.queue("SET", KEY, add_one(tx.get(KEY)))

    return partial(sneck.connect(address).transaction, read_and_queue, KEY)


def redis_py(address: str) -> Callable[[], object]:
    """Add by redis-py's transaction(), which tries again at once, and without end."""
    import redis

    def read_and_queue(pipe: redis.client.Pipeline) -> None:
        value = add_one(pipe.get(KEY))
        pipe.multi()
        pipe.set(KEY, value)

    return partial(redis.Redis(unix_socket_path=address).transaction, read_and_queue, KEY)


WAYS: dict[str, Callable[[str], Callable[[], object]]] = {
    "sneck-update": sneck_update,
    "sneck-transaction": sneck_transaction,
    "redis-py": redis_py,
}


def main(way: str, address: str, path: str, index: str) -> None:
    """Run rounds until the input ends."""
    page, me = Page(path), int(index)
    add = WAYS[way](address)
    count, now = page.count, time.monotonic_ns
    for _ in sys.stdin:
        in_time = True
        while in_time:
            begun_ns = now()
            add()
            in_time = count(me, begun_ns)
        print("done", flush=True)


main(*sys.argv[1:])
