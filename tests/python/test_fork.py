"""A child owns nothing and sends nothing of its parent's; the parent does not notice it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from leases import LIMIT, LONG, SHORT, wait_for_renewal, wait_until

import sneck
from sneck.testing import Server


def in_child(function: Callable[[], object]) -> None:
    """Run a function in a forked child, and fail if it raises there."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException:  # noqa: BLE001 - the child's, told to the parent
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0


def check_child(server: Server, client: sneck.Client, lock: sneck.Lock) -> None:
    """What a child may count on."""
    assert (lock.owned, lock.token, lock.lease, lock.fence) == (False, None, "none", None)
    with pytest.raises(sneck.NotOwned):
        lock.release()
    with pytest.raises(sneck.NotOwned):
        lock.extend()
    assert lock.acquire(blocking=False) is False
    for each in (client, sneck.connect(server.url)):
        assert each.execute("PING") == b"PONG"
        with each.lock(f"{os.getpid()}", ttl=LONG) as own:
            wait_for_renewal(own)
            assert own.owned
        told: list[sneck.Lock] = []
        own = each.lock(f"{os.getpid()}", ttl=SHORT, on_lost=told.append, renew=True)
        own.acquire()
        each.execute("DEL", own.name)
        wait_until(partial(bool, told))


@pytest.mark.parametrize("kind", [sneck.Client.lock, sneck.Client.rlock])
def test_a_child_owns_nothing(
    server: Server, client: sneck.Client, name: str, kind: Callable[..., sneck.Lock]
) -> None:
    told: list[sneck.Lock] = []
    with kind(client, name, ttl=LONG, on_lost=told.append) as lock:
        token = lock.token
        in_child(lambda: check_child(server, client, lock))
        assert client.execute("GET", name) == token
        assert lock.owned
        wait_for_renewal(lock)
        assert lock.owned
    assert told == []


def test_a_child_that_drops_everything_disturbs_nobody(client: sneck.Client, name: str) -> None:
    held = [client.lock(f"{name}:{number}", ttl=LONG, renew=True) for number in range(5)]
    for lock in held:
        lock.acquire()

    def drop() -> None:
        held.clear()
        client.close()

    for _ in range(5):
        in_child(drop)
    for lock in held:
        wait_for_renewal(lock)
    assert all(lock.owned for lock in held)
    assert client.execute("PING") == b"PONG"


def test_a_fork_while_locks_are_lost_and_told(client: sneck.Client, name: str) -> None:
    calls = 0

    def slowly(lock: sneck.Lock) -> None:
        nonlocal calls
        time.sleep(0.02)
        calls += 1

    for number in range(20):
        locks = [
            client.lock(f"{name}:{number}:{i}", ttl=0.02, renew=True, on_lost=slowly)
            for i in range(5)
        ]
        for lock in locks:
            lock.acquire()
        client.execute("DEL", *[lock.name for lock in locks])
        time.sleep(0.01)
        in_child(locks.clear)
        in_child(lambda: client.execute("PING"))
    wait_until(lambda: calls > 0)


def forked(url: str, lock: sneck.Lock, results: multiprocessing.SimpleQueue[object]) -> None:
    """Run in a process of multiprocessing."""
    results.put((lock.name, lock.ttl, lock.owned, lock.acquire(blocking=False)))


def test_multiprocessing_by_fork(server: Server, client: sneck.Client, name: str) -> None:
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    with client.lock(name, ttl=LONG) as lock:
        process = context.Process(target=forked, args=(server.url, lock, results))
        process.start()
        assert results.get() == (name, LONG, False, False)
        process.join(LIMIT)
        assert process.exitcode == 0
        wait_for_renewal(lock)
        assert lock.owned


# it imports itself anew in each process, so it must be a file
SPAWNED = """
import multiprocessing, sys, sneck

def lost(lock):
    pass

def work(lock):
    return lock.name, lock.ttl, lock.owned, lock.acquire(blocking=False), lock._options.on_lost

if __name__ == "__main__":
    url, name = sys.argv[1:]
    client = sneck.connect(url, label="parent")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with client.lock(name, ttl=60, on_lost=lost) as lock:
            found = pool.apply(work, [lock])
            assert found[:4] == (name, 60, False, False), found
            assert found[4].__name__ == "lost"
        assert pool.apply(work, [lock])[3]
"""


def test_multiprocessing_by_spawn(server: Server, name: str, tmp_path: Path) -> None:
    script = tmp_path / "spawned.py"
    script.write_text(SPAWNED)
    done = subprocess.run(
        [sys.executable, str(script), server.url, name],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


EXIT_IN_CHILD = """
import os, sys, threading, time, warnings, sneck
warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
client = sneck.connect(sys.argv[1])
began = threading.Event()
def slowly(lock):
    began.set()
    time.sleep(0.1)
lock = client.lock(sys.argv[2], ttl=0.03, renew=True, on_lost=slowly)
lock.acquire()
client.execute("DEL", lock.name)
began.wait()
child = os.fork()  # its atexit functions must not wait for what runs in the parent
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(status)
"""


def test_a_child_may_end_as_programs_do(
    server: Server, name: str, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    process = spawn(EXIT_IN_CHILD, server.url, name)
    output, _ = process.communicate(timeout=LIMIT)
    assert (process.returncode, output) == (0, "")
