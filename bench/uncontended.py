"""Measure acquire + release of a free lock, each contender against raw hiredis.

Run by bench/uncontended, which builds what this needs. One private server, and
each contender in a process of its own.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from commands import Commands, per_cycle
from contender import Contender
from cores import pin, placements
from launch import compile_worker, installed, lua_worker, python_worker
from rounds import Quartiles, chosen, interleave, options, quartiles, show

from sneck.testing import Server

BASELINE = "raw hiredis"
TITLES = {"same": "same core", "split": "a core each"}


@dataclass
class Result:
    """What was measured of one contender."""

    name: str
    cycles_per_second: dict[str, float] = field(default_factory=dict)  # by placement: the median
    ratios: dict[str, Quartiles] = field(default_factory=dict)
    commands: dict[str, float] = field(default_factory=dict)  # calls in a cycle


def commands_of(server: Server) -> dict[str, Callable[[], list[str]]]:
    """Say how each contender is started."""
    contenders = {
        BASELINE: lambda: [compile_worker("raw_hiredis", "-lhiredis"), server.socket],
        "sneck C": lambda: [compile_worker("sneck_lock"), server.url],
        "sneck Python": lambda: python_worker("sneck_lock", server.url),
        "sneck Lua": lambda: lua_worker("sneck_lock", server.url),
    }
    if installed("redis"):
        contenders["redis-py Lock"] = lambda: python_worker("redis_py", server.socket)
    return contenders


def start(server: Server, only: list[str]) -> list[Contender]:
    """Start the contenders that `only` names a part of, and the baseline."""
    return [
        Contender(name, command())
        for name, command in commands_of(server).items()
        if chosen(name, only, BASELINE)
    ]


def measure_rounds(
    contenders: list[Contender], rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Return the cycles per second of each contender, by rounds."""
    cycles = {contender.name: contender.calibrate(seconds) for contender in contenders}
    return interleave(contenders, rounds, lambda contender: contender.run(cycles[contender.name]))


def measure(server: Server, only: list[str], rounds: int, seconds: float) -> list[Result]:
    """Measure all contenders in all placements."""
    contenders = start(server, only)
    results = [Result(contender.name) for contender in contenders]
    for placement, (server_core, contender_core) in placements().items():
        pin(server.pid, server_core)
        for contender in contenders:
            contender.pin(contender_core)
        rates = measure_rounds(contenders, rounds, seconds)
        for result in results:
            own = rates[result.name]
            result.cycles_per_second[placement] = statistics.median(own)
            result.ratios[placement] = quartiles(own, rates[BASELINE])
    count_commands(server, contenders, results)
    for contender in contenders:
        contender.stop()
    return results


def count_commands(server: Server, contenders: list[Contender], results: list[Result]) -> None:
    """Let each contender run alone, and note what it asked the server for."""
    commands = Commands(server.url)
    cycles = 1000
    for contender, result in zip(contenders, results, strict=True):
        commands.reset()
        contender.run(cycles)
        result.commands = per_cycle(commands.calls(), cycles)


def row(result: Result) -> str:
    """Format a contender's line of the table."""
    cells = [f"{result.name:<15}"]
    for placement, ratios in result.ratios.items():
        cells.append(f"{show(ratios)} {result.cycles_per_second[placement]:>7.0f}/s")
    cells.append(", ".join(f"{name} {calls:g}" for name, calls in result.commands.items()))
    return " | ".join(cells)


def main() -> None:
    """Measure, and print a table or JSON."""
    given = options("bench/uncontended", rounds=30, seconds=0.1).parse_args()
    with Server() as server:
        results = measure(server, given.only, given.rounds, given.seconds)
    if given.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    print(f"acquire + release of a free lock: ratio to {BASELINE} within a round,")
    print(f"median [quartiles] of {given.rounds} rounds, and cycles per second; {server.program}")
    columns = [f"{TITLES[placement]:<31}" for placement in results[0].ratios]
    print(" | ".join([f"{'':<15}", *columns, "commands in a cycle"]))
    for result in results:
        print(row(result))


if __name__ == "__main__":
    main()
