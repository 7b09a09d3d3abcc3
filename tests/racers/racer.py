"""A racer: takes timestamp locks as it is told, one try each, and releases them.

    racer.py KIND URL TIMEOUT      on stdin: "take NAME" and "release NAME", a line each

KIND is "ours", or "old": the algorithm as the documentation of SETNX had it. With "-ms" behind
it, times are milliseconds. It answers each line: won, lost, or overwrote (lost, but its GETSET
has moved the time of who won); released, or not-owner.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Protocol

import sneck

PAUSE = 0.002  # seconds at most, from an old client's look to its GETSET: others come in between


class Racer(Protocol):
    """What takes and releases locks."""

    def take(self, name: str) -> str:
        """Try once."""

    def release(self, name: str) -> str:
        """Give back what it has won."""


class Old:
    """SETNX, GET and GETSET, each by itself; DEL, while its time is not over."""

    def __init__(self, client: sneck.Client, timeout: int, scale: int) -> None:
        """Hold locks for so many seconds; a second is `scale` of the time's unit."""
        self._client = client
        self._timeout = timeout
        self._scale = scale
        self._ends: dict[str, int] = {}

    def _now(self) -> float:
        return time.time() * self._scale

    def _write(self, command: str, name: str) -> object:
        self._ends[name] = int(self._now()) + self._timeout * self._scale + 1
        return self._client.execute(command, name, self._ends[name])

    def take(self, name: str) -> str:
        """Try once; a key that has disappeared in between means to start again."""
        while True:
            if self._write("SETNX", name):
                return "won"
            held = self._client.execute("GET", name)
            if held is None:
                continue
            assert isinstance(held, bytes)
            if float(held) >= self._now():
                return "lost"
            time.sleep(random.uniform(0, PAUSE))
            before = self._write("GETSET", name)
            if before is None:
                continue
            assert isinstance(before, bytes)
            return "won" if float(before) < self._now() else "overwrote"

    def release(self, name: str) -> str:
        """Delete the key."""
        if self._now() >= self._ends[name]:
            return "not-owner"
        self._client.execute("DEL", name)
        return "released"


class Ours:
    """Sneck's lock."""

    def __init__(self, client: sneck.Client, timeout: int, scale: int) -> None:
        """Hold locks for so many seconds."""
        self._client = client
        self._timeout = timeout
        self._milliseconds = scale == 1000
        self._locks: dict[str, sneck.LegacyLock] = {}

    def take(self, name: str) -> str:
        """Try once."""
        lock = self._client.legacy_lock(
            name, timeout=self._timeout, milliseconds=self._milliseconds
        )
        self._locks[name] = lock
        return "won" if lock.acquire(blocking=False) else "lost"

    def release(self, name: str) -> str:
        """Release it, and tell whether it was ours."""
        try:
            self._locks.pop(name).release()
        except sneck.NotOwned:
            return "not-owner"
        return "released"


def main() -> None:
    """Race until there are no more lines."""
    kind, url, timeout = sys.argv[1:]
    scale = 1000 if kind.endswith("-ms") else 1
    make: type[Old | Ours] = Old if kind.startswith("old") else Ours
    with sneck.connect(url) as client:
        racer: Racer = make(client, int(timeout), scale)
        for line in sys.stdin:
            verb, name = line.split()
            print(racer.take(name) if verb == "take" else racer.release(name), flush=True)


if __name__ == "__main__":
    main()
