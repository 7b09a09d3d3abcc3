"""Racers for timestamp locks: ours in three languages, and the algorithm of old.

All start at a key whose time is over, again and again; exactly one of them has to win.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

import sneck
from programs import BUILD, LUA, PYTHON, TESTS, environment
from sneck.testing import Server

ROUNDS = 1000
TIMEOUT = 600  # seconds; longer than all rounds take
SECONDS = [b"1234567890", b"1234567890.25", b"1000000000"]
MILLISECONDS = [b"1234567890123", b"1234567890123.5", b"100000000000"]
FUTURE = "4102444800"  # the year 2100
LIMIT = 30.0

PROGRAMS = {
    "old": [*PYTHON, str(TESTS / "racers/racer.py"), "old"],
    "python": [*PYTHON, str(TESTS / "racers/racer.py"), "ours"],
    "c": [str(BUILD / "tests/racer"), "ours"],
    "lua": [*LUA, str(TESTS / "racers/racer.lua"), "ours"],
}
OURS = ["python", "python", "c", "c", "c", "lua", "lua", "lua"]
MIXES = {
    "old": (["old"] * 8, SECONDS),
    "ours": (OURS, SECONDS + MILLISECONDS),
    "mixed": (["old", "old", "old", "old", "python", "c", "c", "lua"], SECONDS),
    "few": (["old", "old", "old", "old", "old", "old", "old", "c"], SECONDS),
    # to old clients that write milliseconds, seconds are over; ours keep the unit
    "milliseconds": (["old-ms"] * 4 + ["python", "c", "c", "lua"], MILLISECONDS),
    "asked": (["old-ms"] * 4 + ["python-ms", "c-ms", "c", "lua-ms"], MILLISECONDS),
}
# where nobody can see the unit of the others
FREE_MIXES = {
    "ours": OURS,
    "mixed": MIXES["mixed"][0],
    "milliseconds": ["old-ms"] * 4 + ["python-ms", "c-ms", "c-ms", "lua-ms"],
}


class Racer:
    """A racer's process; `clock` is how wrong its clock is, such as "+1h"."""

    def __init__(self, kind: str, url: str, clock: str | None = None) -> None:
        self.kind = kind
        self.is_old = kind.startswith("old")
        faked = [shutil.which("faketime") or "faketime", "-f", clock] if clock else []
        *program, does = PROGRAMS[kind.removesuffix("-ms")]
        if kind.endswith("-ms"):
            does += "-ms"
        self._process = subprocess.Popen(
            # what a loser of old writes is another time than ours
            [*faked, *program, does, url, str(TIMEOUT + self.is_old)],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def start(self, name: str, verb: str = "take") -> None:
        """Let it try for a lock, or release it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{verb} {name}\n")

    def answer(self) -> str:
        """Wait for what it says."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def release(self, name: str) -> str:
        """Let it release what it has won, and tell what it says."""
        self.start(name, "release")
        return self.answer()

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
            racer = Racer(kind, server.url, None if kind.startswith("old") else clock)
            stack.callback(racer.close)
            racers.append(racer)
        yield racers


def race(racers: list[Racer], name: str) -> list[str]:
    """Let all try for one lock, and tell what they say."""
    for racer in racers:
        racer.start(name)
    return [racer.answer() for racer in racers]


def count_looks(client: sneck.Client) -> int:
    """Tell how often the server has done a GET."""
    info = client.execute("INFO", "commandstats")
    assert isinstance(info, bytes)
    found = re.search(rb"cmdstat_get:calls=(\d+)", info)
    return int(found[1]) if found else 0


def await_look(client: sneck.Client, before: int) -> None:
    """Wait for one more GET."""
    deadline = time.monotonic() + LIMIT
    while count_looks(client) == before:
        assert time.monotonic() < deadline


def race_late(
    client: sneck.Client,
    racers: list[Racer],
    name: str,
    between: Callable[[], object] = lambda: None,
) -> list[str]:
    """As race(), but ours begin when one of old has looked, and may have seen the time over."""
    looks = count_looks(client)
    for racer in racers:
        if racer.is_old:
            racer.start(name)
    await_look(client, looks)
    between()
    for racer in racers:
        if not racer.is_old:
            racer.start(name)
    return [racer.answer() for racer in racers]


def read(client: sneck.Client, key: str) -> bytes | None:
    """Read a string."""
    value = client.execute("GET", key)
    assert value is None or isinstance(value, bytes)
    return value


def was_moved(client: sneck.Client, name: str) -> bool:
    """Tell whether the time in the key is another than the one that ours have written last."""
    written = read(client, f"{{{name}}}:sneck:writer")
    return written is None or written.split()[0] != read(client, name)


def check_release(client: sneck.Client, winner: Racer, name: str, *, overwritten: bool) -> bool:
    """Let the winner release; one of ours deletes what it wrote, and nothing else.

    Tells whether it was left alone.
    """
    held = read(client, name)
    moved = not winner.is_old and was_moved(client, name)
    assert overwritten or not moved
    if moved:
        assert winner.release(name) == "not-owner"
        assert read(client, name) == held
    else:
        assert winner.release(name) == "released"
        assert client.execute("EXISTS", name) == 0
    return moved


@pytest.mark.parametrize("mix", MIXES)
def test_exactly_one_takes_an_expired_lock_over(
    server: Server, client: sneck.Client, mix: str
) -> None:
    kinds, expired = MIXES[mix]
    overwrites = left_alone = 0
    with racing(server, kinds) as racers:
        old = [racer.is_old for racer in racers]
        for number in range(ROUNDS):
            name = f"door:{number}"
            client.execute("SET", name, expired[number % len(expired)])
            late = number % 2 and any(old)
            answers = race_late(client, racers, name) if late else race(racers, name)
            assert answers.count("won") == 1, (number, answers)
            lost_late = answers.count("overwrote")
            overwrites += lost_late
            held = read(client, name)
            assert client.legacy_lock(name).acquire(blocking=False) is False
            assert read(client, name) == held
            winner = racers[answers.index("won")]
            left_alone += check_release(client, winner, name, overwritten=lost_late > 0)
            # start elsewhere, so that each comes first at times
            racers.append(racers.pop(0))
        for racer in racers:  # each can win
            client.execute("SET", "last", expired[0])
            assert race([racer], "last") == ["won"]
    # without these, what is said of losers is not tested
    assert (overwrites > 0) == any(old)
    assert (left_alone > 0) == (any(old) and not all(old))


@pytest.mark.parametrize("mix", FREE_MIXES)
def test_exactly_one_takes_a_free_lock(server: Server, client: sneck.Client, mix: str) -> None:
    with racing(server, FREE_MIXES[mix]) as racers:
        for number in range(ROUNDS // 4):
            name = f"door:{number}"
            answers = race(racers, name)
            assert answers.count("won") == 1
            assert "overwrote" not in answers
            check_release(client, racers[answers.index("won")], name, overwritten=False)
            racers.append(racers.pop(0))


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
        assert race(racers, "held") == ["lost", "lost", "lost"]
        assert read(client, "held") == held.encode()
        assert race(racers, "over").count("won") == 1
        over = read(client, "over")
        assert over is not None
        assert TIMEOUT <= int(over) - int(now[0]) <= TIMEOUT + LIMIT


def test_an_attempt_in_vain_leaves_the_expiry(server: Server, client: sneck.Client) -> None:
    client.execute("SET", "door", FUTURE, "PX", 600_000)
    with racing(server, OURS) as racers:
        assert "won" not in race(racers, "door")
    left = client.execute("PTTL", "door")
    assert isinstance(left, int)
    assert 0 < left <= 600_000
    assert read(client, "door") == FUTURE.encode()


DELETE_IF = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"


@pytest.mark.parametrize("mix", ["ours", "mixed", "few"])
def test_a_key_that_disappears_is_taken_by_one(
    server: Server, client: sneck.Client, mix: str
) -> None:
    """Whatever a racer has seen before, it starts again.

    By none where there are old clients: the one whose GETSET finds no key has written a time,
    and stumbles over that when it starts again.
    """
    kinds, _ = MIXES[mix]
    won = []
    with racing(server, kinds) as racers:
        for number in range(ROUNDS // 4):
            name = f"door:{number}"

            def delete(name: str = name) -> None:
                client.execute("EVAL", DELETE_IF, 1, name, SECONDS[0])

            client.execute("SET", name, SECONDS[0])
            if number % 2 and "old" in kinds:
                answers = race_late(client, racers, name, delete)
            else:
                for racer in racers:
                    racer.start(name)
                delete()
                answers = [racer.answer() for racer in racers]
            won.append(answers.count("won"))
            racers.append(racers.pop(0))
    assert max(won) == 1
    assert min(won) == 1 or "old" in kinds
