"""Measure how often a lock that many want changes its owner, against a token ring.

Run by bench/contended, which builds what this needs. One private server; each
contender is a group of processes; short rounds in which each group runs once.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from commands import per_cycle
from group import Group, Round, run_rounds
from launch import Program, c_program, installed, lua_program, python_program
from rounds import Quartiles, heading, options, quartiles, show
from sweep import Sweep

from sneck.testing import Server

BASELINE = "ring"
WORKERS = "2,8,32,128"
SECTIONS_US = {"an empty section": 0, "a section of 1 ms": 1000}
HEADING = [
    (f"{'':<17}", ""),
    ("changes to ring's    ", "median [quartiles]"),
    ("changes", "  per s"),
    ("cmds to", " change"),
    ("cmds to", "acquire"),
    ("longest", "wait ms"),
    (" to the", " ring's"),
    ("     ", "Jain"),
    ("", "starved"),
]


@dataclass
class Result:
    """What was measured of one contender in one setting: medians, save for requests."""

    name: str
    workers: int
    section_us: int
    changes_per_second: float
    ratio: Quartiles  # of the changes, to the ring's
    requests: float  # for each change, what scripts call not counted
    requests_per_acquisition: float
    commands: dict[str, float]  # for each change, with what they call
    longest_ms: float
    longest_ratio: Quartiles  # of the longest wait, to the ring's
    jain: float
    starved: float  # workers that never got the lock in a round


def contenders_of(server: Server, workers: int) -> dict[str, Callable[[], Program]]:
    """Say how the workers of each contender are started, after what must be compiled."""

    def ring() -> Program:
        return c_program("contend_ring", server.socket, str(workers), library="-lhiredis")

    contenders: dict[str, Callable[[], Program]] = {
        BASELINE: ring,
        "sneck C": lambda: c_program("contend_sneck", server.url),
        "sneck Python": lambda: python_program("contend", "sneck", server.url),
        "sneck Lua": lambda: lua_program("contend", server.url),
    }
    if installed("redis"):
        for name, poll in ("redis-py 100 ms", "0.1"), ("redis-py 1 ms", "0.001"):
            contenders[name] = partial(python_program, "contend", "redis-py", server.socket, poll)
    if installed("redis_lock"):
        contenders["python-redis-lock"] = lambda: python_program(
            "contend", "python-redis-lock", server.socket
        )
    return contenders


def summary(group: Group, section_us: int, own: list[Round], ring: list[Round]) -> Result:
    """Put the rounds of a group together."""
    changes = [each.changes_per_second for each in own]
    total = sum(each.changes for each in own)
    requests = sum(each.requests for each in own)
    longest = [each.longest_ms for each in own]
    return Result(
        name=group.name,
        workers=group.size,
        section_us=section_us,
        changes_per_second=statistics.median(changes),
        ratio=quartiles(changes, [each.changes_per_second for each in ring]),
        requests=requests / total,
        requests_per_acquisition=requests / sum(each.total for each in own),
        commands=per_cycle(sum((each.calls for each in own), Counter()), total),
        longest_ms=statistics.median(longest),
        longest_ratio=quartiles(longest, [each.longest_ms for each in ring]),
        jain=statistics.median(each.jain for each in own),
        starved=statistics.median(each.starved for each in own),
    )


def measure(
    _server: Server, groups: list[Group], rounds: int, seconds: float
) -> Iterator[list[Result]]:
    """Measure all groups with sections of one length after the other."""
    for section_us in SECTIONS_US.values():
        outcomes = run_rounds(groups, rounds, seconds, section_us)
        ring = outcomes[BASELINE]
        yield [summary(group, section_us, outcomes[group.name], ring) for group in groups]


def row(result: Result) -> str:
    """Format a contender's line of the table."""
    return " | ".join(
        [
            f"{result.name:<17}",
            f"{show(result.ratio):<21}",
            f"{result.changes_per_second:>7.0f}",
            f"{result.requests:>7.2f}",
            f"{result.requests_per_acquisition:>7.2f}",
            f"{result.longest_ms:>7.1f}",
            f"{result.longest_ratio[1]:>7.2f}",
            f"{result.jain:.3f}",
            f"{result.starved:g}",
        ]
    )


def show_table(results: list[Result]) -> None:
    """Print the table of one setting."""
    (section,) = [name for name, us in SECTIONS_US.items() if us == results[0].section_us]
    print(f"\n{results[0].workers} processes, {section}")
    print(heading(HEADING))
    for result in results:
        print(row(result), flush=True)


if __name__ == "__main__":
    Sweep(Group, BASELINE, contenders_of, measure, show_table).main(
        options("bench/contended", rounds=10, seconds=1), WORKERS
    )
