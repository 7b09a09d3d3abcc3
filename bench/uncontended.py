"""Measure acquire + release of a free lock, each contender against raw hiredis.

Run by bench/uncontended, which builds what this needs. One private server; each
contender in a process of its own; short rounds in which each runs once, in a
new order each time. A ratio is taken within a round, so that what slows the
machine for a while slows both sides of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from commands import Commands
from contender import Contender, pin

from sneck.testing import Server

HERE = Path(__file__).resolve().parent
TOP = HERE.parent
BASELINE = "raw hiredis"
TITLES = {"same": "same core", "split": "a core each"}


@dataclass
class Result:
    """What was measured of one contender."""

    name: str
    cycles_per_second: dict[str, float] = field(default_factory=dict)  # by placement: the median
    ratios: dict[str, tuple[float, float, float]] = field(default_factory=dict)  # the quartiles
    commands: dict[str, float] = field(default_factory=dict)  # calls in a cycle


def placements() -> dict[str, tuple[int, int]]:
    """Name the core of the server and that of the contender, as far as there are cores."""
    first, *others = sorted(os.sched_getaffinity(0))
    split = {"split": (first, others[0])} if others else {}
    return {"same": (first, first), **split}


def compile_worker(name: str, *libraries: str) -> str:
    """Compile a worker in C and return its path."""
    program = TOP / "build" / "bench" / name
    program.parent.mkdir(exist_ok=True)
    source = HERE / "workers" / f"{name}.c"
    subprocess.check_call([TOP / "scripts" / "compile", program, source, *libraries])
    return str(program)


def commands_of(server: Server) -> dict[str, Callable[[], list[str]]]:
    """Say how each contender is started."""
    workers = HERE / "workers"
    contenders = {
        BASELINE: lambda: [compile_worker("raw_hiredis", "-lhiredis"), server.socket],
        "sneck C": lambda: [compile_worker("sneck_lock"), server.url],
        "sneck Python": lambda: [sys.executable, str(workers / "sneck_lock.py"), server.url],
        "sneck Lua": lambda: ["lua5.4", str(workers / "sneck_lock.lua"), server.url],
    }
    if importlib.util.find_spec("redis"):
        contenders["redis-py Lock"] = lambda: [
            sys.executable,
            str(workers / "redis_py.py"),
            server.socket,
        ]
    return contenders


def start(server: Server, only: list[str]) -> list[Contender]:
    """Start the contenders that `only` names a part of, and the baseline."""
    return [
        Contender(name, command())
        for name, command in commands_of(server).items()
        if name == BASELINE or not only or any(part in name for part in only)
    ]


def measure_rounds(
    contenders: list[Contender], rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Run every contender once in each round; return the cycles per second of each."""
    cycles = {contender.name: contender.calibrate(seconds) for contender in contenders}
    rates: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for contender in random.sample(contenders, len(contenders)):
            rates[contender.name].append(contender.run(cycles[contender.name]))
    return rates


def quartiles(rates: list[float], baseline: list[float]) -> tuple[float, float, float]:
    """Return the quartiles of the ratios that were measured round by round."""
    ratios = [rate / base for rate, base in zip(rates, baseline, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return low, middle, high


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
        result.commands = commands.per_cycle(cycles)


def row(result: Result) -> str:
    """Format a contender's line of the table."""
    cells = [f"{result.name:<15}"]
    for placement, (low, middle, high) in result.ratios.items():
        rate = result.cycles_per_second[placement]
        cells.append(f"{middle:.3f} [{low:.3f} {high:.3f}] {rate:>7.0f}/s")
    cells.append(", ".join(f"{name} {calls:g}" for name, calls in result.commands.items()))
    return " | ".join(cells)


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(prog="bench/uncontended")
    parser.add_argument("--rounds", type=int, default=30, help="rounds in each placement")
    parser.add_argument("--seconds", type=float, default=0.1, help="of each contender's round")
    parser.add_argument("--only", default="", help="parts of contenders' names, with commas")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    options = parser.parse_args()
    only = [part for part in options.only.split(",") if part]

    with Server() as server:
        results = measure(server, only, options.rounds, options.seconds)
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    print(f"acquire + release of a free lock: ratio to {BASELINE} within a round,")
    print(f"median [quartiles] of {options.rounds} rounds, and cycles per second; {server.program}")
    columns = [f"{TITLES[placement]:<31}" for placement in results[0].ratios]
    print(" | ".join([f"{'':<15}", *columns, "commands in a cycle"]))
    for result in results:
        print(row(result))


if __name__ == "__main__":
    main()
