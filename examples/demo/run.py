"""Let processes in C, Python and Lua add to one number, unprotected and protected.

Run by scripts/demo, which builds what this needs into build/. Each counter adds one
to the number so many times; what is there at the end shows how many additions were
lost. That the unprotected ways lose some is no luck: all counters have read the same
number before the first one writes. The server is a private one, ended at the end. The
exit status is 1 if a protected way lost an addition.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import sneck
from sneck.testing import Server

HERE = Path(__file__).resolve().parent
COMPILE = HERE.parent.parent / "scripts" / "compile"
KEY = "demo:number"


@dataclass(frozen=True)
class Way:
    """A way to add, as the counters call it."""

    name: str
    title: str
    protected: bool


IN_A_FILE = (
    Way("file", "in a file, without a lock", protected=False),
    Way("lock", "in a file, with a lock", protected=True),
)
AT_A_KEY = (
    Way("key", "at a key, by GET and SET", protected=False),
    Way("update", "at a key, by update", protected=True),
)


@dataclass(frozen=True)
class Count:
    """What came of one run of all the counters."""

    way: Way
    expected: int
    counted: int
    seconds: float

    @property
    def lost(self) -> int:
        """The additions that another process wrote over."""
        return self.expected - self.counted

    def __str__(self) -> str:
        """Format the row of the table."""
        rate = self.expected / self.seconds
        return (
            f"{self.way.title:<25}{self.expected:>10}{self.counted:>10}{self.lost:>8}{rate:>13.0f}"
        )


def run_together(commands: list[list[str]]) -> float:
    """Run the counters, and return the seconds from when all are there to the last one's end."""
    with contextlib.ExitStack() as stack:
        counters = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            for command in commands
        ]
        for counter in counters:
            assert counter.stdout is not None
            counter.stdout.readline()
        begin = time.monotonic()
        for counter in counters:
            assert counter.stdin is not None
            counter.stdin.close()
        statuses = [counter.wait() for counter in counters]
        seconds = time.monotonic() - begin
    if any(statuses):
        sys.exit("demo: a counter failed; its message is above")
    return seconds


def count_in_file(way: Way, programs: list[list[str]], times: int) -> Count:
    """Let the programs count in a new file."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "number"
        file.write_text(f"{0:10}\n")
        commands = [[*program, way.name, str(file), str(times)] for program in programs]
        seconds = run_together(commands)
        return Count(way, times * len(programs), int(file.read_text()), seconds)


def count_at_key(way: Way, programs: list[list[str]], times: int) -> Count:
    """Let the programs count at a key of the server."""
    commands = [[*program, way.name, KEY, str(times)] for program in programs]
    with sneck.connect() as client:
        client.execute("SET", KEY, 0)
        seconds = run_together(commands)
        counted = client.execute("GET", KEY)
    assert isinstance(counted, bytes)
    return Count(way, times * len(programs), int(counted), seconds)


def main() -> int:
    """Show all ways as a table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/demo")
    parser.add_argument("--times", type=int, default=500, help="additions of each process")
    parser.add_argument("--processes", type=int, default=2, help="processes of each language")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as directory, Server() as server:
        counter = f"{directory}/counter"
        subprocess.check_call([COMPILE, counter, HERE / "counter.c"])
        programs = options.processes * [
            [counter],
            [sys.executable, str(HERE / "counter.py")],
            ["lua5.4", str(HERE / "counter.lua")],
        ]
        os.environ["SNECK_URL"] = server.url
        print(
            f"\n{options.processes} processes each in C, Python and Lua"
            f" add 1 to the same number, {options.times} times each.\n"
        )
        print(f"{'':<25}{'expected':>10}{'counted':>10}{'lost':>8}{'additions/s':>13}")
        failed = False
        for ways, count in ((IN_A_FILE, count_in_file), (AT_A_KEY, count_at_key)):
            for way in ways:
                result = count(way, programs, options.times)
                print(result, flush=True)
                failed = failed or (way.protected and result.lost > 0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
