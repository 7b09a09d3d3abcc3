"""Let processes in C, Python and Lua count in one file, without and with a lock.

Run by scripts/demo, which builds what this needs into build/. Each counter adds
one to the number in the file so many times; what the file says at the end shows
how many additions were lost. The server is a private one, ended at the end. The
exit status is 1 if an addition was lost although the lock was held.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from sneck.testing import Server

HERE = Path(__file__).resolve().parent
COMPILE = HERE.parent.parent / "scripts" / "compile"
START_UP = 0.5  # seconds that an interpreter may take; only fairness hangs on it


@dataclass(frozen=True)
class Count:
    """What came of one run of all the counters."""

    title: str
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
        return f"{self.title:<15}{self.expected:>10}{self.counted:>10}{self.lost:>10}{rate:>14.0f}"


def run_together(commands: list[list[str]]) -> float:
    """Run all commands at once, and return the seconds until the last one ended."""
    counters = [subprocess.Popen(command, stdin=subprocess.PIPE) for command in commands]
    time.sleep(START_UP)
    begin = time.monotonic()
    for counter in counters:
        assert counter.stdin is not None
        counter.stdin.write(b"begin\n")
        counter.stdin.flush()
    statuses = [counter.wait() for counter in counters]
    seconds = time.monotonic() - begin
    if any(statuses):
        sys.exit("demo: a counter failed; its message is above")
    return seconds


def count(title: str, programs: list[list[str]], times: int, lock: list[str]) -> Count:
    """Let the programs count in a new file; `lock` is empty or holds a name."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "number"
        file.write_text(f"{0:10}\n")
        seconds = run_together([[*program, str(file), str(times), *lock] for program in programs])
        return Count(title, times * len(programs), int(file.read_text()), seconds)


def main() -> int:
    """Show both runs as a table, and return the exit status."""
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
            f" add 1 to the number in one file, {options.times} times each.\n"
        )
        print(f"{'':<15}{'expected':>10}{'counted':>10}{'lost':>10}{'additions/s':>14}")
        print(count("without a lock", programs, options.times, []), flush=True)
        locked = count("with a lock", programs, options.times, ["demo:counter"])
        print(locked)
    return 1 if locked.lost else 0


if __name__ == "__main__":
    sys.exit(main())
