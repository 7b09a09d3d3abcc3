"""Add 1 to the number at a key, many times, without a lock.

    adder.py URL KEY TIMES

Waits for a line on stdin, and prints the most attempts that one addition took.
"""

from __future__ import annotations

import sys

import sneck


def main() -> None:
    """Add, and print."""
    url, key, times = sys.argv[1:]
    most = 0
    attempts = 0

    def add_one(old: bytes | None) -> int:
        nonlocal attempts
        attempts += 1
        return int(old or 0) + 1

    with sneck.connect(url) as client:
        sys.stdin.readline()
        for _ in range(int(times)):
            attempts = 0
            client.update(key, add_one, wait=None)
            most = max(most, attempts)
    print(most)


if __name__ == "__main__":
    main()
