"""pottery_redlock URL...: acquire and release through pottery's Redlock."""

import sys

from pottery import Redlock
from redis import Redis

masters = {Redis.from_url(url) for url in sys.argv[1:]}
lock = Redlock(key="bench:lock", masters=masters, auto_release_time=10)
acquire, release = lock.acquire, lock.release

for line in sys.stdin:
    for _ in range(int(line)):
        if not acquire(blocking=False):
            sys.exit("worker: the lock is held by another")
        release()
    print("done", flush=True)
