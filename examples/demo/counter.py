"""counter HOW WHERE TIMES: add one to a number, TIMES times.

file    the number in the file WHERE
lock    the same, each time under the lock of that name
key     the number at the key WHERE of the server, by GET and SET
update  the same, by compare-and-set
"""

import sys

import sneck

how, where, times = sys.argv[1:]
client = sneck.connect()
lock = client.lock(where, ttl=10, wait=60)


def meet() -> None:
    """Say that we are here, the first time, and wait until the input ends.

    Counters that do so between reading and writing have all read before the first
    one writes.
    """
    if not sys.stdin.closed:
        print("here", flush=True)
        sys.stdin.read()
        sys.stdin.close()


def add_in_file() -> None:
    """Read the number in the file, and write it over."""
    with open(where, "r+") as file:
        number = int(file.read())
        meet()
        file.seek(0)
        file.write(f"{number + 1:10}\n")  # one width: no old digit stays


def add_under_lock() -> None:
    """Do that while nobody else does."""
    meet()
    with lock:
        add_in_file()


def add_at_key() -> None:
    """Read the number at the key, and write it over."""
    old = client.execute("GET", where)
    assert isinstance(old, bytes)
    meet()
    client.execute("SET", where, int(old) + 1)


def add_by_update() -> None:
    """Do that only if nobody else has written meanwhile, and again otherwise."""
    meet()
    client.update(where, lambda old: int(old or 0) + 1)


add = {
    "file": add_in_file,
    "lock": add_under_lock,
    "key": add_at_key,
    "update": add_by_update,
}[how]
for _ in range(int(times)):
    add()
