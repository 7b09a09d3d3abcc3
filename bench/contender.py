"""A contender for a lock that nobody else wants: one worker, pinned to one core.

A round is timed from here: the line that tells the worker to run, and the one that
says it is done, cost some 50 µs of rounds that take 100 ms.
"""

from __future__ import annotations

import time

from cores import pin
from worker import Worker


class Contender(Worker):
    """A worker that runs as many cycles as it is told."""

    def pin(self, *cores: int) -> None:
        """Let the process run on these cores only."""
        pin(self.pid, *cores)

    def run(self, cycles: int) -> float:
        """Run so many cycles and return the cycles per second."""
        begin = time.perf_counter()
        self.begin(cycles)
        self.end()
        return cycles / (time.perf_counter() - begin)

    def calibrate(self, seconds: float) -> int:
        """Find how many cycles take about so long."""
        self.run(200)
        return max(1, int(self.run(1000) * seconds))
