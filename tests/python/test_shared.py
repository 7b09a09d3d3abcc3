"""One Lock for several threads: whoever has lost it does not release what another has got."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from leases import LONG, wait_for_renewal

import sneck


def enter_elsewhere(lock: sneck.Lock) -> None:
    """Begin a body of the lock in a thread that ends."""
    thread = threading.Thread(target=lock.__enter__)
    thread.start()
    thread.join()


@pytest.mark.parametrize("renew", [True, False])
def test_a_body_that_lost_it_leaves_what_another_thread_has_got(
    client: sneck.Client, name: str, renew: bool
) -> None:
    lock = client.lock(name, ttl=60, renew=renew)
    with pytest.raises(sneck.NotOwned, match="acquired anew"), lock:
        client.execute("DEL", name)
        enter_elsewhere(lock)
        theirs = lock.token
    assert theirs is not None
    assert client.execute("GET", name) == theirs
    assert lock.owned


def test_the_other_one_is_renewed_further_and_released_by_its_own_end(
    client: sneck.Client, name: str
) -> None:
    lock = client.lock(name, ttl=LONG)
    with ThreadPoolExecutor(1) as other:
        with pytest.raises(sneck.NotOwned), lock:
            client.execute("DEL", name)
            other.submit(lock.__enter__).result()
        wait_for_renewal(lock)
        assert client.execute("GET", name) == lock.token
        other.submit(lock.__exit__, None, None, None).result()
    assert client.execute("EXISTS", name) == 0


def test_a_body_that_raised_and_lost_it_tells_so(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=60)
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught, lock:
        client.execute("DEL", name)
        enter_elsewhere(lock)
        raise error
    assert caught.value is error
    assert client.execute("GET", name) == lock.token


def test_a_body_within_a_lost_one_has_its_own_lease(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=60)
    with pytest.raises(sneck.NotOwned), lock:
        client.execute("DEL", name)
        with lock:
            assert lock.owned
        assert client.execute("EXISTS", name) == 0


def test_a_body_may_be_left_in_another_thread(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=60)
    for _ in range(3):
        enter_elsewhere(lock)
        lock.__exit__(None, None, None)
        assert client.execute("EXISTS", name) == 0


def test_what_its_body_has_acquired_again_is_released_at_its_end(
    client: sneck.Client, name: str
) -> None:
    lock = client.lock(name, ttl=60)
    with lock:
        lock.release()
        assert client.execute("EXISTS", name) == 0
        lock.acquire()
    assert client.execute("EXISTS", name) == 0


def test_a_condition_takes_it_as_its_lock(client: sneck.Client, name: str) -> None:
    condition = threading.Condition(client.lock(name, ttl=60))  # type: ignore[arg-type]
    with condition:
        assert not condition.wait(0.001)
    assert client.execute("EXISTS", name) == 0


def test_a_body_that_never_began_leaves_nothing_behind(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, ttl=60, wait=0)
    with client.lock(name), pytest.raises(sneck.LockTimeout), lock:
        pass
    lock.acquire()
    lock.__exit__(None, None, None)  # of an ExitStack, for one
    assert client.execute("EXISTS", name) == 0
