"""What only Python says of timestamp locks: options, kinds, pickles, and asyncio."""

from __future__ import annotations

import asyncio
import pickle

import pytest

import sneck
import sneck.aio
from sneck.testing import Server


def is_time(value: object) -> bool:
    """Tell whether it is what a timestamp lock's key holds."""
    return isinstance(value, bytes) and value.isdigit()


def test_its_timeout_is_its_ttl(client: sneck.Client, name: str) -> None:
    assert client.legacy_lock(name, timeout=3.5).ttl == 3.5
    with pytest.raises(ValueError, match="ttl"):
        client.legacy_lock(name, timeout=0)


@pytest.mark.parametrize("option", ["ttl", "fair", "fence"])
def test_what_it_does_not_have_is_no_option(client: sneck.Client, name: str, option: str) -> None:
    with pytest.raises(TypeError, match=option):
        client.legacy_lock(name, **{option: 1})  # type: ignore[arg-type]


def test_a_clone_and_a_pickle_are_timestamp_locks_too(client: sneck.Client, name: str) -> None:
    lock = client.legacy_lock(name, timeout=60)
    for other in (lock.clone(), pickle.loads(pickle.dumps(lock))):
        assert type(other) is sneck.LegacyLock
        with other:
            assert is_time(client.execute("GET", name))
            assert lock.acquire(blocking=False) is False
            assert lock.locked() is True


def test_force_release_frees_it(client: sneck.Client, name: str) -> None:
    lock = client.legacy_lock(name, timeout=60)
    lock.acquire()
    assert client.force_release(name) is True
    with client.legacy_lock(name, timeout=60, wait=0):
        with pytest.raises(sneck.NotOwned):
            lock.release()
        assert is_time(client.execute("GET", name))


def test_it_works_on_a_loop(server: Server, client: sneck.Client, name: str) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url) as asynchronous:
            lock = asynchronous.legacy_lock(name, timeout=60, wait=0)
            assert type(lock) is sneck.aio.LegacyLock
            async with lock:
                assert is_time(client.execute("GET", name))
                assert client.legacy_lock(name).acquire(blocking=False) is False
                assert await lock.clone().acquire() is False
            assert client.execute("EXISTS", name) == 0

    asyncio.run(main())
