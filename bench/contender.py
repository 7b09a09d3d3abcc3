"""A contender: one process that runs cycles when told to, pinned to one core.

The process lives as long as the bench, so that its start and its connection are
not measured. A round is timed from here: the line that tells it to run, and the
line that says it is done, cost some 50 µs of rounds that take 100 ms.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path


class Contender:
    """A worker process by name."""

    def __init__(self, name: str, command: list[str]) -> None:
        """Start the process."""
        self.name = name
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def pin(self, core: int) -> None:
        """Let the process run on this core only."""
        pin(self._process.pid, core)

    def run(self, cycles: int) -> float:
        """Run so many cycles and return the cycles per second."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        begin = time.perf_counter()
        try:
            self._process.stdin.write(f"{cycles}\n")
            self._process.stdin.flush()
            done = self._process.stdout.readline() == "done\n"
        except BrokenPipeError:
            done = False
        if not done:
            raise RuntimeError(f"{self.name}: the worker failed; its message is above")
        return cycles / (time.perf_counter() - begin)

    def calibrate(self, seconds: float) -> int:
        """Find how many cycles take about so long."""
        self.run(200)
        return max(1, int(self.run(1000) * seconds))

    def stop(self) -> None:
        """End the process and wait for it."""
        self._process.communicate()


def pin(pid: int, core: int) -> None:
    """Let every thread of a process run on this core only."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})
