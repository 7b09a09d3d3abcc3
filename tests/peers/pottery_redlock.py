"""pottery_redlock NAME SOCKET...: pottery's Redlock, told by lines to acquire and to release."""

import sys

from pottery import Redlock
from redis import Redis

name, *sockets = sys.argv[1:]
masters = {Redis(unix_socket_path=path) for path in sockets}
lock = Redlock(key=name, masters=masters, auto_release_time=60)
for line in sys.stdin:
    if line == "acquire\n":
        print("held" if lock.acquire(blocking=False) else "busy", flush=True)
    else:
        lock.release()
        print("released", flush=True)
