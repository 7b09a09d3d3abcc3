"""The minimum of rights that docs/acl.md lists: enough for everything, and all of it needed."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import sneck
from pages import read_blocks
from programs import TOP
from sneck.testing import Server

LIMIT = 30.0  # seconds
BLOCKS = [
    shlex.split(re.sub(r".* ACL SETUSER ", "", block.text.replace("\\\n", " ")))
    for block in read_blocks(TOP / "docs/acl.md")
    if block.language == "sh"
]
RULES = next(rules for user, *rules in BLOCKS if user == "locker")
WRITER, TURNS = (rules for user, *rules in BLOCKS if user == "writer")
COMMANDS = [rule for rule in RULES if rule.startswith("+")]
FOR_WAKING = ("+publish", "+pubsub|numsub", "+subscribe")
NAME = "lock:42"
KEY = "counter:42"


@pytest.fixture
def admin(server: Server) -> Iterator[sneck.Client]:
    """A client that may do everything, on an empty server."""
    with sneck.connect(server.url) as client:
        client.execute("FLUSHALL")
        client.execute("SCRIPT", "FLUSH")
        yield client
        client.execute("ACL", "DELUSER", "locker")


def until(condition: Callable[[], object]) -> None:
    """Wait for it; only a broken library makes it late."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def restrict(
    server: Server, admin: sneck.Client, rules: list[str], client_name: str | None = None
) -> sneck.Client:
    """Make the user and a client of it."""
    admin.execute("ACL", "SETUSER", "locker", "reset", *rules)
    address = server.url.replace("unix://", "unix://locker:secret@")
    return sneck.connect(address, client_name=client_name)


def take_turns(client: sneck.Client, admin: sneck.Client) -> None:
    """Use all that a client can do, with a waiter that is woken or polls."""
    lock = client.lock(NAME, ttl=600)
    lock.acquire()
    # so short a ttl lets the waiter look again soon, as it does every 2 s otherwise
    waiter = client.lock(NAME, ttl=0.2, label="waits")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waiter.acquire, timeout=LIMIT)
        try:
            until(lambda: waiting.done() or client.stats().polls >= 2)
            lock.extend()
            assert lock.holder() is not None
            client.waiters(NAME)
            lock.release()
        finally:
            admin.execute("DEL", NAME)
            waiting.result(LIMIT)
    admin.execute("DEL", NAME)
    client.lock(NAME, ttl=600, fair=True).acquire()
    assert client.lock(NAME, ttl=600, fair=True).acquire(timeout=0.1) is False
    assert client.force_release(NAME) is True


def test_the_documented_rights_are_enough(server: Server, admin: sneck.Client) -> None:
    with restrict(server, admin, RULES, "locker") as client, ThreadPoolExecutor(1) as pool:
        take_turns(client, admin)
        lock = client.lock(NAME, ttl=600)
        lock.acquire()
        waiter = client.lock(NAME, ttl=600, label="waits")
        waiting = pool.submit(waiter.acquire, timeout=LIMIT)
        until(lambda: [each.label for each in client.waiters(NAME)] == ["waits"])
        lock.release()
        holder = lock.holder()
        assert holder is not None
        assert holder.label == "waits"
        assert waiting.result(LIMIT) is True
        waiter.release()
        assert client.stats().wakeups == "used"
        assert client.stats().losses == client.stats().unknown == 0
    assert admin.execute("DBSIZE") == 0


@pytest.mark.parametrize("left_out", [rule for rule in COMMANDS if rule not in FOR_WAKING])
def test_a_right_that_is_missing_is_told(
    server: Server, admin: sneck.Client, left_out: str
) -> None:
    rules = [rule for rule in RULES if rule != left_out]
    with restrict(server, admin, rules, "locker") as client:
        if left_out in ("+select", "+zpopmin"):
            # a database is chosen by the address; a queue that may not be emptied is looked at
            # by those who wait in it
            take_turns(client, admin)
            return
        with pytest.raises(sneck.ServerError) as raised:
            take_turns(client, admin)
    assert raised.value.code in ("NOPERM", "ERR")
    assert f'lock "{NAME}"' in str(raised.value)


@pytest.mark.parametrize("left_out", [*FOR_WAKING, "&sneck:inbox:*"])
def test_without_wakeups_waiters_poll(server: Server, admin: sneck.Client, left_out: str) -> None:
    rules = [rule for rule in RULES if rule != left_out]
    with restrict(server, admin, rules) as client:
        take_turns(client, admin)
        assert client.stats().wakeups == "denied"
        assert client.stats().handoffs == 0
    assert admin.execute("DBSIZE") == 0


@pytest.mark.parametrize("left_out", ["~lock:*", "~{lock:*}:sneck:queue"])
def test_a_key_that_is_not_allowed_is_told(
    server: Server, admin: sneck.Client, left_out: str
) -> None:
    rules = [rule for rule in RULES if rule != left_out]
    with restrict(server, admin, rules) as client:
        with pytest.raises(sneck.ServerError) as raised:
            client.force_release(NAME)
        assert raised.value.code == "NOPERM"
        assert f'lock "{NAME}"' in str(raised.value)


def change(client: sneck.Client) -> None:
    """Use all that changes data without a lock."""
    assert client.update(KEY, lambda old: int(old or 0) + 1) == b"1"
    assert client.compare_and_set(KEY, 1, 2) is True
    assert client.compare_and_set(KEY, 1, 2) is False
    assert client.compare_and_delete(KEY, 2) is True


def add_together(client: sneck.Client) -> None:
    """Let threads add to one key."""
    threads, times = 8, 50

    def work() -> None:
        for _ in range(times):
            client.update(KEY, lambda old: int(old or 0) + 1, attempts=1000, wait=LIMIT)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result(LIMIT)
    assert client.execute("GET", KEY) == str(threads * times).encode()


def test_the_documented_rights_are_enough_to_change_data(
    server: Server, admin: sneck.Client
) -> None:
    with restrict(server, admin, WRITER) as client:
        change(client)
        add_together(client)
        assert client.stats().wakeups == "untried"


@pytest.mark.parametrize("left_out", [rule for rule in WRITER if rule[0] in "+~"])
def test_a_right_to_change_data_that_is_missing_is_told(
    server: Server, admin: sneck.Client, left_out: str
) -> None:
    rules = [rule for rule in WRITER if rule != left_out]
    with restrict(server, admin, rules) as client:
        if left_out == "+unwatch":
            change(client)  # the connection is closed instead
            return
        with pytest.raises(sneck.ServerError) as raised:
            change(client)
    assert raised.value.code == "NOPERM"


def test_writers_without_wakeups_take_turns_all_the_same(
    server: Server, admin: sneck.Client
) -> None:
    rules = [rule for rule in WRITER + TURNS if rule != "+publish"]
    with restrict(server, admin, rules) as client:
        order = admin.lock(f"{{{KEY}}}:sneck:order", ttl=600)
        order.acquire()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.update, KEY, lambda _: "ours", wait=None)
            until(lambda: client.stats().wakeups == "denied")
            order.release()
            assert waiting.result(LIMIT) == b"ours"
        assert client.stats().wakeups == "denied"
        assert client.stats().losses == 0
        assert admin.execute("EXISTS", order.name) == 0


def test_the_documented_rights_let_writers_take_turns(server: Server, admin: sneck.Client) -> None:
    with restrict(server, admin, WRITER + TURNS) as client:
        admin.execute("ACL", "LOG", "RESET")
        order = admin.lock(f"{{{KEY}}}:sneck:order", ttl=600)
        order.acquire()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.update, KEY, lambda _: "ours", wait=None)
            until(lambda: admin.waiters(order.name))
            order.release()
            assert waiting.result(LIMIT) == b"ours"
        admin.execute("DEL", KEY)
        add_together(client)
        assert client.stats().wakeups == "used"
        assert admin.execute("ACL", "LOG") == []
