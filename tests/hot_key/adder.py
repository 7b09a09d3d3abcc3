"""Add 1 to the number at a key, many times, without a lock.

    adder.py URL KEY TIMES

Prints "ready", waits for a line on stdin, and prints the most attempts that one addition took,
and the number that the last one wrote.
"""

from __future__ import annotations

import sys

import sneck


def main() -> None:
    """Add, and print."""
    url, key, times = sys.argv[1:]
    most = 0
    attempts = 0
    last: bytes | None = b"0"

    def add_one(old: bytes | None) -> int:
        nonlocal attempts
        attempts += 1
        return int(old or 0) + 1

    with sneck.connect(url) as client:
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(int(times)):
            attempts = 0
            last = client.update(key, add_one, wait=None)
            most = max(most, attempts)
    print(most, int(last or 0))


if __name__ == "__main__":
    main()
