"""sneck_lock URL...: acquire and release through the Python package; several are a quorum's."""

import sys

from cycling import run

import sneck

urls = sys.argv[1:]
client = sneck.connect(*urls) if len(urls) == 1 else sneck.quorum(urls)
lock = client.lock("bench:lock", ttl=10)
run(lock.acquire, lock.release)
