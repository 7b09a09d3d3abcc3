"""pottery_redlock URL...: acquire and release through pottery's Redlock."""

import sys

from cycling import run
from pottery import Redlock
from redis import Redis

masters = {Redis.from_url(url) for url in sys.argv[1:]}
lock = Redlock(key="bench:lock", masters=masters, auto_release_time=10)
run(lock.acquire, lock.release)
