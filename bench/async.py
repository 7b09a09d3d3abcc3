"""Measure how fast a lock is handed over in one process in which thousands wait for it.

Run by bench/async, which builds what this needs. One private server. For each number of
waiters the crowds, each a process of its own, run in turn, and so do processes that block.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from cores import pin, placements
from launch import Program, c_program, installed, python_program
from page import Page
from rounds import Quartiles, chosen, heading, interleave, names, options, quartiles, show
from worker import Worker

import sneck
from sneck.testing import Server

WAITERS = "1,100,1000,5000"
BASELINE = "8 processes"
ROUND, SETTLE = 1, 2  # what a crowd is told to do
WARM_UP = 0.2  # seconds
LIMIT = 30.0  # seconds that may pass until all wait, and beyond a round's own time
# redis-py: the pause between two looks, and how many connections its pool has
POLLS = {
    "redis-py": ("0.1", "0"),  # as it is
    "redis-py 100 ms": ("0.1", "10"),
    "redis-py 10 ms": ("0.01", "10"),
}
HEADING = [
    (f"{'':<15}", ""),
    ("to processes' that block", "median [quartiles]"),
    (" handed", "   on/s"),
    (" median", "     µs"),
    ("99 % µs", "at most"),
    ("longest", "     ms"),
    ("connec-", "  tions"),
    (" memory", "    KiB"),
    ("KiB for each", " that waits"),
]


@dataclass
class Round:
    """What came out of one round."""

    per_second: float  # hand-overs
    median_us: float  # from the end of one's section to the beginning of the next one's
    late_us: float  # the 99th percentile of the same
    longest_ms: float  # the longest one or, of those that block, the longest wait


@dataclass
class Numbers:
    """What was measured of one contender: medians of rounds."""

    per_second: float
    ratio: Quartiles  # of the hand-overs, to those of processes that block
    median_us: float
    late_us: float
    longest_ms: float
    connections: int
    memory_kib: float  # resident, of all its processes
    waiter_kib: float | None  # by how much one more that waits makes it grow


@dataclass
class Result:
    """What came out of one contender's rounds."""

    name: str
    waiters: int
    failure: str  # "" without one
    numbers: Numbers | None


class Contender:
    """Processes in which many want one lock."""

    def __init__(self, name: str, page: Page, workers: list[Worker]) -> None:
        """Take over the processes, which count on the page."""
        self.name = name
        self.failure = ""  # why it takes part no more
        self.connections = 0
        self._page = page
        self._workers = workers

    def pin(self, core: int) -> None:
        """Let the processes run on this core only."""
        for worker in self._workers:
            pin(worker.pid, core)

    def run(self, seconds: float) -> Round | None:
        """Run a round. None: it has failed, in this one or before."""
        if self.failure:
            return None
        try:
            self._settle()
            self._run(seconds)
        except (TimeoutError, RuntimeError) as error:
            self.failure = str(error).removeprefix(f"{self.name}: ")
            self.stop()
            return None
        page = self._page
        return Round(
            per_second=page.changes_in_time / seconds,
            median_us=page.handover_us(0.5),
            late_us=page.handover_us(0.99),
            longest_ms=page.longest_ms,
        )

    def _settle(self) -> None:
        """Have all wait."""

    def _run(self, seconds: float) -> None:
        self._page.clear(seconds, 0)
        self._tell(ROUND, seconds + LIMIT)

    def _tell(self, what: int, limit: float) -> None:
        for worker in self._workers:
            worker.begin(what)
        for worker in self._workers:
            worker.end(limit)

    def memory_kib(self) -> float:
        """Return the resident memory of the processes."""
        statuses = [Path(f"/proc/{worker.pid}/status").read_text() for worker in self._workers]
        lines = [line for status in statuses for line in status.splitlines()]
        return float(sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")))

    def stop(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.kill()
        self._workers = []


class Crowd(Contender):
    """One process in which many wait on one loop."""

    def __init__(self, name: str, program: Program, folder: Path, waiters: int) -> None:
        """Start the process."""
        path = folder / f"{name} {waiters}"
        page = Page.create(path, waiters + 1)
        command = [*program.command, str(waiters), str(path)]
        super().__init__(name, page, [Worker(name, command, **program.environment)])

    def _settle(self) -> None:
        self._tell(SETTLE, LIMIT)


class Blockers(Contender):
    """Processes that wait by calls that block, each for the same lock."""

    def __init__(self, program: Program, folder: Path, waiters: int) -> None:
        """Start the processes."""
        path = folder / f"{BASELINE} {waiters}"
        count = int(BASELINE.split()[0])
        page = Page.create(path, count)
        commands = [[*program.command, str(path), str(index)] for index in range(count)]
        super().__init__(BASELINE, page, [Worker(BASELINE, command) for command in commands])


def crowds_of(server: Server) -> dict[str, Program]:
    """Say how the process of each kind of crowd is started."""
    programs = {
        "sneck C": c_program("async_sneck", server.url),
        "sneck Python": python_program("async_tasks", "sneck", server.url),
    }
    if installed("redis"):
        for name, options_of_it in POLLS.items():
            programs[name] = python_program(
                "async_tasks", "redis-py", server.socket, *options_of_it
            )
    return programs


def place(server: Server, contenders: list[Contender]) -> None:
    """Give the server a core, and the contenders another one, where there are two."""
    *_, (server_cores, own_cores) = placements(free=False).values()
    pin(server.pid, *server_cores)
    for contender in contenders:
        contender.pin(*own_cores)


def count_connections(client: sneck.Client) -> int:
    """Ask the server how many connections it has."""
    listed = client.execute("CLIENT", "LIST")
    assert isinstance(listed, bytes)
    return len(listed.splitlines())


def start(
    server: Server, folder: Path, waiters: int, only: list[str], seconds: float
) -> list[Contender]:
    """Start the processes that block, and the crowds that `only` names a part of.

    Each runs once, so that all connections that it needs are counted.
    """
    client = sneck.connect(server.url)
    contenders: list[Contender] = []

    def add(make: Callable[[], Contender]) -> None:
        before = count_connections(client)
        contender = make()
        contender.run(min(seconds, WARM_UP))
        while contender.failure and count_connections(client) > before:
            time.sleep(0.01)
        contender.connections = count_connections(client) - before
        contenders.append(contender)

    add(lambda: Blockers(c_program("contend_sneck", server.url), folder, waiters))
    for name, program in crowds_of(server).items():
        if chosen(name, only, BASELINE):
            add(partial(Crowd, name, program, folder, waiters))
    place(server, contenders)
    return contenders


class Growth:
    """What one more that waits takes, by comparison with the smallest crowd of its kind."""

    def __init__(self) -> None:
        """Know none."""
        self._smallest: dict[str, tuple[int, float]] = {}

    def of(self, kind: str, waiters: int, memory_kib: float) -> float | None:
        """Tell, and keep it if it is the first of its kind."""
        few, least = self._smallest.setdefault(kind, (waiters, memory_kib))
        return (memory_kib - least) / (waiters - few) if waiters > few else None


def summary(
    contender: Contender, rounds: list[Round], blocking: list[Round], each: float | None
) -> Numbers:
    """Put the rounds of a contender together."""
    rates = [round_.per_second for round_ in rounds]
    return Numbers(
        per_second=statistics.median(rates),
        ratio=quartiles(rates, [round_.per_second for round_ in blocking]),
        median_us=statistics.median(round_.median_us for round_ in rounds),
        late_us=statistics.median(round_.late_us for round_ in rounds),
        longest_ms=statistics.median(round_.longest_ms for round_ in rounds),
        connections=contender.connections,
        memory_kib=contender.memory_kib(),
        waiter_kib=each,
    )


def measure(
    contenders: list[Contender], waiters: int, growth: Growth, rounds: int, seconds: float
) -> list[Result]:
    """Measure all contenders."""
    outcomes = interleave(contenders, rounds, lambda contender: contender.run(seconds))
    blocking = [each for each in outcomes[BASELINE] if each]
    results = []
    for contender in contenders:
        own = [each for each in outcomes[contender.name] if each]
        numbers = None
        if not contender.failure:
            each = growth.of(contender.name, waiters, contender.memory_kib())
            numbers = summary(contender, own, blocking, each)
        results.append(Result(contender.name, waiters, contender.failure, numbers))
    return results


def row(result: Result) -> str:
    """Format a contender's line of the table."""
    numbers = result.numbers
    if numbers is None:
        return f"{result.name:<15} | {result.failure}"
    each = "" if numbers.waiter_kib is None else f"{numbers.waiter_kib:.2f}"
    return " | ".join(
        [
            f"{result.name:<15}",
            f"{show(numbers.ratio):<24}",
            f"{numbers.per_second:>7.0f}",
            f"{numbers.median_us:>7.0f}",
            f"{numbers.late_us:>7.0f}",
            f"{numbers.longest_ms:>7.1f}",
            f"{numbers.connections:>7}",
            f"{numbers.memory_kib:>7.0f}",
            f"{each:>12}",
        ]
    )


def show_table(results: list[Result]) -> None:
    """Print the table of one number of waiters."""
    print(f"\n{results[0].waiters} that wait")
    print(heading(HEADING))
    for result in results:
        print(row(result), flush=True)


def main() -> None:
    """Measure, and print tables or JSON."""
    parser = options("bench/async", rounds=10, seconds=1)
    parser.add_argument("--waiters", type=names, default=WAITERS, help=f"how many ({WAITERS})")
    given = parser.parse_args()
    growth = Growth()
    results: list[Result] = []
    with Server() as server, TemporaryDirectory(prefix="sneck-bench-") as folder:
        for waiters in map(int, given.waiters):
            contenders = start(server, Path(folder), waiters, given.only, given.seconds)
            measured = measure(contenders, waiters, growth, given.rounds, given.seconds)
            for contender in contenders:
                contender.stop()
            results += measured
            if not given.json:
                show_table(measured)
    if given.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    else:
        print(f"\n{given.rounds} rounds of {given.seconds:g} s; {server.program}")


if __name__ == "__main__":
    main()
