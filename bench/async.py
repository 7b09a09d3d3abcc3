"""Measure how fast a lock is handed over in one process in which thousands wait for it.

Run by bench/async, which builds what this needs. One private server; the crowds, each a
process that waits on one link, run in turn, and so do processes that block.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from launch import compile_worker
from page import Page
from rounds import Quartiles, chosen, interleave, names, options, quartiles, show
from worker import Worker

import sneck
from sneck.testing import Server

WAITERS = "1,100,1000,5000"
BASELINE = "8 processes"
ROUND, SETTLE = 1, 2  # what a crowd is told to do
WARM_UP = 0.2  # seconds
HEADING = [
    (f"{'':<13}", ""),
    ("to processes' that block", "median [quartiles]"),
    (" handed", "   on/s"),
    ("     µs", "   each"),
    ("longest", "     ms"),
    ("connec-", "  tions"),
    (" memory", "    KiB"),
    ("KiB for each", " that waits"),
]


@dataclass
class Round:
    """What came out of one round."""

    per_second: float  # hand-overs
    longest_ms: float  # the longest one or, of those that block, the longest wait


@dataclass
class Result:
    """What was measured of one contender: medians."""

    name: str
    per_second: float
    ratio: Quartiles  # of the hand-overs, to those of processes that block
    longest_ms: float
    connections: int
    memory_kib: float  # resident, of all its processes
    waiter_kib: float | None  # by how much one more that waits makes it grow


class Contender(Protocol):
    """Whoever hands a lock over."""

    name: str
    pids: list[int]

    def run(self, seconds: float) -> Round:
        """Run a round."""

    def stop(self) -> None:
        """End it."""


def run_page(page: Page, workers: Sequence[Worker], seconds: float) -> Round:
    """Let the workers run a round that their page counts."""
    page.clear(seconds, 0)
    for worker in workers:
        worker.begin(ROUND)
    for worker in workers:
        worker.end()
    return Round(page.changes_in_time / seconds, page.longest_ms)


class Crowd:
    """One process in which many wait on one link."""

    def __init__(self, name: str, program: list[str], folder: Path, waiters: int) -> None:
        """Start the process; all of them wait when this returns."""
        path = folder / name
        self.name = name
        self.waiters = waiters
        self._page = Page.create(path, waiters + 1)
        self._worker = Worker(name, [*program, str(waiters), str(path)])
        self.pids = [self._worker.pid]

    def run(self, seconds: float) -> Round:
        """Run a round."""
        self._worker.begin(SETTLE)
        self._worker.end()
        return run_page(self._page, [self._worker], seconds)

    def stop(self) -> None:
        """End the process."""
        self._worker.stop()


class Blockers:
    """Processes that wait by calls that block, each for the same lock."""

    def __init__(self, name: str, program: list[str], folder: Path, count: int) -> None:
        """Start the processes."""
        path = folder / name
        self.name = name
        self._page = Page.create(path, count)
        self._workers = [Worker(name, [*program, str(path), str(i)]) for i in range(count)]
        self.pids = [worker.pid for worker in self._workers]

    def run(self, seconds: float) -> Round:
        """Run a round."""
        return run_page(self._page, self._workers, seconds)

    def stop(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.stop()


def memory_kib(pids: Sequence[int]) -> float:
    """Return the resident memory of processes."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return float(sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")))


def start(server: Server, folder: Path, waiters: list[int], only: list[str]) -> list[Contender]:
    """Start the processes that block, and the crowds that `only` names a part of."""
    blocking = [compile_worker("contend_sneck"), server.url]
    program = [compile_worker("async_sneck"), server.url]
    blockers = Blockers(BASELINE, blocking, folder, int(BASELINE.split()[0]))
    sizes = {f"sneck C {count}": count for count in waiters}
    return [
        blockers,
        *(
            Crowd(name, program, folder, count)
            for name, count in sizes.items()
            if chosen(name, only, BASELINE)
        ),
    ]


def count_connections(client: sneck.Client) -> int:
    """Ask the server how many connections it has."""
    listed = client.execute("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    return len(listed.splitlines())


def warm_up(server: Server, contenders: list[Contender], seconds: float) -> dict[str, int]:
    """Let each run once, and return how many connections it has opened for that."""
    client = sneck.connect(server.url)
    opened = {}
    for contender in contenders:
        before = count_connections(client)
        contender.run(min(seconds, WARM_UP))
        opened[contender.name] = count_connections(client) - before
    return opened


def growth(contender: Contender, crowds: list[Crowd]) -> float | None:
    """Say what one more that waits takes, by comparison with the smallest crowd."""
    smallest = min(crowds, key=lambda crowd: crowd.waiters, default=None)
    if not smallest or not isinstance(contender, Crowd) or contender is smallest:
        return None
    grown = memory_kib(contender.pids) - memory_kib(smallest.pids)
    return grown / (contender.waiters - smallest.waiters)


def measure(
    contenders: list[Contender], connections: dict[str, int], rounds: int, seconds: float
) -> list[Result]:
    """Measure all contenders."""
    outcomes = interleave(contenders, rounds, lambda contender: contender.run(seconds))
    blocking = [each.per_second for each in outcomes[BASELINE]]
    crowds = [contender for contender in contenders if isinstance(contender, Crowd)]
    results = []
    for contender in contenders:
        own = outcomes[contender.name]
        rates = [each.per_second for each in own]
        results.append(
            Result(
                name=contender.name,
                per_second=statistics.median(rates),
                ratio=quartiles(rates, blocking),
                longest_ms=statistics.median(each.longest_ms for each in own),
                connections=connections[contender.name],
                memory_kib=memory_kib(contender.pids),
                waiter_kib=growth(contender, crowds),
            )
        )
    return results


def row(result: Result) -> str:
    """Format a contender's line of the table."""
    each = "" if result.waiter_kib is None else f"{result.waiter_kib:.2f}"
    return " | ".join(
        [
            f"{result.name:<13}",
            f"{show(result.ratio):<24}",
            f"{result.per_second:>7.0f}",
            f"{1e6 / result.per_second:>7.0f}",
            f"{result.longest_ms:>7.1f}",
            f"{result.connections:>7}",
            f"{result.memory_kib:>7.0f}",
            f"{each:>12}",
        ]
    )


def show_table(results: list[Result]) -> None:
    """Print the table."""
    print("a lock that is handed over within one process, by the number of ops that wait for it")
    for line in range(2):
        print(" | ".join(f"{column[line]:<{len(column[0])}}" for column in HEADING))
    for result in results:
        print(row(result))


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = options("bench/async", rounds=10, seconds=1)
    parser.add_argument("--waiters", type=names, default=WAITERS, help=f"how many ({WAITERS})")
    given = parser.parse_args()
    with Server() as server, TemporaryDirectory(prefix="sneck-bench-") as folder:
        contenders = start(
            server, Path(folder), [int(count) for count in given.waiters], given.only
        )
        connections = warm_up(server, contenders, given.seconds)
        results = measure(contenders, connections, given.rounds, given.seconds)
        for contender in contenders:
            contender.stop()
    if given.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    else:
        show_table(results)
        print(f"\n{given.rounds} rounds of {given.seconds:g} s; {server.program}")


if __name__ == "__main__":
    main()
