"""A lease that is renewed lasts, one that is lost is known, and a fence tells old from new."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable

import pytest
from leases import LIMIT, LONG, SHORT, lose, wait_for_end, wait_for_renewal, wait_until

import sneck
from sneck.testing import Server

Until = Callable[[Callable[[], bool]], None]
Spawn = Callable[..., subprocess.Popen[str]]
TTL = 1.0  # of leases that are to be lost
RENEWED = 3.0  # a ttl in seconds that renewal prolongs while a test waits for it


def wait_for_renewal_of(client: sneck.Client, name: str) -> None:
    """Lengthen a lease of RENEWED, which its renewal sets back to the ttl."""
    client.execute("PEXPIRE", name, "600000")

    def is_renewed() -> bool:
        left = client.execute("PTTL", name)
        assert isinstance(left, int)
        return left <= RENEWED * 1000

    wait_until(is_renewed)


@pytest.mark.parametrize("renew", [None, True])
def test_with_renews(client: sneck.Client, name: str, renew: bool | None) -> None:
    with client.lock(name, ttl=LONG, renew=renew) as lock:
        wait_for_renewal(lock)
        assert client.execute("GET", name) == lock.token
        assert lock.owned
        assert (lock.lost, lock.lease) == (False, "held")
    assert client.execute("EXISTS", name) == 0
    assert lock.lease == "none"


def test_with_renews_an_adopted_lock(client: sneck.Client, name: str) -> None:
    first = client.lock(name, ttl=LONG)
    first.acquire()
    assert first.token is not None
    with client.adopt(name, first.token, ttl=LONG) as lock:
        wait_for_renewal(lock)
        assert client.execute("GET", name) == lock.token == first.token


def test_a_decorated_function_keeps_its_lock(client: sneck.Client, name: str) -> None:
    @client.locked(name, ttl=RENEWED)
    def work() -> object:
        wait_for_renewal_of(client, name)
        return client.execute("EXISTS", name)

    assert work() == 1


def test_renew_false_lets_with_lose_it(client: sneck.Client, name: str) -> None:
    with pytest.raises(sneck.NotOwned), client.lock(name, ttl=SHORT, renew=False) as lock:
        wait_for_end(client, name)
        assert (lock.lost, lock.lease) == (True, "lost")


@pytest.mark.parametrize("renew", [None, False])
def test_acquire_renews_only_where_it_is_told_to(
    client: sneck.Client, name: str, renew: bool | None
) -> None:
    lock = client.lock(name, ttl=SHORT, renew=renew)
    lock.acquire()
    wait_for_end(client, name)
    assert not lock.owned


def test_acquire_renews_where_it_is_told_to(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=LONG, renew=True)
    lock.acquire()
    wait_for_renewal(lock)


def test_keep_alive_begins_and_ends_renewal(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=RENEWED)
    with pytest.raises(sneck.NotOwned, match=name):
        lock.keep_alive()
    lock.acquire()
    lock.keep_alive()
    wait_for_renewal_of(client, name)
    assert lock.owned
    lock.keep_alive(on=False)
    wait_for_end(client, name)


def test_nothing_is_renewed_for_longer_than_max_hold(client: sneck.Client, name: str) -> None:
    with pytest.raises(sneck.NotOwned), client.lock(name, ttl=SHORT, max_hold=0.001):
        wait_for_end(client, name)


def test_a_lock_that_is_gone_is_not_renewed(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=SHORT, renew=True)
    lock.acquire()
    del lock
    wait_for_end(client, name)


def test_a_closed_client_renews_nothing(server: Server, client: sneck.Client, name: str) -> None:
    closing = sneck.connect(server.url)
    lock = closing.lock(name, ttl=TTL, renew=True)
    lock.acquire()
    closing.close()
    with pytest.raises(ValueError, match=rf"{name}.* closed"):
        lock.keep_alive()
    wait_for_end(client, name)
    assert lock.lost


def test_a_thread_that_never_lets_go_of_the_gil_keeps_its_lease(
    client: sneck.Client, name: str
) -> None:
    sleep = ctypes.PyDLL(None).usleep  # unlike time.sleep()
    with client.lock(name, ttl=RENEWED) as lock:
        sleep(int((RENEWED + 1) * 1e6))
        assert lock.owned
        assert lock.remaining() > 0
        assert client.execute("GET", name) == lock.token


def test_renewal_goes_on_after_one_that_failed(name: str, until: Until) -> None:
    with (
        Server() as own,
        sneck.connect(own.url, timeout=2) as client,
        client.lock(name, ttl=LONG, renew=False) as lock,
    ):
        lock.extend(LONG / 2)
        os.kill(own.pid, signal.SIGSTOP)
        try:
            lock.keep_alive()  # which renews at once
            until(lambda: lock.lease == "uncertain")
            assert lock.owned
        finally:
            os.kill(own.pid, signal.SIGCONT)
        until(lambda: lock.lease == "held")


@pytest.mark.parametrize("how", ["deleted", "taken"])
def test_a_loss_is_known_while_the_body_runs(client: sneck.Client, name: str, how: str) -> None:
    with pytest.raises(sneck.NotOwned, match=name), client.lock(name, ttl=LONG) as lock:
        lose(lock, by="DEL" if how == "deleted" else "SET")
        assert (lock.owned, lock.lease, lock.token) == (False, "lost", None)
    assert client.stats().losses == 1


def test_a_loss_that_renewal_found_never_replaces_the_bodys_exception(
    client: sneck.Client, name: str
) -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught, client.lock(name, ttl=LONG) as lock:
        lose(lock)
        raise error
    assert caught.value is error
    assert "NotOwned" in "".join(traceback.format_exception(error))


def test_a_lost_lock_can_be_acquired_again(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=LONG, renew=True)
    lock.acquire()
    lose(lock)
    with lock:
        assert (lock.lost, lock.lease) == (False, "held")


NO_THREAD = """
import resource, sys, sneck
client = sneck.connect(sys.argv[1])
client.execute("PING")
lock = client.lock(sys.argv[2])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, -1))
try:
    with lock:
        print("the body ran")
except MemoryError:
    print(lock.token, client.execute("EXISTS", lock.name))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_body_that_cannot_be_renewed_never_runs(server: Server, name: str, spawn: Spawn) -> None:
    output, _ = spawn(NO_THREAD, server.url, name).communicate(timeout=LIMIT)
    assert output == "None 0\n"


def test_interrupted_pairs_leave_nothing_that_is_renewed(
    client: sneck.Client, name: str, until: Until
) -> None:
    class Interrupt(Exception):
        pass

    for number in range(300):
        with contextlib.suppress(Interrupt), client.lock(f"{name}:{number % 7}", ttl=TTL):
            raise Interrupt
    time.sleep(TTL)  # a ghost would have been renewed
    client.execute("CONFIG", "RESETSTAT")
    time.sleep(TTL)
    stats = client.execute("INFO", "commandstats")
    assert isinstance(stats, bytes)
    assert b"evalsha" not in stats


def test_a_fence_grows_with_each_acquire(client: sneck.Client, name: str) -> None:
    lock, other = client.lock(name, fence=True), client.lock(name, fence=True)
    assert lock.fence is None
    fences = []
    for each in (lock, other) * 10:
        with each:
            assert each.fence is not None
            fences.append(each.fence)
            each.extend()
            assert each.fence == fences[-1]
        client.execute("DEL", f"{{{name}}}:sneck:fence")
    assert fences == sorted(set(fences))


def test_there_is_no_fence_unless_asked_for(client: sneck.Client, name: str) -> None:
    with client.lock(name) as lock:
        assert lock.fence is None
        assert lock.token is not None
        adopted = client.adopt(name, lock.token, fence=True)
        adopted.extend()
        assert adopted.fence is None


def test_a_clone_has_the_options_and_owns_nothing(client: sneck.Client, name: str) -> None:
    told: list[sneck.Lock] = []
    lock = client.lock(
        name, ttl=7, wait=0, label="me", fair=True, fence=True, max_hold=1, on_lost=told.append
    )
    with lock:
        clone = lock.clone()
        assert (clone.name, clone.ttl, clone.token, clone.lease) == (name, 7, None, "none")
        assert clone.acquire() is False
    with clone:
        holder = clone.holder()
        assert holder is not None
        assert holder.label == "me"
        assert clone.fence is not None
    assert clone._options == lock._options
