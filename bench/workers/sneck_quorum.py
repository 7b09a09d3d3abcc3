"""sneck_quorum URL...: acquire and release on several servers through the Python package."""

import sys

import sneck

lock = sneck.quorum(sys.argv[1:]).lock("bench:lock", ttl=10)
acquire, release = lock.acquire, lock.release

for line in sys.stdin:
    for _ in range(int(line)):
        if not acquire(blocking=False):
            sys.exit("worker: the lock is held by another")
        release()
    print("done", flush=True)
