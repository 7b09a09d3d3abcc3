"""A pickled lock is its name and options, a pickled client what connect() was given."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

import sneck
from sneck.testing import Server


def on_lost(lock: sneck.Lock) -> None:
    """Can be pickled, by its name."""


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", [sneck.Client.lock, sneck.Client.rlock])
def test_a_lock_is_its_name_and_options(
    client: sneck.Client, name: str, protocol: int, kind: Callable[..., sneck.Lock]
) -> None:
    lock = kind(client, name, ttl=7, wait=0, label="me", fence=True, on_lost=on_lost)
    with lock:
        again = pickle.loads(pickle.dumps(lock, protocol))
        assert type(again) is type(lock)
        assert (again.name, again.ttl, again.token, again.owned) == (name, 7, None, False)
        assert again.acquire() is False
        assert lock.owned
    with again:
        assert again.fence is not None
        assert lock.holder() is not None
    assert again._options == lock._options


def test_a_client_is_what_connect_was_given(server: Server, name: str) -> None:
    client = sneck.connect(server.url, timeout=3, prefix=b"app:", label="me", client_name="us")
    again = pickle.loads(pickle.dumps(client))
    client.close()
    with again.lock(name) as lock:
        assert again.execute("GET", f"app:{name}") == lock.token
        assert again.execute("CLIENT", "GETNAME") == b"us"
    assert again._options == client._options


def test_locks_pickled_together_share_their_client(client: sneck.Client) -> None:
    one, two = pickle.loads(pickle.dumps([client.lock("one"), client.lock("two")]))
    assert one._client is two._client is not client


def test_an_on_lost_that_cannot_be_pickled_is_named(client: sneck.Client, name: str) -> None:
    def local(lock: sneck.Lock) -> None:
        pass

    lock = client.lock(name, on_lost=local)
    with pytest.raises((AttributeError, pickle.PicklingError), match="local"):
        pickle.dumps(lock)


def test_a_copy_is_a_clone(client: sneck.Client, name: str) -> None:
    with client.lock(name, ttl=7) as lock:
        again = copy.copy(lock)
        assert (again.ttl, again.token, again._client) == (7, None, client)
