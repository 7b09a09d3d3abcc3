"""An RLock counts for its thread, and excludes all others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from leases import LONG, lose, wait_for_renewal

import sneck

Until = Callable[[Callable[[], bool]], None]
TTL = 1.0  # of leases that are to be lost


def elsewhere(function: Callable[[], object]) -> object:
    """Run a function in another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def take_turn(lock: sneck.Lock) -> None:
    """Acquire a lock and release it."""
    with lock:
        pass


def test_its_thread_may_acquire_it_again(client: sneck.Client, name: str) -> None:
    lock = client.rlock(name, wait=0)
    with lock:
        token = lock.token
        with lock:
            assert lock.acquire(blocking=False) is True
            lock.release()
            assert lock.token == token
        assert client.execute("GET", name) == token
    assert client.execute("EXISTS", name) == 0
    assert client.stats().acquisitions == 1


def test_it_is_released_as_often_as_it_was_acquired(client: sneck.Client, name: str) -> None:
    lock = client.rlock(name)
    for _ in range(3):
        lock.acquire()
    for _ in range(3):
        assert client.execute("EXISTS", name) == 1
        lock.release()
    assert client.execute("EXISTS", name) == 0
    with pytest.raises(sneck.NotOwned, match=name):
        lock.release()


def test_other_threads_wait_and_are_told_the_truth(client: sneck.Client, name: str) -> None:
    lock = client.rlock(name, fence=True)
    with lock, lock:
        assert elsewhere(lambda: lock.acquire(blocking=False)) is False
        assert elsewhere(lambda: (lock.owned, lock.token, lock.fence, lock.lease)) == (
            *(False, None, None, "none"),
        )
        with pytest.raises(sneck.NotOwned):
            elsewhere(lock.release)
        with pytest.raises(sneck.NotOwned):
            elsewhere(lock.extend)
        assert lock.owned
        assert lock.fence is not None
        assert elsewhere(lock.locked) is True
        waiting = threading.Thread(target=take_turn, args=[lock])
        waiting.start()
    waiting.join()
    assert client.execute("EXISTS", name) == 0


def test_a_new_thread_does_not_inherit_from_one_that_died(client: sneck.Client, name: str) -> None:
    lock = client.rlock(name, ttl=60)
    got = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: got.append(lock.acquire(blocking=False)))
        thread.start()
        thread.join()
    assert got == [True, False, False]


def test_threads_that_share_it_exclude_each_other(client: sneck.Client, name: str) -> None:
    lock = client.rlock(name, ttl=60, wait=30)
    inside = 0

    def work(_: int) -> int:
        nonlocal inside
        with lock, lock:
            inside += 1
            alone = inside
            client.execute("PING")
            inside -= 1
        return alone

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(64))) == {1}


def test_it_is_renewed_until_its_last_release(client: sneck.Client, name: str) -> None:
    with client.rlock(name, ttl=LONG) as lock:
        with lock:
            pass
        wait_for_renewal(lock)
        assert client.execute("GET", name) == lock.token
        assert lock.owned


def test_a_nested_with_does_not_prolong_max_hold(client: sneck.Client, name: str) -> None:
    lock = client.rlock(name, ttl=TTL, max_hold=0.05)
    lost = False
    try:
        with lock:
            end = time.monotonic() + 2 * TTL
            while time.monotonic() < end:
                with lock:
                    time.sleep(0.01)
    except sneck.NotOwned:
        lost = True
    assert lost


def test_a_loss_reaches_every_level(client: sneck.Client, name: str, until: Until) -> None:
    told: list[sneck.Lock] = []
    lock = client.rlock(name, ttl=LONG, on_lost=told.append)
    lock.acquire()
    lock.acquire()
    lose(lock)
    until(lambda: told == [lock])
    assert lock.lost
    for attempt in (lock.acquire, lock.release, lock.release):
        with pytest.raises(sneck.NotOwned, match=name):
            attempt()
    with lock:
        assert lock.owned


def test_it_guards_a_transaction(client: sneck.Client, name: str) -> None:
    lock = client.rlock(name)
    with lock, lock:
        assert client.update(f"{name}:value", lambda _: "new", guard=lock) == b"new"
    with pytest.raises(sneck.NotOwned):
        client.update(f"{name}:value", lambda _: "newer", guard=lock)


def test_a_clone_counts_for_itself(client: sneck.Client, name: str) -> None:
    lock = client.rlock(name)
    with lock:
        clone = lock.clone()
        assert isinstance(clone, sneck.RLock)
        assert clone.acquire(blocking=False) is False
    assert "RLock" in repr(lock)
