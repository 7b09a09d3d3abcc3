"""counter FILE TIMES [NAME]: add one to the number in FILE, TIMES times.

With NAME, each addition holds the lock of that name. Begins when a line comes
in, so that all the counters of the demo begin together.
"""

import sys

import sneck


def add_one(path: str) -> None:
    """Add one to the number in the file."""
    with open(path, "r+") as file:
        number = int(file.read())
        file.seek(0)
        file.write(f"{number + 1:10}\n")  # one width: no old digit stays


def main(path: str, times: str, name: str | None = None) -> None:
    """Count, with the lock if it has a name."""
    lock = sneck.connect().lock(name, ttl=10, wait=60) if name else None
    sys.stdin.readline()
    for _ in range(int(times)):
        if lock:
            with lock:
                add_one(path)
        else:
            add_one(path)


main(*sys.argv[1:])
