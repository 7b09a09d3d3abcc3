"""A process of the history check: takes the lock again and again, and writes down what it claims.

    worker.py URL FILE SEED

Runs until it is ended. See README.md.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import sneck

TTLS = (0.4, 1.0, 2.5)
WAITS = (0.0, 0.3, 6.0, 20.0)


def now() -> float:
    """Milliseconds of the clock that all processes share."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


def main() -> None:
    """Loop for ever."""
    url, path, seed = sys.argv[1:]
    chance = random.Random(seed)
    client = sneck.connect(url, timeout=1.0)
    with Path(path).open("w", buffering=1) as out:
        while True:
            lock = client.lock("history", ttl=chance.choice(TTLS), fair=True)
            wait = chance.choice(WAITS)
            print("asked", now(), file=out)
            try:
                held = lock.acquire(timeout=wait) if wait else lock.acquire(blocking=False)
            except sneck.Error as error:
                print("missed", now(), type(error).__name__, file=out)
                time.sleep(0.05)
                continue
            before = now()
            until = before + lock.remaining() * 1000
            if not held:
                print("missed", now(), "busy", file=out)
                time.sleep(0.02)
                continue
            print("held", now(), until, file=out)
            time.sleep(chance.random() * 0.12)
            print("releasing", now(), file=out)
            try:
                lock.release()
            except sneck.Error as error:
                print("released", now(), type(error).__name__, file=out)
            else:
                print("released", now(), "OK", file=out)


main()
