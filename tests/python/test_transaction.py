"""Changing data without a lock: update, compare_and_set and transactions, as Python has them."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest

import sneck
from sneck.testing import Server

LIMIT = 30.0


class Boom(Exception):
    """An error of a test's own."""


# ------------------------------------------------------------------------- update


@pytest.mark.parametrize(
    ("new", "stored"),
    [("text", b"text"), (b"\x00\xff", b"\x00\xff"), (7, b"7"), (0.1, b"0.1"), ("", b"")],
)
def test_an_update_writes_what_its_function_returns(
    client: sneck.Client, name: str, new: str | bytes | float, stored: bytes
) -> None:
    given: list[bytes | None] = []

    def function(old: bytes | None) -> str | bytes | float:
        given.append(old)
        return new

    assert client.update(name, function) == stored
    assert client.update(name, function) == stored
    assert client.execute("GET", name) == stored
    assert given == [None, stored]


def test_an_update_may_leave_or_delete_the_value(client: sneck.Client, name: str) -> None:
    assert client.update(name, lambda _: sneck.KEEP) is None
    client.execute("SET", name, "old")
    assert client.update(name, lambda _: sneck.KEEP) == b"old"
    assert client.update(name, lambda _: None) is None
    assert client.execute("EXISTS", name) == 0
    assert repr(sneck.KEEP) == "sneck.KEEP"


def test_an_update_keeps_the_expiry_unless_told(client: sneck.Client, name: str) -> None:
    client.execute("SET", name, 1, "EX", 5000)
    client.update(name, lambda old: int(old or 0) + 1)
    assert client.execute("TTL", name) in range(1000, 5001)
    client.update(name, lambda old: int(old or 0) + 1, ttl=900)
    assert client.execute("TTL", name) in range(100, 901)


def test_the_function_is_run_again_after_a_conflict(client: sneck.Client, name: str) -> None:
    runs: list[bytes | None] = []

    def function(old: bytes | None) -> int:
        runs.append(old)
        if len(runs) < 6:
            client.execute("INCR", name)
        return int(old or 0) + 10

    assert client.update(name, function) == b"15"
    assert runs == [None, b"1", b"2", b"3", b"4", b"5"]


def test_a_conflict_tells_attempts_time_and_keys(client: sneck.Client, name: str) -> None:
    runs = 0

    def function(old: bytes | None) -> int:
        nonlocal runs
        runs += 1
        client.execute("INCR", name)
        return 0

    with pytest.raises(sneck.Conflict, match=f"{name}.* 3 attempts") as caught:
        client.update(name, function, attempts=3)
    assert (caught.value.attempts, caught.value.keys, runs) == (3, (name,), 3)
    assert 0 <= caught.value.waited < LIMIT
    assert client.execute("GET", name) == b"3"
    with pytest.raises(sneck.Conflict) as caught:
        client.update(name, function, attempts=1_000_000, wait=0.05)
    assert caught.value.attempts < 1_000_000
    assert caught.value.waited >= 0.05
    with pytest.raises(sneck.Conflict) as caught:
        client.update(name, function, attempts=2, wait=None)
    assert caught.value.attempts == 2


@pytest.mark.parametrize("returned", [True, [], object()])
def test_an_update_takes_no_other_values(client: sneck.Client, name: str, returned: Any) -> None:
    with pytest.raises(TypeError, match="KEEP"):
        client.update(name, lambda _: returned)
    assert client.execute("EXISTS", name) == 0


# -------------------------------------------------------------------- compare, set


def test_compare_and_set(client: sneck.Client, name: str) -> None:
    assert client.compare_and_set(name, "x", "y") is False
    assert client.compare_and_set(name, None, 1) is True
    assert client.compare_and_set(name, None, 2) is False
    assert client.compare_and_set(name, "", 2) is False
    assert client.compare_and_set(name, 1, b"") is True
    assert client.compare_and_set(name, b"", "new", ttl=900) is True
    assert client.execute("TTL", name) in range(100, 901)
    assert client.compare_and_delete(name, "old") is False
    assert client.compare_and_delete(name, "new") is True
    assert client.compare_and_set(name, None, None) is True
    assert client.execute("EXISTS", name) == 0


# -------------------------------------------------------------------- transactions


def test_a_transaction_writes_all_that_was_queued(client: sneck.Client, name: str) -> None:
    client.execute("SET", f"{name}:a", 15)

    def move(tx: sneck.Transaction) -> None:
        assert tx.conflicts == 0
        assert int(tx.get(f"{name}:a") or 0) >= 10
        assert tx.get(f"{name}:b") is None
        tx.queue("DECRBY", f"{name}:a", 10)
        tx.queue("INCRBY", f"{name}:b", 10)
        tx.queue("MGET", f"{name}:a", f"{name}:b", "no such key")

    assert client.transaction(move, f"{name}:a", f"{name}:b") == [5, 10, [b"5", b"10", None]]


def test_a_transaction_that_writes_nothing_gives_nothing(client: sneck.Client, name: str) -> None:
    assert client.transaction(lambda tx: tx.get(name), name) == []


def test_keys_may_be_watched_later(client: sneck.Client, name: str) -> None:
    seen: list[tuple[int, bytes | None]] = []

    def function(tx: sneck.Transaction) -> None:
        tx.watch(f"{name}:1", f"{name}:2")
        tx.watch(f"{name}:3")
        seen.append((tx.conflicts, tx.get(f"{name}:3")))
        if tx.conflicts < 2:
            client.execute("INCR", f"{name}:{tx.conflicts + 2}")
        tx.queue("SET", name, "done")

    assert client.transaction(function) == [b"OK"]
    assert seen == [(0, None), (1, None), (2, b"1")]


def test_replies_keep_their_shapes(client: sneck.Client) -> None:
    script = "return {7, {'x', {false, {}}}, redis.error_reply('MINE text'), 'a\\0b'}"

    def check(reply: Any) -> None:
        assert reply[:2] == [7, [b"x", [None, []]]]
        assert isinstance(reply[2], sneck.ServerError)
        assert reply[3] == b"a\0b"

    def function(tx: sneck.Transaction) -> None:
        check(tx.execute("EVAL", script, 0))
        tx.queue("EVAL", script, 0)

    results = client.transaction(function)
    assert results is not None
    check(results[0])


def test_abort_ends_it_with_none_and_nothing_written(client: sneck.Client, name: str) -> None:
    def function(tx: sneck.Transaction) -> None:
        tx.get(name)
        tx.queue("SET", name, "written")
        tx.abort()

    assert client.transaction(function, name) is None
    assert client.execute("EXISTS", name) == 0


@pytest.mark.parametrize("swallowed", [Exception, BaseException])
def test_abort_cannot_be_swallowed(
    client: sneck.Client, name: str, swallowed: type[BaseException]
) -> None:
    def function(tx: sneck.Transaction) -> None:
        tx.queue("SET", name, "written")
        with contextlib.suppress(swallowed):
            tx.abort()

    assert client.transaction(function, name) is None
    assert client.execute("EXISTS", name) == 0


def test_abort_of_an_outer_transaction_ends_the_inner_one_too(
    client: sneck.Client, name: str
) -> None:
    inner_runs = 0

    def outer(outer_tx: sneck.Transaction) -> None:
        outer_tx.queue("SET", name, "outer")

        def inner(tx: sneck.Transaction) -> None:
            nonlocal inner_runs
            inner_runs += 1
            tx.queue("SET", name, "inner")
            outer_tx.abort()

        client.transaction(inner, name)

    assert client.transaction(outer, name) is None
    assert inner_runs == 1
    assert client.execute("EXISTS", name) == 0


@pytest.mark.parametrize("raised", [Boom("boom"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_ends_it_and_goes_on_unchanged(
    client: sneck.Client, name: str, raised: BaseException
) -> None:
    def function(tx: sneck.Transaction) -> None:
        tx.get(name)
        tx.queue("SET", name, "written")
        raise raised

    def give_up(old: bytes | None) -> str:
        raise raised

    for attempt in (
        lambda: client.transaction(function, name),
        lambda: client.update(name, give_up),
    ):
        with pytest.raises(type(raised)) as caught:
            attempt()
        assert caught.value is raised
    client.execute("SET", name, "changed")
    assert client.transaction(lambda tx: tx.queue("GET", name), attempts=1) == [b"changed"]


def test_a_write_that_fails_does_not_hide_the_others(client: sneck.Client, name: str) -> None:
    client.execute("RPUSH", f"{name}:list", "x")

    def function(tx: sneck.Transaction) -> None:
        tx.queue("SET", name, 1)
        tx.queue("INCR", f"{name}:list")
        tx.queue("INCR", name)

    with pytest.raises(sneck.ServerError, match="2 of 3") as caught:
        client.transaction(function, name)
    assert (caught.value.index, caught.value.code) == (1, "WRONGTYPE")
    results = caught.value.results
    assert results is not None
    assert results[::2] == [b"OK", 2]
    assert isinstance(results[1], sneck.ServerError)


def test_a_write_that_is_refused_leaves_all_unwritten(client: sneck.Client, name: str) -> None:
    def function(tx: sneck.Transaction) -> None:
        tx.queue("SET", name, 1)
        tx.queue("SET", name)

    with pytest.raises(sneck.ServerError, match="nothing was written") as caught:
        client.transaction(function, name)
    assert (caught.value.index, caught.value.results) == (None, None)
    assert client.execute("EXISTS", name) == 0


def test_a_read_that_fails_can_be_caught(client: sneck.Client, name: str) -> None:
    client.execute("RPUSH", name, "x")

    def function(tx: sneck.Transaction) -> None:
        with pytest.raises(sneck.ServerError) as caught:
            tx.get(name)
        assert caught.value.code == "WRONGTYPE"
        tx.queue("LLEN", name)

    assert client.transaction(function, name) == [1]


@pytest.mark.parametrize("how", ["execute", "queue"])
@pytest.mark.parametrize("command", [("MULTI",), ("SUBSCRIBE", "x"), ("BLPOP", "x", 0)])
def test_commands_that_have_no_place_there_are_refused(
    client: sneck.Client, name: str, how: str, command: tuple[str | int, ...]
) -> None:
    def function(tx: sneck.Transaction) -> None:
        tx.queue("SET", name, "written")
        with pytest.raises(ValueError, match=str(command[0])):
            getattr(tx, how)(*command)

    with pytest.raises(ValueError, match=str(command[0])):  # also when it is not heeded
        client.transaction(function, name)
    assert client.execute("EXISTS", name) == 0


def test_a_guard_must_be_ours(client: sneck.Client, name: str) -> None:
    def write(tx: sneck.Transaction) -> None:
        lock.extend()
        tx.get(name)
        lock.extend()
        tx.queue("SET", name, "guarded")

    lock = client.lock(f"{name}:door")
    with pytest.raises(sneck.NotOwned):
        client.transaction(write, name, guard=lock)
    with lock:
        assert client.transaction(write, name, guard=lock, attempts=1) == [b"OK"]
        assert client.update(name, lambda old: (old or b"") + b"!", guard=lock) == b"guarded!"

    def lose(old: bytes | None) -> str:
        client.force_release(f"{name}:door")
        return "too late"

    lock.acquire()
    with pytest.raises(sneck.NotOwned, match="door"):
        client.update(name, lose, guard=lock)
    assert client.execute("GET", name) == b"guarded!"


def test_wrong_arguments_are_told_before_anything_is_sent() -> None:
    client = sneck.connect("unix:///nowhere")
    bad: list[Callable[[], Any]] = [
        lambda: client.update("k", None),  # type: ignore[arg-type]
        lambda: client.update(None, lambda _: 1),  # type: ignore[arg-type]
        lambda: client.update("k", lambda _: 1, ttl=0),
        lambda: client.update("k", lambda _: 1, attempts=0),
        lambda: client.update("k", lambda _: 1, attempts=1 << 40),
        lambda: client.update("k", lambda _: 1, attempts=1.0),  # type: ignore[arg-type]
        lambda: client.update("k", lambda _: 1, wait=-1),
        lambda: client.update("k", lambda _: 1, guard="lock"),  # type: ignore[arg-type]
        lambda: client.update("k", lambda _: 1, guard=sneck.connect().lock("door")),
        lambda: client.compare_and_set("k", [], 1),  # type: ignore[arg-type]
        lambda: client.compare_and_set("k", None, True, ttl=-1),
        lambda: client.transaction(None),  # type: ignore[arg-type]
        lambda: client.transaction(lambda _: None, 5),  # type: ignore[arg-type]
        lambda: client.transaction(lambda tx: tx.queue()),
        lambda: client.transaction(lambda tx: tx.execute()),
        lambda: client.transaction(lambda tx: tx.queue("SET", "k", None)),  # type: ignore[arg-type]
    ]
    for attempt in bad[:13]:
        with pytest.raises((TypeError, ValueError)):
            attempt()
    for attempt in bad[13:]:
        with pytest.raises(TypeError):
            attempt()
    with pytest.raises(sneck.ConnectionError):
        client.update("k", lambda _: 1)


# ------------------------------------------------------- what it must not be used for


def test_a_transaction_is_of_no_use_after_its_function(client: sneck.Client, name: str) -> None:
    kept: list[sneck.Transaction] = []

    def function(tx: sneck.Transaction) -> None:
        for old in kept:
            with pytest.raises(RuntimeError):
                old.get(name)
        kept.append(tx)
        tx.get(name)
        if tx.conflicts == 0:
            client.execute("INCR", name)
        tx.queue("GET", name)

    assert client.transaction(function, name) == [b"1"]
    assert len(kept) == 2
    uses: list[Callable[[sneck.Transaction], Any]] = [
        lambda tx: tx.get(name),
        lambda tx: tx.execute("PING"),
        lambda tx: tx.queue("PING"),
        lambda tx: tx.watch(name),
        lambda tx: tx.abort(),
        lambda tx: tx.conflicts,
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="has ended"):
            use(kept[0])
    with pytest.raises(TypeError):
        type(kept[0])()


def test_another_thread_cannot_use_a_transaction(client: sneck.Client, name: str) -> None:
    caught: list[BaseException] = []

    def meddle(tx: sneck.Transaction) -> None:
        try:
            tx.queue("SET", name, "from elsewhere")
        except BaseException as error:  # noqa: BLE001 - judged below
            caught.append(error)

    def function(tx: sneck.Transaction) -> None:
        thread = threading.Thread(target=meddle, args=(tx,))
        thread.start()
        thread.join()
        tx.get(name)

    assert client.transaction(function, name) == []
    (error,) = caught
    assert isinstance(error, RuntimeError)
    assert "thread" in str(error)


def test_transactions_can_be_within_each_other(client: sneck.Client, name: str) -> None:
    def function(tx: sneck.Transaction) -> None:
        assert client.update(f"{name}:inner", lambda old: int(old or 0) + 1)
        tx.queue("GET", f"{name}:inner")

    assert client.transaction(function, name) == [b"1"]


# ------------------------------------------------------------------ threads, signals


def test_threads_add_up_and_run_side_by_side(client: sneck.Client, name: str) -> None:
    def add() -> None:
        for _ in range(50):
            client.update(name, lambda old: int(old or 0) + 1, attempts=1000, wait=None)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.execute("GET", name) == b"400"


def test_other_threads_run_during_an_exchange(
    client: sneck.Client, name: str, until: Callable[[Callable[[], bool]], None]
) -> None:
    seen: list[bool] = []

    def is_blocked() -> bool:
        listed = client.execute("CLIENT", "LIST")
        assert isinstance(listed, bytes)
        return re.search(rb" flags=\w*b\w* .* cmd=publish ", listed) is not None

    def unpause() -> None:
        try:
            until(is_blocked)
            seen.append(True)
        finally:
            client.execute("CLIENT", "UNPAUSE")

    def function(tx: sneck.Transaction) -> None:
        client.execute("CLIENT", "PAUSE", 600_000, "WRITE")
        thread = threading.Thread(target=unpause)
        thread.start()
        tx.execute("PUBLISH", name, "waits as long as the server is paused")
        thread.join()

    assert client.transaction(function, name) == []
    assert seen == [True]


LISTEN = """
import signal, sys, sneck
signal.signal(signal.SIGINT, signal.default_int_handler)
url, name, how = sys.argv[1:]
client = sneck.connect(url, timeout=600)
client.execute("PING")

def say(word):
    print(word, flush=True)
    sys.stdin.readline()

def read(tx):
    tx.queue("SET", name, "written")
    say("ready")
    tx.execute("PUBLISH", name, "x")

def commit(tx):
    tx.get(name)
    tx.queue("SET", name, "written")
    say("ready")

def pause(old):
    if not said:
        said.append(say("ready"))
    client.execute("INCR", name)
    return 0

said = []
try:
    if how == "pause":
        client.update(name, pause, attempts=2**31 - 1, wait=None)
    else:
        client.transaction({"read": read, "commit": commit}[how], name)
except KeyboardInterrupt:
    print("interrupted")
    print(client.execute("PING"))
"""


@pytest.mark.parametrize("how", ["read", "commit", "pause"])
def test_ctrl_c_ends_it(name: str, spawn: Callable[..., subprocess.Popen[str]], how: str) -> None:
    with Server() as own, sneck.connect(own.url) as client:
        process = spawn(LISTEN, own.url, name, how)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if how != "pause":
            client.execute("CLIENT", "PAUSE", 600_000, "WRITE")
        process.stdin.write("\n")
        process.stdin.flush()
        # wherever it is by then, it ends
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=LIMIT)
        client.execute("CLIENT", "UNPAUSE")
        assert output == "interrupted\nb'PONG'\n"


def test_a_signal_handler_cannot_use_the_transaction_that_it_interrupted(
    client: sneck.Client, name: str
) -> None:
    caught: list[str] = []

    def function(tx: sneck.Transaction) -> None:
        def handler(number: int, frame: object) -> None:
            try:
                tx.get(name)
            except RuntimeError as error:
                caught.append(str(error))
            client.execute("CLIENT", "UNPAUSE")

        before = signal.signal(signal.SIGALRM, handler)
        client.execute("CLIENT", "PAUSE", 600_000, "WRITE")
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            tx.execute("PUBLISH", name, "waits as long as the server is paused")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    assert client.transaction(function, name) == []
    assert len(caught) == 1
    assert "under way" in caught[0]


def test_a_lost_connection_runs_the_function_again(client: sneck.Client, name: str) -> None:
    runs = 0
    swallowed = 0

    def function(tx: sneck.Transaction) -> None:
        nonlocal runs, swallowed
        runs += 1
        number = tx.execute("CLIENT", "ID")
        if runs < 3:
            assert client.execute("CLIENT", "KILL", "ID", str(number)) == 1
        try:
            tx.get(name)
        except Exception:  # noqa: BLE001 - must not come here
            swallowed += 1
        tx.queue("SET", name, runs)

    assert client.transaction(function, name, attempts=3) == [b"OK"]
    assert (runs, swallowed) == (3, 0)
    assert client.execute("GET", name) == b"3"


def test_a_commit_is_not_sent_where_the_connection_is_gone(server: Server, name: str) -> None:
    """TCP takes what is sent to a closed connection, and the outcome would be unknown."""
    seen: list[bytes | None] = []

    def function(tx: sneck.Transaction) -> None:
        seen.append(tx.get(name))
        number = tx.execute("CLIENT", "ID")
        if len(seen) == 1:
            assert other.execute("CLIENT", "KILL", "ID", str(number)) == 1
        tx.queue("SET", name, "ours")

    with sneck.connect(server.tcp_url) as own, sneck.connect(server.url) as other:
        assert own.transaction(function, name) == [b"OK"]
        assert own.stats().unknown == 0
    assert seen == [None, None]


def test_a_client_that_is_closed_says_so(server: Server, name: str) -> None:
    client = sneck.connect(server.url)
    client.close()
    with pytest.raises(ValueError, match="closed"):
        client.update(name, lambda _: 1)
