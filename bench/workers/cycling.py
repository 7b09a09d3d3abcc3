"""How a worker in Python runs cycles: a line with their number comes in, one goes out."""

import sys
from collections.abc import Callable


def run(acquire: Callable[..., bool], release: Callable[[], object]) -> None:
    """Acquire and release as often as each line of the input says."""
    for line in sys.stdin:
        for _ in range(int(line)):
            if not acquire(blocking=False):
                sys.exit("worker: the lock is held by another")
            release()
        print("done", flush=True)
