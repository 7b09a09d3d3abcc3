"""How the tests of leases wait for what must happen, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

import sneck

LIMIT = 30.0  # seconds; what does not happen by then never will
LONG = 60.0  # a ttl in seconds that no test outlasts
SHORT = 0.2  # one that is to end


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something comes true that must."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def wait_for_renewal(lock: sneck.Lock) -> None:
    """Shorten a LONG lease, which its renewal mends at once."""
    lock.extend(LONG / 2)
    wait_until(lambda: lock.remaining() > LONG / 2)


def lose(lock: sneck.Lock, by: str = "DEL") -> None:
    """Take a LONG lock away, by DEL or SET, and wait until its renewal has found that.

    Which looks at once, as it begins anew with less than two thirds left.
    """
    lock.keep_alive(on=False)
    lock.extend(LONG / 2)
    lock._client.execute(by, lock.name, *(["other"] if by == "SET" else []))
    lock.keep_alive()
    wait_until(lambda: lock.lost)


def wait_for_end(client: sneck.Client, name: str) -> None:
    """Wait until the server has let a lease run out."""
    wait_until(lambda: client.execute("EXISTS", name) == 0)
