"""Measure how fast one key is incremented by compare-and-set, against raw hiredis.

Run by bench/cas, which builds what this needs. One private server; each contender is
a group of processes, pinned; short rounds in which each group runs once.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from commands import per_cycle
from cores import pin, placements
from group import Group, Round, run_rounds
from launch import Program, c_program, installed, lua_program, python_program
from monitor import calls_of_scripts
from rounds import Quartiles, heading, options, quartiles, show
from sweep import Sweep

import sneck
from sneck.testing import Server

KEY = "bench:number"  # as in the workers
BASELINE = "raw hiredis"
RIVAL = "redis-py"
WORKERS = "1,2,8,32"
TITLES = {
    "same": "server and contender on one core",
    "split": "the server on one core, the contender on another",
    "free": "all on all cores",
}
HEADING = [
    (f"{'':<24}", ""),
    ("adds to raw hiredis'  ", "median [quartiles]"),
    ("to redis-", "py's"),
    ("   adds", "  per s"),
    (" cmds", " sent"),
    ("  and", "calls"),
    ("trips", ""),
    ("longest", "     ms"),
    ("Jain", ""),
]


@dataclass
class Result:
    """What was measured of one contender in one setting: medians, save for the counts."""

    name: str
    workers: int
    placement: str
    adds_per_second: float
    ratio: Quartiles  # of the adds, to raw hiredis'
    rival_ratio: Quartiles | None  # to redis-py's, where that takes part
    sent: float  # commands for each add
    commands: dict[str, float]  # for each add, with what scripts call
    trips: float  # reads of the server for each add
    longest_ms: float
    jain: float


class Adders(Group):
    """A group that adds to one number."""

    def run(self, seconds: float, section_us: int = 0) -> Round:
        """Run a round, after which the number must be that of all that was added."""
        outcome = super().run(seconds, section_us)
        found = self.client.execute("GET", KEY)
        if found != str(outcome.total).encode():
            raise RuntimeError(f"{self.name}: {KEY} is {found!r} after {outcome.total} additions")
        return outcome


def has_ifeq(server: Server) -> bool:
    """Try whether the server compares and sets by itself; its version is not asked."""
    client = sneck.connect(server.url)
    client.execute("SET", KEY, "old")
    try:
        client.execute("SET", KEY, "new", "IFEQ", "old")
    except sneck.ServerError:
        return False
    return client.execute("GET", KEY) == b"new"


def contenders_of(server: Server, _workers: int) -> dict[str, Callable[[], Program]]:
    """Say how the workers of each contender are started, after what must be compiled."""

    def raw(way: str) -> Callable[[], Program]:
        return partial(c_program, "add_raw", way, server.socket, library="-lhiredis")

    def in_c(way: str) -> Callable[[], Program]:
        return partial(c_program, "add_sneck", way, server.url)

    def in_python(way: str, address: str) -> Callable[[], Program]:
        return partial(python_program, "add", way, address)

    contenders: dict[str, Callable[[], Program]] = {
        BASELINE: raw("three"),
        "raw in 2 trips": raw("two"),
        "sneck C update": in_c("update"),
        "sneck C transact": in_c("transact"),
        "sneck C compare_and_set": in_c("compare_and_set"),
        "sneck Python update": in_python("sneck-update", server.url),
        "sneck Python transaction": in_python("sneck-transaction", server.url),
        "sneck Lua update": partial(lua_program, "add", server.url),
    }
    if installed("redis"):
        contenders[RIVAL] = in_python("redis-py", server.socket)
    if has_ifeq(server):
        contenders["raw SET IFEQ"] = raw("ifeq")
    return {**contenders, "script (no CAS)": raw("script"), "INCR (no CAS)": raw("incr")}


def rates(rounds: list[Round]) -> list[float]:
    """Return the adds in a second, round by round."""
    return [each.per_second for each in rounds]


def summary(
    group: Adders, placement: str, outcomes: dict[str, list[Round]], script_calls: float
) -> Result:
    """Put the rounds of a group together."""
    own, rival = outcomes[group.name], outcomes.get(RIVAL)
    total = sum(each.total for each in own)
    commands = per_cycle(sum((each.calls for each in own), Counter()), total)
    return Result(
        name=group.name,
        workers=group.size,
        placement=placement,
        adds_per_second=statistics.median(rates(own)),
        ratio=quartiles(rates(own), rates(outcomes[BASELINE])),
        rival_ratio=quartiles(rates(own), rates(rival)) if rival else None,
        sent=sum(commands.values()) - script_calls * commands.get("evalsha", 0),
        commands=commands,
        trips=sum(each.requests for each in own) / total,
        longest_ms=statistics.median(each.longest_ms for each in own),
        jain=statistics.median(each.jain for each in own),
    )


def row(result: Result) -> str:
    """Format a contender's line of the table."""
    rival = result.rival_ratio
    return " | ".join(
        [
            f"{result.name:<24}",
            f"{show(result.ratio):<22}",
            f"{rival[1]:>9.2f}" if rival else f"{'-':>9}",
            f"{result.adds_per_second:>7.0f}",
            f"{result.sent:>5.2f}",
            f"{sum(result.commands.values()):>5.2f}",
            f"{result.trips:>5.2f}",
            f"{result.longest_ms:>7.1f}",
            f"{result.jain:.3f}",
        ]
    )


def show_table(results: list[Result]) -> None:
    """Print the table of one setting."""
    setting = results[0]
    processes = "1 process" if setting.workers == 1 else f"{setting.workers} processes"
    print(f"\n{processes}; {TITLES[setting.placement]}")
    print(heading(HEADING))
    for result in results:
        print(row(result), flush=True)


def measure(
    server: Server, groups: list[Adders], rounds: int, seconds: float
) -> Iterator[list[Result]]:
    """Measure all groups in one placement after the other."""
    settings = placements(free=groups[0].size > 1)
    for placement, (server_cores, worker_cores) in settings.items():
        pin(server.pid, *server_cores)
        for group in groups:
            group.pin(*worker_cores)
        outcomes = run_rounds(groups, rounds, seconds)
        yield [
            summary(group, placement, outcomes, monitored(server, group, seconds))
            for group in groups
        ]


def monitored(server: Server, group: Adders, seconds: float) -> float:
    """Tell how many commands each script of a group calls, by one round more."""
    return calls_of_scripts(server.socket, server.url, lambda: group.run(seconds))


if __name__ == "__main__":
    Sweep(Adders, BASELINE, contenders_of, measure, show_table).main(
        options("bench/cas", rounds=15, seconds=0.3), WORKERS
    )
