"""A lock on several servers is the same Lock: what is Python's own about it."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator

import pytest
from leases import LONG, wait_for_renewal
from quorum import forget, kill, urls, values

import sneck
import sneck.aio
from sneck.testing import Server

Until = Callable[[Callable[[], bool]], None]
TTL = 3.0  # of leases that are to be lost; each server has a twentieth of it to answer


@pytest.fixture
def client(servers: list[Server]) -> Iterator[sneck.Client]:
    """A client of all of them."""
    with sneck.quorum(urls(servers), timeout=5) as made:
        yield made


def test_with_holds_it_on_the_servers(
    client: sneck.Client, servers: list[Server], name: str
) -> None:
    with client.lock(name) as lock:
        assert values(servers, name).count(lock.token) >= 3
        with sneck.quorum(urls(servers)) as other:
            assert not other.lock(name, ttl=LONG).acquire(blocking=False)
    assert values(servers, name) == [None] * 5


def test_with_renews(client: sneck.Client, servers: list[Server], name: str) -> None:
    with client.lock(name, ttl=LONG) as lock:
        wait_for_renewal(lock)
        assert lock.owned
        assert values(servers, name).count(lock.token) >= 3


def test_on_lost_is_called(
    client: sneck.Client, servers: list[Server], name: str, until: Until
) -> None:
    lost: list[sneck.Lock] = []
    with (
        pytest.raises(sneck.NotOwned),
        client.lock(name, ttl=TTL, on_lost=lost.append) as lock,
    ):
        forget(servers[:3], name)
        until(lambda: lost == [lock])
        assert lock.lost


def test_minority_that_forgets_is_no_loss(
    client: sneck.Client, servers: list[Server], name: str
) -> None:
    lost: list[sneck.Lock] = []
    with client.lock(name, ttl=LONG, on_lost=lost.append) as lock:
        forget(servers[:2], name)
        wait_for_renewal(lock)
        assert lock.owned
    assert lost == []


def test_decorated_function_runs_under_it(
    client: sneck.Client, servers: list[Server], name: str
) -> None:
    @client.locked(name)
    def count() -> int:
        return 5 - values(servers, name).count(None)

    assert count() >= 3
    assert values(servers, name) == [None] * 5


def test_reentrant(client: sneck.Client, servers: list[Server], name: str) -> None:
    lock = client.rlock(name)
    with lock, lock:
        pass
    assert values(servers, name) == [None] * 5


def test_fences_increase(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, fence=True)
    fences = []
    for _ in range(3):
        with lock:
            fences.append(lock.fence or 0)
    assert 0 < fences[0] < fences[1] < fences[2]


def test_adopt(client: sneck.Client, servers: list[Server], name: str) -> None:
    first = client.lock(name)
    first.acquire()
    assert first.token is not None
    with client.adopt(name, first.token) as lock:
        assert lock.owned
    assert values(servers, name) == [None] * 5


def test_holder(client: sneck.Client, name: str) -> None:
    lock = client.lock(name, label="me")
    lock.acquire()
    holder = client.lock(name).holder()
    assert holder is not None
    assert (holder.token, holder.label, holder.foreign) == (lock.token, "me", False)
    assert client.force_release(name)
    assert not lock.locked()
    with pytest.raises(sneck.NotOwned):
        lock.release()


def test_error_tells_what_each_server_said(
    client: sneck.Client, servers: list[Server], name: str
) -> None:
    kill(servers[:3])
    with pytest.raises(sneck.QuorumImpossible, match=name) as caught:
        client.lock(name).acquire(blocking=False)
    said = caught.value.servers
    assert list(said) == [server.socket for server in servers[:3]]
    assert all(message and "\n" not in message for message in said.values())
    assert values(servers[3:], name) == [None] * 2


def test_release_error_tells_it_as_well(
    client: sneck.Client, servers: list[Server], name: str
) -> None:
    lock = client.lock(name)
    lock.acquire()
    kill(servers[2:])
    with pytest.raises(sneck.QuorumImpossible) as caught:
        lock.release()
    assert set(caught.value.servers) == {server.socket for server in servers[2:]}
    assert lock.token is not None


def test_timeout_tells_of_servers_that_are_down(
    client: sneck.Client, servers: list[Server], name: str
) -> None:
    kill(servers[:1])
    with sneck.quorum(urls(servers)) as other:
        other.lock(name).acquire()
        with pytest.raises(sneck.LockTimeout) as caught, client.lock(name, wait=0.01):
            raise AssertionError
    assert servers[0].socket in caught.value.servers


def test_two_servers_down_are_no_error(
    client: sneck.Client, servers: list[Server], name: str
) -> None:
    kill(servers[3:])
    with client.lock(name) as lock:
        assert values(servers[:3], name) == [lock.token] * 3
    assert values(servers[:3], name) == [None] * 3


def test_errors_of_other_calls_have_no_servers() -> None:
    nowhere = sneck.connect("unix:///nonexistent/sneck.socket")
    with pytest.raises(sneck.ConnectionError) as caught:
        nowhere.execute("PING")
    assert dict(caught.value.servers) == {}
    with pytest.raises(TypeError):
        caught.value.servers["a"] = "b"  # type: ignore[index]


REFUSED: dict[str, Callable[[sneck.Client], object]] = {
    "execute": lambda client: client.execute("PING"),
    "update": lambda client: client.update("k", lambda old: old),
    "set": lambda client: client.compare_and_set("k", None, "v"),
    "delete": lambda client: client.compare_and_delete("k", "v"),
    "transaction": lambda client: client.transaction(lambda _: None),
    "writes": lambda client: client.transaction(lambda tx: tx.queue("SET", "k", "v"), "k"),
    "try_lock": lambda client: client.try_lock("k", "v", 60000),
    "release_lock": lambda client: client.release_lock("k", "v"),
    "legacy_lock": lambda client: client.legacy_lock("k"),
    "fair": lambda client: client.lock("k", fair=True),
    "fair rlock": lambda client: client.rlock("k", fair=True),
    "fair adopted": lambda client: client.adopt("k", "token", fair=True),
    "fair function": lambda client: client.locked("k", fair=True)(lambda: None)(),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_needs_one_server_is_refused(
    client: sneck.Client, servers: list[Server], call: Callable[[sneck.Client], object]
) -> None:
    nowhere = sneck.quorum(["unix:///none/a", "unix:///none/b"])
    for each in (client, nowhere):  # whatever is sent to nowhere fails with another error
        with pytest.raises(ValueError, match=r"^[^\n]*quorum[^\n]*$"):
            call(each)
    assert values(servers, "k") == [None] * 5


def test_guard_is_refused(client: sneck.Client, servers: list[Server], name: str) -> None:
    with sneck.connect(servers[0].url) as one, client.lock(name) as lock:
        with pytest.raises(ValueError, match="quorum"):
            one.update("k", lambda _: "written", guard=lock)
        assert one.execute("GET", "k") is None


def test_nobody_waits_in_a_queue(client: sneck.Client, name: str) -> None:
    assert client.waiters(name) == []


@pytest.mark.parametrize(
    ("urls_given", "kind"),
    [
        ([], ValueError),
        ([f"redis://localhost:{port}" for port in range(1, 17)], ValueError),
        (["redis://localhost", "redis://127.0.0.1:6379/1"], ValueError),
        (["unix:///a", "unix:///a?db=1"], ValueError),
        (["http://localhost"], ValueError),
        ("redis://localhost", TypeError),
        (b"redis://localhost", TypeError),
        (["redis://localhost", None], TypeError),
        ([b"redis://localhost"], TypeError),
        (None, TypeError),
    ],
)
def test_wrong_urls_are_refused(urls_given: list[str], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        sneck.quorum(urls_given)


def test_a_url_that_stands_alone_is_told_what_to_do() -> None:
    for make in (sneck.quorum, sneck.aio.quorum):
        with pytest.raises(TypeError, match="must be a list of urls, not one"):
            make("redis://localhost")  # mypy takes a str for an Iterable[str]


def test_connect_takes_one_url() -> None:
    with pytest.raises(TypeError):
        sneck.connect(("redis://localhost", "redis://localhost:1"))  # type: ignore[arg-type]


def test_one_server_is_a_quorum(servers: list[Server], name: str) -> None:
    with sneck.quorum(iter(urls(servers[:1]))) as client, client.lock(name) as lock:
        assert values(servers, name) == [lock.token, None, None, None, None]


def test_client_names_its_servers_and_no_password() -> None:
    client = sneck.quorum(["redis://:secret@localhost:7001", "unix:///run/a.socket"])
    assert client.servers == ("localhost:7001", "/run/a.socket")
    assert repr(client) == "<sneck.Client of localhost:7001, /run/a.socket>"
    assert repr(sneck.connect("redis://:secret@one:1/2")) == "<sneck.Client of one:1>"


def test_pickled_it_is_a_client_of_the_same_servers(
    client: sneck.Client, servers: list[Server], name: str
) -> None:
    again = pickle.loads(pickle.dumps(client.lock(name, ttl=7)))
    assert again._client.servers == client.servers
    with again:
        assert values(servers, name).count(again.token) >= 3


def test_options_are_those_of_connect(servers: list[Server], name: str) -> None:
    options = {"timeout": 2.0, "connect_timeout": 1, "client_name": "q", "label": "worker"}
    with (
        sneck.quorum(urls(servers), prefix="p:", **options) as client,  # type: ignore[arg-type]
        client.lock(name),
    ):
        assert values(servers, name) == [None] * 5
        assert values(servers, f"p:{name}").count(None) <= 2
        holder = client.lock(name).holder()
        assert holder is not None
        assert holder.label == "worker"


def test_two_threads_exclude_each_other(client: sneck.Client, name: str) -> None:
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with client.lock(name, poll=0.002):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
