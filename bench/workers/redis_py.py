"""redis_py SOCKET: acquire and release through redis-py's Lock."""

import sys

import redis
from cycling import run

lock = redis.Redis(unix_socket_path=sys.argv[1]).lock("bench:lock", timeout=10)
run(lock.acquire, lock.release)
