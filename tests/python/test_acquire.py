"""acquire(), release(), extend() and what a lock tells of itself."""

from __future__ import annotations

import inspect
import os
import socket
import threading
from typing import Any

import pytest

import sneck
from sneck.testing import Server


def test_acquire_tells_whether_the_lock_is_held(client: sneck.Client, name: str) -> None:
    first, second = client.lock(name), client.lock(name, wait=0)
    assert first.acquire() is True
    assert second.acquire() is False
    assert second.acquire(timeout=0.01) is False
    assert second.acquire(False) is False
    first.release()
    assert second.acquire() is True
    second.release()


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((False, 1), {}),
        ((False, 0), {}),
        ((), {"blocking": False, "timeout": 0.5}),
        ((True, -2), {}),
        ((), {"timeout": -0.5}),
        ((True, "1"), {}),
        ((), {"timeout": None}),
        ((True, 1, 2), {}),
        ((True,), {"blocking": True}),
        ((), {"wait": 1}),
    ],
)
def test_arguments_of_acquire_are_checked_as_those_of_a_threading_lock(
    client: sneck.Client, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises((TypeError, ValueError)) as ours:
        client.lock(name).acquire(*args, **kwargs)
    with pytest.raises((TypeError, ValueError)) as theirs:
        threading.Lock().acquire(*args, **kwargs)
    assert ours.type is theirs.type


@pytest.mark.parametrize("timeout", [-1, -1.0])
def test_a_timeout_of_minus_one_is_the_wait_of_the_lock(
    client: sneck.Client, name: str, timeout: float
) -> None:
    with client.lock(name):
        assert client.lock(name, wait=0.01).acquire(True, timeout) is False
        assert client.lock(name).acquire(False, timeout) is False


def test_methods_have_signatures() -> None:
    assert str(inspect.signature(sneck.Lock.acquire)) == "(self, /, blocking=True, timeout=-1)"
    assert str(inspect.signature(sneck.Lock.extend)) == "(self, /, ttl=None)"
    assert str(inspect.signature(sneck.Client.execute)) == "(self, /, *args)"


@pytest.mark.parametrize("thing", [sneck, sneck.Client, sneck.Lock])
def test_everything_public_is_documented(thing: object) -> None:
    for public, value in inspect.getmembers(thing):
        if not public.startswith("_") and (callable(value) or inspect.isdatadescriptor(value)):
            assert inspect.getdoc(value), public


def test_a_lock_tells_its_name_and_ttl(client: sneck.Client) -> None:
    lock = client.lock(b"\xff\0", ttl=2.5)
    assert (lock.name, lock.ttl) == (b"\xff\0", 2.5)
    assert client.lock("reports:42").name == "reports:42"
    assert client.lock("x").ttl == 10.0


def test_a_lock_tells_whether_it_is_owned(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=60)
    assert (lock.owned, lock.token, lock.remaining()) == (False, None, 0.0)
    assert repr(lock) == f"<sneck.Lock {name!r} not owned>"
    lock.acquire()
    assert lock.owned is True
    assert lock.token == client.execute("GET", name)
    assert 0 < lock.remaining() < 60
    assert repr(lock) == f"<sneck.Lock {name!r} owned>"
    lock.release()
    assert (lock.owned, lock.token, lock.remaining()) == (False, None, 0.0)


def test_locked_tells_whether_anybody_holds_the_lock(client: sneck.Client, name: str) -> None:
    lock, other = client.lock(name), client.lock(name)
    assert lock.locked() is False
    with other:
        assert lock.locked() is True
    assert lock.locked() is False


def test_extend_sets_the_time_that_is_left(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=60)
    lock.acquire()
    lock.extend(600)
    assert 300 < lock.remaining() < 600
    lock.extend(ttl=90.5)
    assert 60 < lock.remaining() < 90.5
    lock.extend()
    assert lock.remaining() < 60
    lock.release()


def test_what_is_not_owned_cannot_be_released_or_extended(client: sneck.Client, name: str) -> None:
    lock = client.lock(name)
    with pytest.raises(sneck.NotOwned, match=name):
        lock.release()
    with pytest.raises(sneck.NotOwned, match=name):
        lock.extend()


def test_the_holder_is_told(server: Server, name: str) -> None:
    with sneck.connect(server.url, label="cron") as client:
        lock = client.lock(name, ttl=60)
        assert lock.holder() is None
        with lock:
            holder = lock.holder()
            assert holder is not None
            assert (holder.pid, holder.label, holder.foreign) == (os.getpid(), "cron", False)
            assert socket.gethostname().startswith(holder.host)
            assert holder.token == lock.token
            assert holder.ttl is not None
            assert 0 < holder.ttl <= 60
        with client.lock(name, label="own"):
            holder = lock.holder()
            assert holder is not None
            assert holder.label == "own"


def test_a_foreign_holder_that_never_expires_has_no_ttl(client: sneck.Client, name: str) -> None:
    client.execute("SET", name, b"\xfftoken")
    assert client.lock(name).holder() == sneck.Holder(b"\xfftoken", "", 0, "", None, True)


def test_a_holder_cannot_be_changed() -> None:
    holder = sneck.Holder(b"t", "host", 1, "label", 1.0, False)
    with pytest.raises(AttributeError):
        holder.pid = 2  # type: ignore[misc]
