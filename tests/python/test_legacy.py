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
    with pytest.raises(ValueError, match="timeout"):
        client.legacy_lock(name, timeout=0)
    with pytest.raises(ValueError, match="timeout is from 3 ms"):
        client.legacy_lock(name, timeout=0.001)


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


def test_a_clone_and_a_pickle_keep_the_unit(client: sneck.Client, name: str) -> None:
    lock = client.legacy_lock(name, milliseconds=True)
    for other in (lock.clone(), pickle.loads(pickle.dumps(lock))):
        with other:
            assert client.execute("STRLEN", name) == 13
    assert client.adopt(name, b"t").force_release() is False


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
            async with asynchronous.legacy_lock(name, milliseconds=True).clone() as other:
                assert client.execute("STRLEN", name) == 13
                assert await lock.force_release() is True
                assert await lock.force_release() is False
                with pytest.raises(sneck.NotOwned):
                    await other.release()
                assert await other.acquire()

    asyncio.run(main())
