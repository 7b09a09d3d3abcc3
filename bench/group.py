"""A contender for what others want, too: many workers and the page they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commands import Commands
from cores import pin
from launch import Program
from page import Page
from rounds import interleave
from worker import Worker

import sneck

WARM_UP = 0.2  # seconds


@dataclass
class Round:
    """What came out of one round of one group."""

    seconds: float
    counts: list[int]  # how often each worker did its task in time
    longest_ms: float  # the longest that a worker needed for one
    requests: int
    calls: Counter[str]  # of commands, those of scripts included
    changes: int  # of a lock's owner, with the last ones, after the round's time
    changes_in_time: int

    @property
    def total(self) -> int:
        """How often all did it, with the last one of each, after the round's time."""
        return sum(self.counts) + len(self.counts)

    @property
    def per_second(self) -> float:
        """How often all did it, in a second."""
        return sum(self.counts) / self.seconds

    @property
    def changes_per_second(self) -> float:
        """How often the lock changed its owner, in a second."""
        return self.changes_in_time / self.seconds

    @property
    def starved(self) -> int:
        """How many workers did not do it at all."""
        return self.counts.count(0)

    @property
    def jain(self) -> float:
        """Jain's index of fairness: 1 when all did it as often, 1/n when one did it all."""
        squares = sum(count * count for count in self.counts)
        return sum(self.counts) ** 2 / (len(self.counts) * squares) if squares else 0.0


class Group:
    """The workers of one contender, started once."""

    def __init__(self, name: str, url: str, path: Path, workers: int, program: Program) -> None:
        """Start the workers, and wait until all of them have done their task once."""
        self.name = name
        self.size = workers
        self.client = sneck.connect(url)
        self._commands = Commands(url)
        self._page = Page.create(path, workers)
        self._workers = [
            Worker(name, [*program.command, str(path), str(index)], **program.environment)
            for index in range(workers)
        ]
        self._run(0, 0)

    def pin(self, *cores: int) -> None:
        """Let the workers run on these cores only."""
        for worker in self._workers:
            pin(worker.pid, *cores)

    def _run(self, seconds: float, section_us: int) -> None:
        """Let them run until the round ends; each does its task once more after that."""
        self.client.execute("FLUSHDB")
        self._commands.reset()
        self._page.clear(seconds, section_us)
        for worker in self._workers:
            worker.begin(1)
        for worker in self._workers:
            worker.end()

    def run(self, seconds: float, section_us: int = 0) -> Round:
        """Run a round."""
        self._run(seconds, section_us)
        page = self._page
        return Round(
            seconds=seconds,
            counts=page.counts,
            longest_ms=page.longest_ms,
            requests=self._commands.requests(),
            calls=self._commands.calls(),
            changes=page.changes,
            changes_in_time=page.changes_in_time,
        )

    def stop(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.stop()


def run_rounds(
    groups: Sequence[Group], rounds: int, seconds: float, section_us: int = 0
) -> dict[str, list[Round]]:
    """Warm the groups up, and let each run in every round; return the rounds by its name."""
    for group in groups:
        group.run(min(seconds, WARM_UP), section_us)
    return interleave(groups, rounds, lambda group: group.run(seconds, section_us))
