"""docs/migration.md: each library of its table beside Sneck, on the keys that the page names."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

import sneck
from sneck.testing import Server

redis: Any = importlib.import_module("redis")


@dataclass(frozen=True)
class Library:
    """How a lock of a library is taken and released, and which key that is."""

    key: str  # for the name `door`
    take: Callable[[str], object]  # a server's url to what holds it; None: another has it
    release: Callable[[Any], object]


def redis_py(url: str) -> object:
    """Try once, by redis-py's Lock."""
    lock = redis.Redis.from_url(url).lock("door", timeout=60, blocking=False)
    return lock if lock.acquire() else None


def python_redis_lock(url: str) -> object:
    """Try once, by python-redis-lock."""
    module: Any = importlib.import_module("redis_lock")
    lock = module.Lock(redis.Redis.from_url(url), "door", expire=60)
    return lock if lock.acquire(blocking=False) else None


def pottery(url: str) -> object:
    """Try once, by pottery's Redlock over one server."""
    module: Any = importlib.import_module("pottery")
    lock = module.Redlock(key="door", masters={redis.Redis.from_url(url)}, auto_release_time=60)
    return lock if lock.acquire(blocking=False) else None


def redlock_py(url: str) -> object:
    """Try once, by redlock-py over one server."""
    module: Any = importlib.import_module("redlock")
    manager = module.Redlock([url], retry_count=1)
    held = manager.lock("door", 60000)
    return (manager, held) if held else None


LIBRARIES = {
    "redis-py": Library("door", redis_py, lambda lock: lock.release()),
    "python-redis-lock": Library("lock:door", python_redis_lock, lambda lock: lock.release()),
    "pottery": Library("redlock:door", pottery, lambda lock: lock.release()),
    "redlock-py": Library("door", redlock_py, lambda pair: pair[0].unlock(pair[1])),
}
every_library = pytest.mark.parametrize("name", LIBRARIES)


@every_library
def test_a_librarys_lock_is_the_key_that_the_page_says(
    server: Server, client: sneck.Client, name: str
) -> None:
    held = LIBRARIES[name].take(server.url)
    assert held is not None
    assert LIBRARIES[name].key.encode() in client.execute("KEYS", "*")  # type: ignore[operator]
    assert client.execute("PTTL", LIBRARIES[name].key) in range(50000, 60001)


@every_library
def test_a_library_excludes_us_and_its_release_lets_us_in(
    server: Server, client: sneck.Client, name: str
) -> None:
    library = LIBRARIES[name]
    held = library.take(server.url)
    assert not client.lock(library.key).acquire(blocking=False)
    assert not client.try_lock(library.key, "ours", 60000)
    library.release(held)
    assert client.lock(library.key).acquire(timeout=20)


@every_library
def test_we_exclude_a_library_and_our_release_lets_it_in(
    server: Server, client: sneck.Client, name: str
) -> None:
    library = LIBRARIES[name]
    with client.lock(library.key, ttl=60):
        assert library.take(server.url) is None
    assert client.try_lock(library.key, "ours", 60000)
    assert library.take(server.url) is None
    assert client.release_lock(library.key, "ours")
    assert library.take(server.url) is not None


@every_library
def test_a_library_does_not_release_our_lock(
    server: Server, client: sneck.Client, name: str
) -> None:
    library = LIBRARIES[name]
    held = library.take(server.url)
    client.execute("DEL", library.key)
    with client.lock(library.key, ttl=60) as ours, suppress(Exception):
        library.release(held)
    assert not ours.lost


@pytest.mark.parametrize("name", ["python-redis-lock", "pottery"])
def test_a_prefix_gives_our_locks_the_librarys_keys(
    server: Server, client: sneck.Client, name: str
) -> None:
    library = LIBRARIES[name]
    prefix = library.key.removesuffix("door")
    held = library.take(server.url)
    with sneck.connect(server.url, prefix=prefix) as prefixed:
        assert not prefixed.lock("door").acquire(blocking=False)
    assert client.lock("door").acquire(blocking=False)  # without it they do not see each other
    library.release(held)


def test_a_lock_that_is_a_hash_is_refused_by_its_type(client: sneck.Client) -> None:
    client.execute("HSET", "door", "owner:1", 1)
    with pytest.raises(sneck.ServerError, match="WRONGTYPE"):
        client.lock("door").acquire(blocking=False)
    assert client.execute("TYPE", "door") == b"hash"


def test_a_lock_that_is_a_hash_is_refused_at_a_quorum_too(servers: list[Server]) -> None:
    for each in servers:
        with sneck.connect(each.url) as one:
            one.execute("HSET", "door", "owner:1", 1)
    with sneck.quorum([each.url for each in servers]) as several:
        for fence in (False, True):
            with pytest.raises(sneck.QuorumImpossible, match="WRONGTYPE"):
                several.lock("door", fence=fence).acquire(blocking=False)
        with pytest.raises(sneck.QuorumImpossible, match="WRONGTYPE"):
            several.lock("door").holder()


def test_a_waiter_of_python_redis_lock_does_not_hear_our_release(
    server: Server, client: sneck.Client
) -> None:
    with client.lock("lock:door", ttl=60):
        pass
    assert client.execute("EXISTS", "lock-signal:door") == 0
    held = python_redis_lock(server.url)
    LIBRARIES["python-redis-lock"].release(held)
    assert client.execute("LLEN", "lock-signal:door") == 1
