"""Measure acquire + release of a free lock on five servers, each contender against raw hiredis.

Run by bench/quorum, which builds what this needs. Private servers, and each contender
in a process of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial

from cycles import TITLES, Commander, Cycles, Result, show_table
from launch import compile_worker, installed, lua_worker, python_worker
from rounds import options, show

from sneck.testing import Server

SERVERS = 5
BASELINE = "raw hiredis"
OTHERS = {"redlock-py": ("redlock", "redlock_py"), "pottery": ("pottery", "pottery_redlock")}


def commands_of(servers: Sequence[Server]) -> dict[str, Commander]:
    """Say how each contender is started."""
    sockets = [server.socket for server in servers]
    urls = [server.url for server in servers]
    contenders: dict[str, Commander] = {
        BASELINE: lambda: [compile_worker("raw_quorum", "-lhiredis"), *sockets],
        "sneck C": lambda: [compile_worker("sneck_lock"), *urls],
        "sneck Python": lambda: python_worker("sneck_lock", *urls),
        "sneck Lua": lambda: lua_worker("sneck_lock", *urls),
    }
    for name, (module, worker) in OTHERS.items():
        if installed(module):
            contenders[name] = partial(python_worker, worker, *urls)
    return contenders


def show_others(results: list[Result]) -> None:
    """Print what Python's ratios to the other libraries are, which are in Python, too."""
    for result in results:
        if result.name == "sneck Python":
            for placement, ratios in result.to_others.items():
                for name, ratio in ratios.items():
                    print(f"{result.name} to {name}, {TITLES[placement]}: {show(ratio)}")


def main() -> None:
    """Measure, and print a table or JSON."""
    given = options("bench/quorum", rounds=30, seconds=0.1).parse_args()
    with ExitStack() as stack:
        servers = [stack.enter_context(Server()) for _ in range(SERVERS)]
        cycles = Cycles(servers, commands_of(servers), BASELINE, list(OTHERS), free=True)
        results = cycles.measure(given.only, given.rounds, given.seconds)
    if given.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    print(f"acquire + release of a free lock on {SERVERS} servers: ratio to {BASELINE} within a")
    print(f"round, median [quartiles] of {given.rounds} rounds, and cycles per second;")
    print(servers[0].program)
    show_table(results)
    show_others(results)


if __name__ == "__main__":
    main()
