"""Racers for timestamp locks: ours in three languages, and the algorithm of old.

All start at a key whose time is over, again and again; exactly one of them has to win.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

import sneck
from programs import BUILD, LUA, PYTHON, TESTS, environment
from sneck.testing import Server

ROUNDS = 1000
TIMEOUT = 600  # seconds; longer than all rounds take
EXPIRED = ["1234567890", "1234567890.25", "1", "1234567890123"]
FUTURE = "4102444800"  # the year 2100
LIMIT = 30.0

RACERS = {
    "old": [*PYTHON, str(TESTS / "racers/racer.py"), "old"],
    "python": [*PYTHON, str(TESTS / "racers/racer.py"), "ours"],
    "c": [str(BUILD / "tests/racer"), "ours"],
    "lua": [*LUA, str(TESTS / "racers/racer.lua"), "ours"],
}
MIXES = {
    "old": ["old"] * 8,
    "ours": ["python", "python", "c", "c", "c", "lua", "lua", "lua"],
    "mixed": ["old", "old", "old", "old", "python", "c", "c", "lua"],
    "few": ["old", "old", "old", "old", "old", "old", "old", "c"],
}


class Racer:
    """A racer's process; `clock` is how wrong its clock is, such as "+1h"."""

    def __init__(self, kind: str, url: str, clock: str | None = None) -> None:
        faked = [shutil.which("faketime") or "faketime", "-f", clock] if clock else []
        self._process = subprocess.Popen(
            [*faked, *RACERS[kind], url, str(TIMEOUT)],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def start(self, name: str) -> None:
        """Let it try for a lock."""
        assert self._process.stdin is not None
        self._process.stdin.write(name + "\n")

    def won(self) -> bool:
        """Wait for what it says."""
        assert self._process.stdout is not None
        return bool(int(self._process.stdout.readline()))

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=LIMIT)
        assert self._process.returncode == 0


@contextmanager
def racing(server: Server, kinds: list[str], clock: str | None = None) -> Iterator[list[Racer]]:
    """Run racers; only those of ours have the wrong clock."""
    with ExitStack() as stack:
        racers = []
        for kind in kinds:
            racer = Racer(kind, server.url, None if kind == "old" else clock)
            stack.callback(racer.close)
            racers.append(racer)
        yield racers


def race(racers: list[Racer], name: str) -> list[bool]:
    """Let all try for one lock, and tell who won."""
    for racer in racers:
        racer.start(name)
    return [racer.won() for racer in racers]


@pytest.mark.parametrize("mix", MIXES)
def test_exactly_one_takes_an_expired_lock_over(
    server: Server, client: sneck.Client, mix: str
) -> None:
    kinds = MIXES[mix]
    # the algorithm of old knows no milliseconds
    expired = EXPIRED[: 3 if "old" in kinds else 4]
    winners = set()
    with racing(server, kinds) as racers:
        for number in range(ROUNDS):
            name = f"door:{number}"
            client.execute("SET", name, expired[number % len(expired)])
            won = race(racers, name)
            assert won.count(True) == 1, (number, won)
            winners.add(kinds[won.index(True)])
            held = client.execute("GET", name)
            assert isinstance(held, bytes)
            assert client.legacy_lock(name).acquire(blocking=False) is False
            assert client.execute("GET", name) == held
            # start elsewhere, so that each comes first at times
            racers.append(racers.pop(0))
            kinds = [*kinds[1:], kinds[0]]
    assert winners == set(kinds)


@pytest.mark.parametrize("mix", ["ours", "mixed"])
def test_exactly_one_takes_a_free_lock(server: Server, client: sneck.Client, mix: str) -> None:
    with racing(server, MIXES[mix]) as racers:
        for number in range(ROUNDS // 4):
            assert race(racers, f"door:{number}").count(True) == 1


@pytest.mark.parametrize("clock", ["+2000d", "-2000d"])
def test_who_has_a_wrong_clock_steals_nothing(
    server: Server, client: sneck.Client, clock: str
) -> None:
    now = client.execute("TIME")
    assert isinstance(now, list)
    assert isinstance(now[0], bytes)
    held = str(int(now[0]) + TIMEOUT)
    client.execute("SET", "held", held)
    client.execute("SET", "over", str(int(now[0]) - TIMEOUT))
    with racing(server, ["python", "c", "lua"], clock) as racers:
        assert race(racers, "held") == [False, False, False]
        assert client.execute("GET", "held") == held.encode()
        assert race(racers, "over").count(True) == 1
        over = client.execute("GET", "over")
        assert isinstance(over, bytes)
        assert TIMEOUT <= int(over) - int(now[0]) <= TIMEOUT + LIMIT


def test_an_attempt_in_vain_leaves_the_expiry(server: Server, client: sneck.Client) -> None:
    client.execute("SET", "door", FUTURE, "PX", 600_000)
    with racing(server, MIXES["ours"]) as racers:
        assert not any(race(racers, "door"))
    left = client.execute("PTTL", "door")
    assert isinstance(left, int)
    assert 0 < left <= 600_000
    assert client.execute("GET", "door") == FUTURE.encode()


def test_a_key_that_disappears_is_taken_by_one(server: Server, client: sneck.Client) -> None:
    """Whatever a racer has seen before, it starts again."""
    with racing(server, MIXES["ours"]) as racers:
        for number in range(ROUNDS // 4):
            name = f"door:{number}"
            client.execute("SET", name, EXPIRED[0])
            for racer in racers:
                racer.start(name)
            client.execute(
                "EVAL",
                "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end",
                1,
                name,
                EXPIRED[0],
            )
            assert [racer.won() for racer in racers].count(True) == 1
