"""A contender for a lock that others want, too: many workers and the page they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from commands import Commands
from page import Page
from worker import Worker

import sneck

Start = Callable[[str, int], Worker]  # from the page's path and the worker's index


@dataclass
class Round:
    """What came out of one round of one group."""

    changes_per_second: float
    changes: int  # with the last ones, after the round's time
    requests: int
    calls: Counter[str]  # of commands, those of scripts included
    longest_ms: float
    jain: float
    starved: int  # workers that never got the lock


def jain(counts: list[int]) -> float:
    """Return Jain's index of fairness: 1 when all have as much, 1/n when one has it all."""
    squares = sum(count * count for count in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else 0.0


class Group:
    """The workers of one contender, started once."""

    def __init__(self, name: str, url: str, path: Path, workers: int, start: Start) -> None:
        """Start the workers, and wait until all of them have had the lock once."""
        self.name = name
        self.size = workers
        self._client = sneck.connect(url)
        self._commands = Commands(url)
        self._page = Page.create(path, workers)
        self._workers = [start(str(path), index) for index in range(workers)]
        self._run(0, 0)

    def _run(self, seconds: float, section_us: int) -> None:
        """Let them run until the round ends; each takes the lock once more after that."""
        self._client.execute("FLUSHDB")
        self._commands.reset()
        self._page.clear(seconds, section_us)
        for worker in self._workers:
            worker.begin(1)
        for worker in self._workers:
            worker.end()

    def run(self, seconds: float, section_us: int) -> Round:
        """Run a round."""
        self._run(seconds, section_us)
        page, counts = self._page, self._page.acquisitions
        return Round(
            changes_per_second=page.changes_in_time / seconds,
            changes=page.changes,
            requests=self._commands.requests(),
            calls=self._commands.calls(),
            longest_ms=page.longest_ms,
            jain=jain(counts),
            starved=counts.count(0),
        )

    def stop(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.stop()
