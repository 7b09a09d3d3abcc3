"""Threads: who waits lets the others run, and nothing that is shared breaks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import sneck
from sneck.testing import Server

LIMIT = 30.0


def test_other_threads_run_during_a_wait(client: sneck.Client, name: str) -> None:
    holder, waiter = client.lock(name), client.lock(name)
    holder.acquire()

    def count_and_release() -> None:
        for _ in range(100_000):
            pass
        holder.release()

    with ThreadPoolExecutor(1) as pool:
        counted = pool.submit(count_and_release)
        assert waiter.acquire(timeout=LIMIT) is True
        counted.result()
    waiter.release()


def test_two_threads_use_two_locks_of_one_client(client: sneck.Client, name: str) -> None:
    both_hold = threading.Barrier(2, timeout=LIMIT)

    def hold(suffix: str) -> None:
        with client.lock(name + suffix):
            both_hold.wait()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(hold, "ab")) == [None, None]


def test_one_lock_excludes_the_threads_that_share_it(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=60, wait=LIMIT)
    inside = 0

    def work(_: int) -> int:
        nonlocal inside
        with lock:
            inside += 1
            alone = inside
            client.execute("PING")  # lets the others run
            inside -= 1
        return alone

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(32))) == {1}


def test_threads_may_do_anything_with_one_lock(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, wait=0)
    deeds: list[Callable[[], Any]] = [
        lambda: lock.acquire(blocking=False),
        lock.release,
        lock.extend,
        lambda: (lock.remaining(), lock.owned, lock.token, repr(lock)),
        lock.holder,
        lock.__enter__,
    ]

    def do(number: int) -> None:
        with contextlib.suppress(sneck.NotOwned, sneck.LockTimeout):
            deeds[number % len(deeds)]()

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(do, range(1200))) == {None}


def test_a_client_may_be_closed_while_others_wait(
    server: Server,
    client: sneck.Client,
    name: str,
    is_connected: Callable[[str], bool],
    until: Callable[[Callable[[], bool]], None],
) -> None:
    holder = client.lock(name, ttl=60)
    holder.acquire()
    closing = sneck.connect(server.url, client_name=f"closing-{name}")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(closing.lock(name).acquire, timeout=LIMIT)
        until(lambda: is_connected(f"closing-{name}"))
        closing.close()
        holder.release()
        assert waiting.exception(LIMIT) is None or isinstance(waiting.exception(), ValueError)
    until(lambda: not is_connected(f"closing-{name}"))


def test_a_client_may_go_away_while_its_lock_is_used(server: Server, name: str) -> None:
    lock = sneck.connect(server.url).lock(name)
    with lock:
        assert lock.locked()


def test_a_closed_client_refuses_calls(server: Server, name: str) -> None:
    client = sneck.connect(server.url)
    lock = client.lock(name)
    lock.acquire()
    client.close()
    client.close()
    for attempt in (
        lock.acquire,
        lock.release,
        lock.extend,
        lock.holder,
        lock.locked,
        lock.__enter__,
        lambda: client.execute("PING"),
    ):
        with pytest.raises(ValueError, match="closed"):
            attempt()
    assert lock.remaining() > 0


def test_leaving_a_client_closes_it(server: Server) -> None:
    with sneck.connect(server.url) as client:
        assert client.execute("PING") == b"PONG"
    with pytest.raises(ValueError, match="closed"):
        client.execute("PING")
