"""`with`: the body runs while the lock is held, and its own exception comes first."""

from __future__ import annotations

import traceback

import pytest

import sneck
from sneck._lock import _attach
from sneck.testing import Server


def lose(client: sneck.Client, lock: sneck.Lock) -> None:
    """Take a lock away from its owner."""
    assert client.execute("DEL", lock.name) == 1


def test_the_lock_is_held_in_the_body_only(client: sneck.Client, name: str) -> None:
    with client.lock(name) as lock:
        assert lock.owned
        assert client.execute("GET", name) == lock.token
    assert client.execute("GET", name) is None


@pytest.mark.parametrize("wait", [0, 0.01])
def test_a_body_whose_wait_ended_never_runs(client: sneck.Client, name: str, wait: float) -> None:
    ran = False
    waiting = client.lock(name, wait=wait)
    with client.lock(name), pytest.raises(sneck.LockTimeout, match="held by") as caught, waiting:
        ran = True
    assert not ran
    assert name in str(caught.value)


def test_a_clean_body_whose_lock_was_lost_raises(client: sneck.Client, name: str) -> None:
    with pytest.raises(sneck.NotOwned, match=name), client.lock(name) as lock:
        lose(client, lock)


def test_the_exception_of_a_body_goes_on_and_the_lock_is_released(
    client: sneck.Client, name: str
) -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught, client.lock(name):
        raise error
    assert caught.value is error
    assert client.execute("EXISTS", name) == 0


def test_the_exception_of_a_body_tells_of_the_loss(client: sneck.Client, name: str) -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught, client.lock(name) as lock:
        lose(client, lock)
        raise error
    assert caught.value is error
    told = "".join(traceback.format_exception(error))
    assert "NotOwned" in told
    assert name in told


def test_the_exception_of_a_body_goes_before_any_of_ours(server: Server, name: str) -> None:
    client = sneck.connect(server.url)
    with pytest.raises(KeyError) as caught, client.lock(name):
        client.close()
        raise KeyError("mine")
    assert "closed" in "".join(traceback.format_exception(caught.value))


class NoNotes(Exception):
    """As every exception of Python 3.10."""

    add_note = None


def test_without_notes_the_loss_becomes_the_context() -> None:
    cause = ValueError("first")
    error = NoNotes("mine")
    error.__context__ = cause
    try:
        raise error
    except NoNotes:
        try:
            raise sneck.NotOwned("lost")
        except sneck.NotOwned as loss:
            _attach(error, loss)
    assert isinstance(cause.__context__, sneck.NotOwned)
    assert cause.__context__.__context__ is None
    assert "lost" in "".join(traceback.format_exception(error))


def test_a_lock_can_be_used_again(client: sneck.Client, name: str) -> None:
    lock = client.lock(name)
    tokens = set()
    for _ in range(3):
        with lock:
            tokens.add(lock.token)
    assert len(tokens) == 3


def test_with_on_an_adopted_lock_confirms_it(client: sneck.Client, name: str) -> None:
    first = client.lock(name, ttl=60)
    first.acquire()
    assert first.token is not None
    adopted = client.adopt(name, first.token, ttl=600)
    assert not adopted.owned
    with adopted:
        assert adopted.token == first.token
        assert adopted.remaining() > 60
    assert client.execute("EXISTS", name) == 0


def test_with_on_an_adopted_lock_of_another_raises(client: sneck.Client, name: str) -> None:
    ran = False
    with client.lock(name), pytest.raises(sneck.NotOwned), client.adopt(name, b"no such token"):
        ran = True
    assert not ran


def test_an_adopted_lock_that_was_released_is_acquired_anew(
    client: sneck.Client, name: str
) -> None:
    adopted = client.adopt(name, "token", wait=0)
    client.execute("SET", name, "token", "PX", 60000)
    adopted.release()
    with adopted:
        assert adopted.token not in (None, b"token")
        with pytest.raises(sneck.LockTimeout):
            adopted.__enter__()
