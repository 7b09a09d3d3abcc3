"""Measure acquire + release of a free lock, each contender against raw hiredis.

Run by bench/uncontended, which builds what this needs. One private server, and
each contender in a process of its own.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from cycles import Commander, Cycles, show_table
from launch import compile_worker, installed, lua_worker, python_worker
from rounds import options

from sneck.testing import Server

BASELINE = "raw hiredis"


def commands_of(server: Server) -> dict[str, Commander]:
    """Say how each contender is started."""
    contenders: dict[str, Commander] = {
        BASELINE: lambda: [compile_worker("raw_hiredis", "-lhiredis"), server.socket],
        "sneck C": lambda: [compile_worker("sneck_lock"), server.url],
        "sneck Python": lambda: python_worker("sneck_lock", server.url),
        "sneck Lua": lambda: lua_worker("sneck_lock", server.url),
    }
    if installed("redis"):
        contenders["redis-py Lock"] = lambda: python_worker("redis_py", server.socket)
    return contenders


def main() -> None:
    """Measure, and print a table or JSON."""
    given = options("bench/uncontended", rounds=30, seconds=0.1).parse_args()
    with Server() as server:
        cycles = Cycles([server], commands_of(server), BASELINE)
        results = cycles.measure(given.only, given.rounds, given.seconds)
    if given.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    print(f"acquire + release of a free lock: ratio to {BASELINE} within a round,")
    print(f"median [quartiles] of {given.rounds} rounds, and cycles per second; {server.program}")
    show_table(results)


if __name__ == "__main__":
    main()
