"""The queue: who waits, who is next, what a client has counted, and locks taken away."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import sneck
from sneck import _default
from sneck.testing import Server

LIMIT = 30.0
TTL = 600.0  # of locks whose leases must not end during a test
NOWHERE = "unix:///nowhere/at/all"  # whatever is sent there fails with another error

Until = Callable[[Callable[[], bool]], None]
Spawn = Callable[..., subprocess.Popen[str]]

# A shell starts its background jobs, such as these tests, with SIGINT ignored.
WAITER = """
import signal, sys, sneck
signal.signal(signal.SIGINT, signal.default_int_handler)
lock = sneck.connect(sys.argv[1]).lock(sys.argv[2], ttl=600)
try:
    lock.acquire()
except KeyboardInterrupt:
    print("interrupted", lock.owned, lock.token)
"""


class Queue:
    """Threads that wait for a lock, one behind the other, and note when they have it."""

    def __init__(
        self, client: sneck.Client, name: str, pool: ThreadPoolExecutor, until: Until
    ) -> None:
        self.served: list[str] = []
        self.enough = threading.Event()
        self._client, self._name, self._pool, self._until = client, name, pool, until

    def add(self, label: str, client: sneck.Client | None = None) -> Future[None]:
        """Start a thread that waits, and see it behind all others."""
        waits = len(self._client.waiters(self._name))
        lock = (client or self._client).lock(self._name, ttl=TTL, label=label)
        done = self._pool.submit(self._serve, lock, label)
        self._until(lambda: len(self._client.waiters(self._name)) == waits + 1)
        return done

    def _serve(self, lock: sneck.Lock, label: str) -> None:
        with lock:
            self.served.append(label)
            assert self.enough.wait(LIMIT)


@pytest.fixture
def queue(client: sneck.Client, name: str, until: Until) -> Iterator[Queue]:
    """A queue without anybody in it yet; whoever has the lock keeps it until `enough`."""
    with ThreadPoolExecutor(16) as pool:
        made = Queue(client, name, pool, until)
        try:
            yield made
        finally:
            made.enough.set()


@pytest.fixture
def offline() -> sneck.Client:
    """A client without a server."""
    return sneck.connect(NOWHERE)


def queue_key(name: str) -> str:
    return f"{{{name}}}:sneck:queue"


def entry_of(pid: int) -> str:
    """What a process leaves in the queue."""
    return f"sneck:host:{pid}:label:{'0' * 32} inbox 1000"


def is_gone(client: sneck.Client, name: str) -> bool:
    return client.execute("EXISTS", name, queue_key(name)) == 0


# ------------------------------------------------------------------ who waits


def test_those_who_wait_are_told_in_their_order(
    client: sneck.Client, name: str, queue: Queue
) -> None:
    assert client.waiters(name) == []
    with client.lock(name, ttl=TTL):
        assert client.waiters(name) == []
        for label in ("first", "zwölfte", ""):
            queue.add(label)
        found = client.waiters(name)
        assert client.waiters(name.encode())[0].label == "first"
        queue.enough.set()
    assert [each.label for each in found] == ["first", "zwölfte", ""]
    assert {each.pid for each in found} == {os.getpid()}
    assert all(each.host and socket.gethostname().startswith(each.host) for each in found)
    waited = [each.waited for each in found]
    assert waited == sorted(waited, reverse=True)
    assert waited[-1] >= 0.0


def test_a_wait_is_told_in_seconds(client: sneck.Client, name: str) -> None:
    seconds = client.execute("EVAL", "return tonumber(redis.call('TIME')[1])", 0)
    assert isinstance(seconds, int)
    since = (seconds - 90) * 1_000_000
    client.execute("ZADD", queue_key(name), since, entry_of(7))
    client.execute("ZADD", queue_key(name), since + 1, "somebody's inbox 1000")
    ours, foreign = client.waiters(name)
    client.execute("DEL", queue_key(name))
    assert (ours.host, ours.pid, ours.label) == ("host", 7, "label")
    assert 90 <= ours.waited < 90 + LIMIT
    assert (foreign.host, foreign.pid, foreign.label) == ("", 0, "")


def test_only_the_first_thousand_are_listed(client: sneck.Client, name: str) -> None:
    for number in range(1001):
        client.execute("ZADD", queue_key(name), number, entry_of(number))
    found = client.waiters(name)
    client.execute("DEL", queue_key(name))
    assert [each.pid for each in found] == list(range(1000))


def test_names_have_the_prefix_of_the_client(
    server: Server, name: str, client: sneck.Client, queue: Queue
) -> None:
    with (
        sneck.connect(server.url, prefix=name[:-1]) as prefixed,
        client.lock(name, ttl=TTL) as lock,
    ):
        queue.add("waits")
        assert [each.label for each in prefixed.waiters(name[-1])] == ["waits"]
        queue.enough.set()
        assert prefixed.force_release(name[-1]) is True
        with pytest.raises(sneck.NotOwned):
            lock.release()
        lock.acquire()


# ---------------------------------------------------------------------- order


def test_threads_are_served_in_the_order_of_their_arrival(
    server: Server, client: sneck.Client, name: str, queue: Queue
) -> None:
    labels = [str(number) for number in range(12)]
    with sneck.connect(server.url) as other:
        with client.lock(name, ttl=TTL):
            served = [
                queue.add(label, client if number % 2 else other)
                for number, label in enumerate(labels)
            ]
            queue.enough.set()
        for each in served:
            each.result(LIMIT)
    assert queue.served == labels
    assert is_gone(client, name)


def ways_to_try(client: sneck.Client, name: str) -> dict[str, Callable[[], object]]:
    """Make each kind of fair lock and try it once; False and LockTimeout mean no."""
    options: dict[str, Any] = {"ttl": TTL, "wait": 0, "fair": True}
    return {
        "lock": lambda: client.lock(name, **options).acquire(),
        "adopt": lambda: client.adopt(name, "token", **options).acquire(),
        "locked": client.locked(name, **options)(lambda: True),
        "sneck.lock": lambda: sneck.lock(name, **options).acquire(),
        "sneck.locked": sneck.locked(name, **options)(lambda: True),
    }


@pytest.mark.parametrize("way", ways_to_try(sneck.connect(NOWHERE), "x"))
def test_a_fair_lock_does_not_pass_those_who_wait(
    client: sneck.Client, name: str, queue: Queue, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(_default, "_made", [client])
    client.lock(name, ttl=TTL).acquire()
    served = queue.add("first")
    client.execute("DEL", name)  # nobody is told, so the lock is free with one who waits
    try:
        took = ways_to_try(client, name)[way]()
    except sneck.LockTimeout:
        took = False
    assert took is False
    queue.enough.set()
    served.result(LIMIT)


@pytest.mark.parametrize("way", ways_to_try(sneck.connect(NOWHERE), "x"))
def test_a_fair_lock_is_taken_when_nobody_waits(
    client: sneck.Client, name: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(_default, "_made", [client])
    assert ways_to_try(client, name)[way]() is True


# -------------------------------------------------------------- force_release


def test_a_lock_that_is_taken_away_goes_to_who_waits_first(
    client: sneck.Client, name: str, queue: Queue, until: Until
) -> None:
    lock = client.lock(name, ttl=TTL)
    lock.acquire()
    queue.add("first")
    queue.add("second")
    assert client.force_release(name) is True
    until(lambda: queue.served == ["first"])
    assert [each.label for each in client.waiters(name)] == ["second"]
    holder = lock.holder()
    assert holder is not None
    assert holder.label == "first"
    with pytest.raises(sneck.NotOwned):
        lock.release()
    queue.enough.set()
    until(lambda: queue.served == ["first", "second"])


@pytest.mark.parametrize("options", [(), ("PX", 600_000)])
def test_a_foreign_lock_can_be_taken_away(
    client: sneck.Client, name: str, options: tuple[str | int, ...]
) -> None:
    client.execute("SET", name, "somebody else", *options)
    assert client.force_release(name) is True
    assert is_gone(client, name)
    assert client.force_release(name) is False


def test_what_is_no_lock_is_not_taken_away(client: sneck.Client, name: str) -> None:
    client.execute("RPUSH", name, "1")
    with pytest.raises(sneck.ServerError) as raised:
        client.force_release(name)
    assert raised.value.code == "WRONGTYPE"
    assert client.execute("DEL", name) == 1


# ---------------------------------------------------------------------- stats


def test_a_client_counts_what_it_does(
    server: Server, name: str, client: sneck.Client, queue: Queue
) -> None:
    with sneck.connect(server.url) as counted:
        assert counted.stats() == sneck.Stats(0, 0, 0, 0, 0.0, 0, 0, "untried")
        with counted.lock(name, ttl=TTL):
            pass
        assert counted.stats() == sneck.Stats(1, 0, 0, 0, 0.0, 0, 0, "untried")
        queue.enough.set()
        rounds = 0
        # A waiter's own timer can win against the hand-over, but not for ever.
        while counted.stats().handoffs == 0:
            rounds += 1
            with client.lock(name, ttl=TTL):
                served = queue.add("waits", counted)
            served.result(LIMIT)
        stats = counted.stats()
    assert (stats.acquisitions, stats.contended) == (1 + rounds, rounds)
    assert 1 <= stats.handoffs <= rounds
    assert (stats.losses, stats.unknown, stats.wakeups) == (0, 0, "used")


def test_a_wait_is_counted_in_seconds(server: Server, client: sneck.Client, name: str) -> None:
    with sneck.connect(server.url) as counted, client.lock(name, ttl=TTL):
        assert counted.lock(name).acquire(timeout=0.1) is False
        stats = counted.stats()
    assert (stats.acquisitions, stats.contended) == (0, 1)
    assert 0.1 <= stats.wait < LIMIT


def test_losses_are_counted(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=TTL)
    lock.acquire()
    client.execute("DEL", name)
    with pytest.raises(sneck.NotOwned):
        lock.release()
    assert client.stats().losses == 1


def test_unknown_outcomes_are_counted(until: Until) -> None:
    def is_answered() -> bool:
        with contextlib.suppress(sneck.OutcomeUnknown):
            return client.execute("PING") == b"PONG"
        return False

    with Server() as own, sneck.connect(own.url, timeout=0.1, connect_timeout=LIMIT) as client:
        until(is_answered)
        before = client.stats().unknown
        os.kill(own.pid, signal.SIGSTOP)
        try:
            with pytest.raises(sneck.OutcomeUnknown):
                client.execute("SET", "x", "y")
        finally:
            os.kill(own.pid, signal.SIGCONT)
        assert client.stats().unknown == before + 1


@pytest.fixture
def unheard(server: Server, client: sneck.Client) -> Iterator[sneck.Client]:
    """A client whose user may not publish."""
    rules = ("on", "nopass", "~*", "&*", "+@all", "-publish")
    client.execute("ACL", "SETUSER", "unheard", *rules)
    with sneck.connect(server.url.replace("unix://", "unix://unheard:any@")) as made:
        yield made
    client.execute("ACL", "DELUSER", "unheard")


def test_where_wakeups_are_denied_waiters_poll(
    client: sneck.Client, unheard: sneck.Client, name: str, until: Until
) -> None:
    holder = client.lock(name, ttl=TTL)
    holder.acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(unheard.lock(name, ttl=TTL, poll=0.01).acquire, timeout=LIMIT)
        until(lambda: unheard.stats().polls > 1)
        assert client.waiters(name) == []
        holder.release()
        assert waiting.result(LIMIT) is True
    assert unheard.stats().wakeups == "denied"
    assert unheard.stats().handoffs == 0


@pytest.mark.parametrize("way", ["lock", "adopt", "locked", "sneck.lock", "sneck.locked"])
def test_a_waiter_that_polls_does_so_at_its_interval(
    client: sneck.Client,
    unheard: sneck.Client,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    monkeypatch.setattr(_default, "_made", [unheard])
    seldom: dict[str, Any] = {"ttl": TTL, "wait": 0.5, "poll": 3600}
    ways: dict[str, Callable[[], object]] = {
        "lock": unheard.lock(name, **seldom).__enter__,
        "adopt": lambda: acquire_or_fail(unheard.adopt(name, "token", **seldom)),
        "locked": unheard.locked(name, **seldom)(lambda: None),
        "sneck.lock": sneck.lock(name, **seldom).__enter__,
        "sneck.locked": sneck.locked(name, **seldom)(lambda: None),
    }
    with client.lock(name, ttl=TTL), pytest.raises(sneck.LockTimeout):
        ways[way]()
    assert unheard.stats().polls <= 1  # the one that ends the wait


def acquire_or_fail(lock: sneck.Lock) -> None:
    if not lock.acquire():
        raise sneck.LockTimeout


# ------------------------------------------------------------------ leaving it


def test_ctrl_c_in_the_queue_leaves_it(
    server: Server, client: sneck.Client, name: str, spawn: Spawn, queue: Queue, until: Until
) -> None:
    queue.enough.set()
    with client.lock(name, ttl=TTL):
        waiter = spawn(WAITER, server.url, name)
        until(lambda: len(client.waiters(name)) == 1)
        assert client.waiters(name)[0].pid == waiter.pid
        served = queue.add("second")
        waiter.send_signal(signal.SIGINT)
        output, _ = waiter.communicate(timeout=LIMIT)
        assert output == "interrupted False None\n"
        until(lambda: [each.label for each in client.waiters(name)] == ["second"])
    served.result(LIMIT)
    assert is_gone(client, name)


def test_a_wait_that_ends_leaves_the_queue(client: sneck.Client, name: str) -> None:
    with client.lock(name, ttl=TTL):
        assert client.lock(name, ttl=TTL).acquire(timeout=0.1) is False
        assert client.waiters(name) == []
    assert is_gone(client, name)


# ------------------------------------------------------------------- arguments


@pytest.mark.parametrize("value", [None, 1, 1.5, ["x"], bytearray(b"x"), object()])
def test_names_are_checked_as_those_of_locks(offline: sneck.Client, value: Any) -> None:
    for attempt in (offline.waiters, offline.force_release):
        with pytest.raises(TypeError, match="name"):
            attempt(value)
        for bad in ("", b"", "x" * (2**20 + 1), "\udc80"):
            with pytest.raises(ValueError):  # noqa: PT011 - one of them is an error of the codec
                attempt(bad)


def test_without_a_server_there_is_an_error(offline: sneck.Client) -> None:
    for attempt in (offline.waiters, offline.force_release):
        with pytest.raises(sneck.ConnectionError):
            attempt("x")


def test_a_closed_client_tells_what_it_has_counted(server: Server, name: str) -> None:
    client = sneck.connect(server.url)
    with client.lock(name):
        pass
    client.close()
    for attempt in (client.waiters, client.force_release):
        with pytest.raises(ValueError, match="closed"):
            attempt(name)
    assert client.stats().acquisitions == 1


def test_what_is_told_cannot_be_changed(client: sneck.Client) -> None:
    with pytest.raises(AttributeError):
        sneck.Waiter("host", 1, "label", 0.5).pid = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        client.stats().losses = 2  # type: ignore[misc]
