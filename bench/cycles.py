"""Cycles of acquire and release: contenders, each alone, against one of them.

Each contender is a process of its own. Where the servers and the contenders run is
told beside the numbers, for it changes all of them.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from commands import Commands, per_cycle
from contender import Contender
from cores import pin, placements
from rounds import Quartiles, chosen, interleave, quartiles, show

from sneck.testing import Server

TITLES = {"same": "same core", "split": "a core each", "free": "all cores"}
COUNTED = 1000  # cycles in which commands are counted

Commander = Callable[[], list[str]]  # says how a contender is started
Rates = dict[str, list[float]]  # of each contender, by rounds


@dataclass
class Result:
    """What was measured of one contender."""

    name: str
    cycles_per_second: dict[str, float] = field(default_factory=dict)  # by placement: the median
    ratios: dict[str, Quartiles] = field(default_factory=dict)  # to the baseline's
    to_others: dict[str, dict[str, Quartiles]] = field(default_factory=dict)
    commands: dict[str, float] = field(default_factory=dict)  # calls in a cycle


@dataclass
class Cycles:
    """The contenders, and what they want: a lock on these servers."""

    servers: Sequence[Server]
    contenders: Mapping[str, Commander]
    baseline: str
    others: Sequence[str] = ()  # whom all are compared with, too
    free: bool = False  # also where nothing is pinned

    def start(self, only: list[str]) -> list[Contender]:
        """Start the contenders that `only` names a part of, and the baseline."""
        return [
            Contender(name, command())
            for name, command in self.contenders.items()
            if chosen(name, only, self.baseline)
        ]

    def measure(self, only: list[str], rounds: int, seconds: float) -> list[Result]:
        """Measure all contenders in all placements."""
        contenders = self.start(only)
        results = [Result(contender.name) for contender in contenders]
        for placement, (server_cores, own_cores) in placements(free=self.free).items():
            for server in self.servers:
                pin(server.pid, *server_cores)
            for contender in contenders:
                contender.pin(*own_cores)
            self._add(results, placement, measure_rounds(contenders, rounds, seconds))
        for contender, result in zip(contenders, results, strict=True):
            result.commands = self._count(contender)
            contender.stop()
        return results

    def _add(self, results: list[Result], placement: str, rates: Rates) -> None:
        """Note what was measured in one placement."""
        others = [name for name in self.others if name in rates]
        for result in results:
            own = rates[result.name]
            result.cycles_per_second[placement] = statistics.median(own)
            result.ratios[placement] = quartiles(own, rates[self.baseline])
            result.to_others[placement] = {name: quartiles(own, rates[name]) for name in others}

    def _count(self, contender: Contender) -> dict[str, float]:
        """Let a contender run alone, and tell what it asks the servers for."""
        counters = [Commands(server.url) for server in self.servers]
        for counter in counters:
            counter.reset()
        contender.run(COUNTED)
        calls = sum((counter.calls() for counter in counters), Counter[str]())
        return per_cycle(calls, COUNTED)


def measure_rounds(contenders: list[Contender], rounds: int, seconds: float) -> Rates:
    """Return the cycles per second of each contender, by rounds."""
    cycles = {contender.name: contender.calibrate(seconds) for contender in contenders}
    return interleave(contenders, rounds, lambda contender: contender.run(cycles[contender.name]))


def row(result: Result) -> str:
    """Format a contender's line of the table."""
    cells = [f"{result.name:<15}"]
    for placement, ratios in result.ratios.items():
        cells.append(f"{show(ratios)} {result.cycles_per_second[placement]:>7.0f}/s")
    cells.append(", ".join(f"{name} {calls:g}" for name, calls in result.commands.items()))
    return " | ".join(cells)


def show_table(results: list[Result]) -> None:
    """Print the table."""
    columns = [f"{TITLES[placement]:<31}" for placement in results[0].ratios]
    print(" | ".join([f"{'':<15}", *columns, "commands in a cycle"]))
    for result in results:
        print(row(result))
