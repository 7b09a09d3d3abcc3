"""redis_py SOCKET: acquire and release through redis-py's Lock."""

import sys

import redis

lock = redis.Redis(unix_socket_path=sys.argv[1]).lock("bench:lock", timeout=10)
acquire, release = lock.acquire, lock.release

for line in sys.stdin:
    for _ in range(int(line)):
        if not acquire(blocking=False):
            sys.exit("worker: the lock is held by another")
        release()
    print("done", flush=True)
