"""redlock_py URL...: acquire and release through redlock-py."""

import sys

from redlock import Redlock  # type: ignore[import-untyped]

locks = Redlock(sys.argv[1:])

for line in sys.stdin:
    for _ in range(int(line)):
        lock = locks.lock("bench:lock", 10000)
        if not lock:
            sys.exit("worker: the lock is held by another")
        locks.unlock(lock)
    print("done", flush=True)
