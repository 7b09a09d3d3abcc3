"""Measure how often a lock that many want changes its owner, against a token ring.

Run by bench/contended, which builds what this needs. One private server; each
contender is a group of processes; short rounds in which each group runs once.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from commands import per_cycle
from group import Group, Round, Start
from launch import HERE, compile_lua_module, compile_worker, installed, lua_worker, python_worker
from rounds import Quartiles, chosen, interleave, names, options, quartiles, show
from worker import Worker

from sneck.testing import Server

BASELINE = "ring"
WORKERS = "2,8,32,128"
SECTIONS_US = {"an empty section": 0, "a section of 1 ms": 1000}
WARM_UP = 0.2  # seconds


@dataclass
class Result:
    """What was measured of one contender in one setting: medians, save for requests."""

    name: str
    workers: int
    section_us: int
    changes_per_second: float
    ratio: Quartiles  # of the changes, to the ring's
    requests: float  # for each change, what scripts call not counted
    commands: dict[str, float]  # for each change, with what they call
    longest_ms: float
    longest_ratio: Quartiles  # of the longest wait, to the ring's
    jain: float
    starved: float  # workers that never got the lock in a round


def contenders_of(server: Server, workers: int) -> dict[str, Callable[[], Start]]:
    """Say how the workers of each contender are started, after what must be compiled."""

    def program(name: str, *libraries: str, address: str, more: tuple[str, ...] = ()) -> Start:
        path = compile_worker(name, *libraries)
        return lambda page, index: Worker(name, [path, address, page, str(index), *more])

    def python(library: str, address: str, *more: str) -> Start:
        return lambda page, index: Worker(
            library,
            python_worker("contend", library, address, page, str(index), *more),
            PYTHONPATH=str(HERE),
        )

    def lua() -> Start:
        modules = compile_lua_module("contend_page")
        return lambda page, index: Worker(
            "sneck Lua",
            lua_worker("contend", server.url, page, str(index)),
            LUA_CPATH=modules,
        )

    contenders = {
        BASELINE: lambda: program(
            "contend_ring", "-lhiredis", address=server.socket, more=(str(workers),)
        ),
        "sneck C": lambda: program("contend_sneck", address=server.url),
        "sneck Python": lambda: python("sneck", server.url),
        "sneck Lua": lua,
    }
    if installed("redis"):
        contenders["redis-py 100 ms"] = lambda: python("redis-py", server.socket, "0.1")
        contenders["redis-py 1 ms"] = lambda: python("redis-py", server.socket, "0.001")
    if installed("redis_lock"):
        contenders["python-redis-lock"] = lambda: python("python-redis-lock", server.socket)
    return contenders


def start(server: Server, folder: Path, workers: int, only: list[str]) -> list[Group]:
    """Start the groups of the contenders that `only` names a part of, and the ring."""
    return [
        Group(name, server.url, folder / f"{workers} {name}", workers, starts())
        for name, starts in contenders_of(server, workers).items()
        if chosen(name, only, BASELINE)
    ]


def summary(group: Group, section_us: int, own: list[Round], ring: list[Round]) -> Result:
    """Put the rounds of a group together."""
    changes = [each.changes_per_second for each in own]
    total = sum(each.changes for each in own)
    longest = [each.longest_ms for each in own]
    return Result(
        name=group.name,
        workers=group.size,
        section_us=section_us,
        changes_per_second=statistics.median(changes),
        ratio=quartiles(changes, [each.changes_per_second for each in ring]),
        requests=sum(each.requests for each in own) / total,
        commands=per_cycle(sum((each.calls for each in own), Counter()), total),
        longest_ms=statistics.median(longest),
        longest_ratio=quartiles(longest, [each.longest_ms for each in ring]),
        jain=statistics.median(each.jain for each in own),
        starved=statistics.median(each.starved for each in own),
    )


def measure(groups: list[Group], section_us: int, rounds: int, seconds: float) -> list[Result]:
    """Measure all groups with sections of one length."""
    for group in groups:
        group.run(min(seconds, WARM_UP), section_us)
    outcomes = interleave(groups, rounds, lambda group: group.run(seconds, section_us))
    ring = outcomes[BASELINE]
    return [summary(group, section_us, outcomes[group.name], ring) for group in groups]


def row(result: Result) -> str:
    """Format a contender's line of the table."""
    return " | ".join(
        [
            f"{result.name:<17}",
            show(result.ratio),
            f"{result.changes_per_second:>7.0f}",
            f"{result.requests:>7.2f}",
            f"{result.longest_ms:>7.1f}",
            f"{result.longest_ratio[1]:>6.2f}",
            f"{result.jain:.3f}",
            f"{result.starved:g}",
        ]
    )


def show_table(results: list[Result]) -> None:
    """Print the table of one setting."""
    (section,) = [name for name, us in SECTIONS_US.items() if us == results[0].section_us]
    print(f"\n{results[0].workers} processes, {section}")
    columns = ["changes to ring's    ", "changes", "cmds to", "longest", "to the", "     ", ""]
    print(" | ".join([f"{'':<17}", *columns]))
    units = ["median [quartiles]   ", "  per s", " change", "wait ms", "ring's", "Jain ", "starved"]
    print(" | ".join([f"{'':<17}", *units]))
    for result in results:
        print(row(result), flush=True)


def main() -> None:
    """Measure, and print tables or JSON."""
    parser = options("bench/contended", rounds=10, seconds=1)
    parser.add_argument(
        "--workers", type=names, default=WORKERS, help=f"how many processes ({WORKERS})"
    )
    given = parser.parse_args()
    results: list[Result] = []
    with Server() as server, TemporaryDirectory(prefix="sneck-bench-") as folder:
        for workers in map(int, given.workers):
            groups = start(server, Path(folder), workers, given.only)
            for section_us in SECTIONS_US.values():
                measured = measure(groups, section_us, given.rounds, given.seconds)
                results += measured
                if not given.json:
                    show_table(measured)
            for group in groups:
                group.stop()
    if given.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    else:
        print(f"\n{given.rounds} rounds of {given.seconds:g} s; {server.program}")


if __name__ == "__main__":
    main()
