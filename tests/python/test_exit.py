"""An interpreter that ends while locks are renewed, lost and told is silent about it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable

import pytest

from sneck.testing import Server

Spawn = Callable[..., subprocess.Popen[str]]
LIMIT = 60.0
TIMES = 40
AT_ONCE = 2

BEGIN = """
import sys, threading, time, sneck
client = sneck.connect(sys.argv[1])
name = sys.argv[2]

def lock(on_lost=lambda lock: None, part="", ttl=0.03):
    made = client.lock(name + part, ttl=ttl, renew=True, on_lost=on_lost)
    made.acquire()
    return made
"""

ENDS = {
    "renewing": """
held = lock(ttl=0.06)
""",
    "lost, and due to be told": """
held = [lock(part=str(number)) for number in range(20)]
client.execute("DEL", *[each.name for each in held])
""",
    "being told": """
began = threading.Event()

def slowly(lock):
    began.set()
    for _ in range(50):
        time.sleep(0.001)
    lock.clone().acquire(blocking=False)

held = lock(slowly)
client.execute("DEL", name)
began.wait()
""",
    "in threads that nobody waits for": """
def work():
    while True:
        held = lock()
        client.execute("DEL", name)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
""",
    "in a module's last moments": """
class Last:
    def __init__(self):
        self.lock = lock(self.lost)

    def lost(self, lock):
        self.told = True

    def __del__(self):
        client.execute("DEL", self.lock.name)
        self.lock.remaining()

last = Last()
""",
}


@pytest.mark.parametrize("how", ENDS)
def test_it_ends_well(server: Server, name: str, spawn: Spawn, how: str) -> None:
    for batch in range(TIMES // AT_ONCE):
        ending = [
            spawn(BEGIN + ENDS[how], server.url, f"{name}:{batch}:{number}")
            for number in range(AT_ONCE)
        ]
        for process in ending:
            output, _ = process.communicate(timeout=LIMIT)
            assert (process.returncode, output) == (0, "")


WAITED_FOR = """
began = threading.Event()

def slowly(lock):
    began.set()
    for _ in range(50):
        time.sleep(0.002)
    print("done")

held = lock(slowly)
client.execute("DEL", name)
began.wait()
"""


def test_a_callback_that_runs_is_waited_for(server: Server, name: str, spawn: Spawn) -> None:
    output, _ = spawn(BEGIN + WAITED_FOR, server.url, name).communicate(timeout=LIMIT)
    assert output == "done\n"


ENDLESS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
began = threading.Event()

def endless(lock):
    began.set()
    threading.Event().wait()

held = lock(endless)
client.execute("DEL", name)
began.wait()
print("told", flush=True)
"""


def test_ctrl_c_ends_the_wait_for_a_callback(
    server: Server, name: str, spawn: Spawn, until: Callable[[Callable[[], bool]], None]
) -> None:
    process = spawn(BEGIN + ENDLESS, server.url, name)
    assert process.stdout is not None
    assert process.stdout.readline() == "told\n"

    def interrupt() -> bool:  # again, for the first one may come before the end
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    until(interrupt)
    assert "KeyboardInterrupt" in process.communicate()[0]


AT_EXIT = """
def wait_for_renewal():
    held.extend(30)  # which is renewed at once
    for _ in range(3000):
        if held.remaining() > 30:
            print("renewed")
            break
        time.sleep(0.01)

atexit.register(wait_for_renewal)
held = lock(ttl=60)
"""


def test_renewal_goes_on_for_what_is_registered_to_run_at_exit(
    server: Server, name: str, spawn: Spawn
) -> None:
    script = BEGIN.replace("import sys", "import atexit, sys") + AT_EXIT
    output, _ = spawn(script, server.url, name).communicate(timeout=LIMIT)
    assert output == "renewed\n"
