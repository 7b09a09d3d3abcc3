"""A racer: tries once for each timestamp lock that it is told, and says whether it has it.

    racer.py KIND URL TIMEOUT      the names come on stdin, one on each line

KIND is "ours", or "old": the algorithm as the documentation of SETNX had it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import sneck


def take_as_of_old(client: sneck.Client, name: str, timeout: int) -> bool:
    """Try for a timestamp lock with SETNX, GET and GETSET, each by itself."""
    while True:
        if client.execute("SETNX", name, int(time.time()) + timeout + 1):
            return True
        held = client.execute("GET", name)
        if held is None:
            continue
        assert isinstance(held, bytes)
        if float(held) >= time.time():
            return False
        before = client.execute("GETSET", name, int(time.time()) + timeout + 1)
        if before is None:
            continue
        assert isinstance(before, bytes)
        return float(before) < time.time()


def take_as_ours(client: sneck.Client, name: str, timeout: int) -> bool:
    """Try for a timestamp lock with Sneck."""
    return client.legacy_lock(name, timeout=timeout).acquire(blocking=False)


TAKE: dict[str, Callable[[sneck.Client, str, int], bool]] = {
    "old": take_as_of_old,
    "ours": take_as_ours,
}


def main() -> None:
    """Race until there are no more names."""
    kind, url, timeout = sys.argv[1:]
    with sneck.connect(url) as client:
        for line in sys.stdin:
            print(int(TAKE[kind](client, line.strip(), int(timeout))), flush=True)


if __name__ == "__main__":
    main()
