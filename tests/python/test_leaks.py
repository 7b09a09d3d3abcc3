"""Nothing is left behind by any call, whether it succeeds or fails."""

from __future__ import annotations

import contextlib
import gc
import pickle
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

import sneck
from sneck.testing import Server

ROUNDS = 300
SLACK = 10_000  # bytes; a leak of 40 bytes a round is more


def use_lock(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, wait=0, label="label")
    with lock:
        lock.extend(ttl=60)
        assert lock.token is not None
        lock.holder()
        repr(lock)
        client.adopt(name, lock.token).extend()


def keep_leases(client: sneck.Client, name: str) -> None:
    told: list[sneck.Lock] = []
    lock = client.lock(name, fence=True, max_hold=9, on_lost=told.append)
    with pytest.raises(sneck.NotOwned):
        lock.keep_alive()
    lock.acquire()
    for on in (True, False, 1):
        lock.keep_alive(on=bool(on))
    assert (lock.lost, lock.lease) == (False, "held")
    assert lock.fence is not None
    lock.clone().acquire(blocking=False)
    pickle.loads(pickle.dumps(client.lock(name)))
    lock.release()
    with client.lock(name, renew=True):
        pass


def be_told(client: sneck.Client, name: str) -> None:
    told: list[bool] = []
    lock = client.lock(name, ttl=0.003, renew=True, on_lost=lambda lock: told.append(lock.lost))
    lock.acquire()
    client.execute("DEL", name)
    while not told:
        time.sleep(0.001)
    with contextlib.suppress(sneck.NotOwned):
        lock.release()


def go_before_being_told(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=0.003, renew=True, on_lost=id)
    lock.acquire()
    client.execute("DEL", name)


def reenter(client: sneck.Client, name: str) -> None:
    lock = client.rlock(name, fence=True, on_lost=print)
    with lock, lock:
        assert lock.owned
        lock.extend()
        client.update(f"{name}:value", lambda _: None, guard=lock)
        lock.clone()
    with contextlib.suppress(sneck.NotOwned):
        lock.release()


def fail_to_acquire(client: sneck.Client, name: str) -> None:
    with client.lock(name), contextlib.suppress(sneck.LockTimeout):
        client.lock(name, wait=0).acquire(timeout=0.001)
        client.lock(name, wait=0).__enter__()


def ask_who_waits(client: sneck.Client, name: str) -> None:
    for number in range(3):
        client.execute("ZADD", f"{{{name}}}:sneck:queue", number, f"{number} inbox 1000")
    assert len(client.waiters(name)) == 3
    client.lock(name, fair=True, poll=1).acquire()
    assert client.adopt(name, "token", fair=True, poll=1).acquire(blocking=False) is False
    assert client.force_release(name) is True
    client.stats()


def execute(client: sneck.Client, name: str) -> None:
    client.execute("EVAL", "return {1, 'text', {redis.error_reply('BAD x')}, false}", 0)
    client.execute("RPUSH", name, *range(20), 0.5)
    with contextlib.suppress(sneck.ServerError):
        client.execute("GET", name)
    client.execute("DEL", name)


def change(client: sneck.Client, name: str) -> None:
    def move(tx: sneck.Transaction) -> None:
        tx.watch(name, f"{name}:b")
        tx.get(name)
        tx.execute("MGET", name, 1, 0.5)
        if tx.conflicts == 0:
            client.execute("INCR", name)
        tx.queue("SET", name, 1)
        tx.queue("LPUSH", name, "x")

    def fail(*_: object) -> str:
        raise KeyError(name)

    client.update(name, lambda old: int(old or 0) + 1)
    client.update(name, lambda _: sneck.KEEP)
    client.compare_and_set(name, 1, "x")
    client.compare_and_set(name, "x", 2, ttl=1.5)
    with contextlib.suppress(sneck.ServerError):
        client.transaction(move, name, f"{name}:b")
    with contextlib.suppress(sneck.Conflict):
        client.transaction(move, name, attempts=1)
    for function in (client.update, lambda *args: client.transaction(*args[::-1])):
        with contextlib.suppress(KeyError):
            function(name, fail)
    client.transaction(lambda tx: tx.abort(), name)
    client.transaction(lambda tx: tx.queue("EXISTS", name), name)
    client.update(name, lambda _: None)


def give_bad_arguments(client: sneck.Client, name: str) -> None:
    lock = client.lock(name)
    bad: list[Callable[[], Any]] = [
        lambda: client.lock(name, ttl=-1),
        lambda: client.lock(name, poll=-1),
        lambda: client.lock(name, max_hold=-1),
        lambda: client.rlock(name, ttl=0.002, on_lost=print),
        lambda: client.lock(name, on_lost=1),  # type: ignore[arg-type]
        lambda: lock.keep_alive(1, 2),  # type: ignore[call-arg,arg-type]
        lambda: client.waiters(""),
        lambda: client.force_release(""),
        lambda: client.lock(""),
        lambda: client.lock(None),  # type: ignore[arg-type]
        lambda: client.execute("ECHO", *range(20), None),  # type: ignore[arg-type]
        lambda: lock.acquire(timeout=-5),
        lambda: lock.acquire(no=1),  # type: ignore[call-arg]
        lock.release,
        lambda: client.update(name, lambda _: []),  # type: ignore[arg-type,return-value]
        lambda: client.update(name, lambda _: 1, guard=name),  # type: ignore[arg-type]
        lambda: client.compare_and_set(name, 1, []),  # type: ignore[arg-type]
        lambda: client.transaction(lambda tx: tx.queue("GET", *range(20), None)),  # type: ignore[arg-type]
        lambda: client.transaction(lambda tx: tx.watch(None)),  # type: ignore[arg-type]
        lambda: client.transaction(lambda tx: tx.queue("MULTI")),
        lambda: client.transaction(lambda tx: tx, *[name] * 20, 5),  # type: ignore[arg-type]
        lambda: sneck.connect("nonsense"),
        lambda: sneck.connect(label=1),  # type: ignore[arg-type]
    ]
    for attempt in bad:
        with contextlib.suppress(TypeError, ValueError, sneck.NotOwned):
            attempt()


def connect(client: sneck.Client, name: str) -> None:
    sneck.connect("unix:///nowhere", client_name="n", prefix=b"p", label="l").lock(name)


@pytest.mark.parametrize(
    "action",
    [
        *(use_lock, keep_leases, be_told, go_before_being_told, reenter),
        *(fail_to_acquire, ask_who_waits),
        *(execute, change, give_bad_arguments, connect),
    ],
)
def test_calls_leave_nothing_behind(
    server: Server, name: str, action: Callable[[sneck.Client, str], None]
) -> None:
    classes = (
        *(sneck.Client, sneck.Lock, sneck.RLock, sneck.Holder, sneck.Waiter, sneck.Stats),
        *(sneck.NotOwned, sneck.ServerError, sneck.Conflict, sneck.Transaction),
    )
    with sneck.connect(server.url) as client:

        def counts() -> list[int]:
            gc.collect()
            return [sys.getrefcount(each) for each in (*classes, client, name)]

        def repeat() -> None:
            for _ in range(ROUNDS):
                action(client, name)

        def grow() -> int:
            tracemalloc.start()
            try:
                repeat()
                assert counts() == before
                return tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()

        repeat()
        before = counts()
        # a leak grows each time, and not only once, as a table of the interpreter's does
        assert min(grow() for _ in range(3)) < SLACK
