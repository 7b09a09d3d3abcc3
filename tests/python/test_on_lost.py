"""on_lost: called once for each loss, from another thread, with a lock that is alive."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from leases import LIMIT, LONG, lose, wait_for_end, wait_for_renewal

import sneck
import sneck.aio
from sneck.testing import Server

Until = Callable[[Callable[[], bool]], None]
TTL = 1.0  # of leases that are to be lost


class Told:
    """An on_lost that keeps what it is told."""

    def __init__(self) -> None:
        self.locks: list[sneck.Lock] = []
        self.states: list[tuple[bool, bool, str, int]] = []

    def __call__(self, lock: sneck.Lock) -> None:
        self.states.append((lock.lost, lock.owned, lock.lease, threading.get_ident()))
        self.locks.append(lock)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keep what is reported about exceptions that nobody can catch."""
    reports: list[str] = []
    monkeypatch.setattr(
        sys, "unraisablehook", lambda report: reports.append(f"{report.exc_value} {report.object}")
    )
    return reports


def acquire_and_lose(lock: sneck.Lock) -> None:
    lock.acquire()
    lose(lock)


def test_it_is_called_once_with_the_lock(
    client: sneck.Client, name: str, told: Told, until: Until
) -> None:
    with pytest.raises(sneck.NotOwned), client.lock(name, ttl=LONG, on_lost=told) as lock:
        lose(lock)
        until(lambda: len(told.locks) == 1)
    assert told.locks == [lock]
    lost, owned, lease, thread = told.states[0]
    assert (lost, owned, lease) == (True, False, "lost")
    assert thread != threading.get_ident()
    told.locks.clear()
    acquire_and_lose(lock)
    until(lambda: told.locks == [lock])


def test_it_is_called_when_the_validity_has_ended(name: str, told: Told, until: Until) -> None:
    with Server() as own, sneck.connect(own.url) as client:
        lock = client.lock(name, ttl=TTL, renew=True, on_lost=told)
        lock.acquire()
        own.stop()
        until(lambda: told.locks == [lock])
        assert lock.lease == "lost"


def test_it_is_not_called_without_a_loss(client: sneck.Client, name: str, told: Told) -> None:
    with client.lock(name, ttl=LONG, on_lost=told) as lock:
        wait_for_renewal(lock)
    lock = client.lock(name, ttl=3, renew=True, on_lost=told)
    lock.acquire()
    del lock
    wait_for_end(client, name)
    assert told.locks == []


def test_what_it_raises_is_reported_and_renewal_goes_on(
    client: sneck.Client, name: str, told: Told, until: Until, unraisable: list[str]
) -> None:
    def fail(lock: sneck.Lock) -> None:
        raise KeyError("mine")

    def leave(lock: sneck.Lock) -> None:
        raise SystemExit("enough")

    with client.lock(f"{name}:kept", ttl=LONG) as kept:
        for on_lost in (fail, leave):
            acquire_and_lose(client.lock(name, ttl=LONG, on_lost=on_lost))
        until(lambda: len(unraisable) == 2)
        assert "mine" in unraisable[0]
        assert "enough" in unraisable[1]
        assert all(name in report for report in unraisable)
        acquire_and_lose(client.lock(name, ttl=LONG, on_lost=told))
        until(lambda: len(told.locks) == 1)
        wait_for_renewal(kept)
        assert kept.owned


@pytest.mark.parametrize("value", [1, "function", []])
def test_it_must_be_callable(client: sneck.Client, name: str, value: object) -> None:
    with pytest.raises(TypeError, match="on_lost"):
        client.lock(name, on_lost=value)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on_lost"):
        client.adopt(name, "token", on_lost=value)  # type: ignore[arg-type]


class _Coroutine:
    """Whose call is a coroutine function."""

    async def __call__(self, lock: object) -> None:
        """Do nothing."""

    async def told(self, lock: object) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    "function", [_Coroutine(), _Coroutine().told, functools.partial(_Coroutine().told, None)]
)
def test_it_must_be_no_coroutine_function(
    server: Server, client: sneck.Client, name: str, function: Any
) -> None:
    aclient = sneck.aio.connect(server.url)
    makers: tuple[Callable[..., object], ...] = (
        *(client.lock, client.rlock, client.legacy_lock),
        *(aclient.lock, aclient.rlock, aclient.legacy_lock),
    )
    for make in makers:
        with pytest.raises(TypeError, match="no coroutine function"):
            make(name, on_lost=function)
    adopters: tuple[Callable[..., object], ...] = (client.adopt, aclient.adopt)
    for adopt in adopters:
        with pytest.raises(TypeError, match="no coroutine function"):
            adopt(name, "token", on_lost=function)


def test_it_may_do_anything_with_its_lock(
    client: sneck.Client, name: str, until: Until, unraisable: list[str]
) -> None:
    done: list[object] = []

    def again(lock: sneck.Lock) -> None:
        with pytest.raises(sneck.NotOwned):
            lock.release()
        done.append(lock.acquire())
        lock.keep_alive()
        lock.extend()
        lock.release()
        with lock.clone() as clone:
            done.append(clone.owned)

    lock = client.lock(name, ttl=3, renew=True, on_lost=again)
    lock.acquire()
    client.execute("DEL", name)
    until(lambda: len(done) == 2)
    assert done == [True, True]
    assert unraisable == []


def test_it_may_close_its_client(server: Server, name: str, until: Until) -> None:
    client = sneck.connect(server.url)
    closed = threading.Event()

    def close(lock: sneck.Lock) -> None:
        client.close()
        closed.set()

    lock = client.lock(name, ttl=TTL, renew=True, on_lost=close)
    lock.acquire()
    client.execute("DEL", name)
    assert closed.wait(LIMIT)
    with pytest.raises(ValueError, match="closed"):
        lock.acquire()


def test_to_close_a_client_waits_for_it(server: Server, name: str) -> None:
    client = sneck.connect(server.url)
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slowly(lock: sneck.Lock) -> None:
        began.set()
        go_on.wait(LIMIT)
        ended.set()

    lock = client.lock(name, ttl=TTL, renew=True, on_lost=slowly)
    lock.acquire()
    client.execute("DEL", name)
    assert began.wait(LIMIT)
    closing = threading.Thread(target=client.close)
    closing.start()
    go_on.set()
    closing.join(LIMIT)
    assert ended.is_set()


def test_it_may_be_the_last_to_have_the_lock_and_the_client(server: Server, name: str) -> None:
    for _ in range(20):
        began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

        def last(
            lock: sneck.Lock, began: threading.Event = began, go_on: threading.Event = go_on
        ) -> None:
            began.set()
            go_on.wait(LIMIT)

        client = sneck.connect(server.url)
        lock = client.lock(name, ttl=0.03, renew=True, on_lost=last)
        weakref.finalize(lock, ended.set)
        lock.acquire()
        client.execute("DEL", name)
        assert began.wait(LIMIT)
        del lock, client
        go_on.set()
        assert ended.wait(LIMIT)


def test_locks_may_go_away_while_they_are_lost(client: sneck.Client, name: str) -> None:
    """Whether a lock is told or gone first is left to chance, a thousand times."""
    calls = 0

    def count(lock: sneck.Lock) -> None:
        nonlocal calls
        calls += 1
        assert lock.lost

    for _ in range(100):
        locks = [client.lock(f"{name}:{i}", ttl=0.02, renew=True, on_lost=count) for i in range(10)]
        for lock in locks:
            lock.acquire()
        client.execute("DEL", *[lock.name for lock in locks])
        time.sleep(0.008)
        del lock, locks
    assert calls <= 1000


def test_a_lock_in_a_cycle_is_collected(client: sneck.Client, name: str) -> None:
    class Owner:
        def __init__(self) -> None:
            self.lock = client.lock(name, ttl=TTL, renew=True, on_lost=self.lost)

        def lost(self, _: sneck.Lock) -> None:
            raise AssertionError("nobody has it any more")

    owner = Owner()
    owner.lock.acquire()
    gone = weakref.ref(owner.lock)
    del owner
    gc.collect()
    assert gone() is None
    wait_for_end(client, name)


def test_a_held_lock_is_not_kept_by_its_renewal(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=TTL, renew=True, on_lost=print)
    lock.acquire()
    gone = weakref.ref(lock)
    del lock
    assert gone() is None
