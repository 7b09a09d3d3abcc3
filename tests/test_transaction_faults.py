"""A transaction whose connection fails at each point: never committed unguarded, never twice.

The fault proxy decides what is lost; a raw connection past it shows what the server has done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

import resp
import sneck
from bed import Bed
from programs import SERVERS

SHORT = 0.5  # seconds until a client takes a reply for lost
LIMIT = 30.0


@dataclass
class Scene:
    """A client behind the proxy, and a function that counts its runs and writes their number."""

    bed: Bed
    client: sneck.Client
    server: resp.Client
    control: resp.Client
    between: Callable[[], None] = lambda: None
    seen: list[bytes | None] = field(default_factory=list)

    def fault(self, *words: str) -> None:
        """Put a fault in force."""
        self.control.call("FAULT", *words)

    def body(self, tx: sneck.Transaction) -> None:
        """Read, let something happen at the first run, and write."""
        self.seen.append(tx.get("key"))
        if len(self.seen) == 1:
            self.between()
        tx.queue("SET", "key", f"run {len(self.seen)}")
        tx.queue("INCR", "commits")

    def run(self) -> object:
        """Make the transaction; a dead connection is not noticed for want of a second attempt."""
        return self.client.transaction(self.body, "key", attempts=3, wait=LIMIT)

    def key(self) -> resp.Value:
        """Ask the server for the value."""
        return self.server.call("GET", "key")


@pytest.fixture(scope="module", params=SERVERS)
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """Run one bed for all tests of a server."""
    with Bed(request.param) as made:
        yield made


@pytest.fixture
def scene(bed: Bed) -> Iterator[Scene]:
    """Restore the bed, and connect."""
    places = dict(zip(bed.arguments[::2], bed.arguments[1::2], strict=True))
    with (
        resp.Client(places["--control"].removeprefix("unix://")) as control,
        resp.Client(bed.server.socket) as server,
        sneck.connect(
            f"unix://{places['--proxy']}", timeout=SHORT, connect_timeout=LIMIT
        ) as client,
    ):
        control.call("BEGIN")
        server.call("SET", "key", "old")
        client.execute("PING")
        yield Scene(bed, client, server, control)


@pytest.mark.parametrize("fault", ["drop-reply", "cut-reply"])
def test_a_commit_whose_reply_is_lost_is_unknown_and_not_made_again(
    scene: Scene, fault: str
) -> None:
    scene.between = lambda: scene.fault(fault, "EXEC")
    with pytest.raises(sneck.OutcomeUnknown):
        scene.run()
    assert scene.seen == [b"old"]
    assert (scene.key(), scene.server.call("GET", "commits")) == (b"run 1", b"1")
    assert scene.client.execute("GET", "key") == b"run 1"


def test_a_commit_that_is_lost_on_the_way_is_unknown_too(scene: Scene) -> None:
    scene.between = lambda: scene.fault("drop-request", "EXEC")
    with pytest.raises(sneck.OutcomeUnknown):
        scene.run()
    assert (scene.seen, scene.key()) == ([b"old"], b"old")
    assert scene.client.execute("GET", "key") == b"old"


def test_a_connection_cut_before_the_commit_is_an_attempt(scene: Scene) -> None:
    def change_and_cut() -> None:
        scene.server.call("SET", "key", "theirs")
        scene.fault("cut")

    scene.between = change_and_cut
    assert scene.run() == [b"OK", 1]
    assert (scene.seen, scene.key()) == ([b"old", b"theirs"], b"run 2")


@pytest.mark.parametrize("command", ["WATCH", "GET"])
@pytest.mark.parametrize("fault", ["drop-request", "drop-reply", "cut-reply"])
def test_a_read_that_is_lost_is_an_attempt(scene: Scene, fault: str, command: str) -> None:
    scene.fault(fault, command)
    assert scene.run() == [b"OK", 1]
    assert (scene.seen, scene.key()) == ([b"old"], b"run 1")


@pytest.mark.parametrize("fault", ["drop-reply", "cut-reply"])
def test_a_reply_that_is_lost_to_unwatch_leaves_no_watch(scene: Scene, fault: str) -> None:
    def give_up(tx: sneck.Transaction) -> None:
        tx.get("key")
        scene.fault(fault, "UNWATCH")
        tx.abort()

    assert scene.client.transaction(give_up, "key") is None
    scene.server.call("SET", "key", "theirs")
    assert scene.client.transaction(lambda tx: tx.queue("GET", "key"), attempts=1) == [b"theirs"]


def test_a_server_that_restarts_in_between_is_an_attempt(scene: Scene) -> None:
    def restart() -> None:
        scene.control.call("SERVER", "restart")

    scene.between = restart
    assert scene.run() == [b"OK", 1]
    assert scene.seen == [b"old", None]
    assert scene.client.execute("GET", "key") == b"run 2"
