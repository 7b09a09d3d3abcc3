"""redlock_py NAME SOCKET...: redlock-py, told by lines to acquire and to release."""

import sys
from urllib.parse import quote

from redlock import Redlock  # type: ignore[import-untyped]

name, *sockets = sys.argv[1:]
locks = Redlock(["unix://" + quote(path) for path in sockets], retry_count=1, retry_delay=0.001)
lock = None
for line in sys.stdin:
    if line == "acquire\n":
        lock = locks.lock(name, 60000)
        print("held" if lock else "busy", flush=True)
    else:
        locks.unlock(lock)
        print("released", flush=True)
