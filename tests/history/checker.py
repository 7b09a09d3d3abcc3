"""Finds claims in a history that cannot all be true. Reads lines and has no other input.

What the lines mean stands in README.md. All bounds are generous: a machine that is busy makes
events late, and a late event must never look like a fault.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

ORDER_SLACK = 1000.0  # ms; how much earlier somebody must have asked to be first
SETTLE = 3000.0  # ms; after a disturbance, until nobody is affected any more


@dataclass(frozen=True)
class Claim:
    """A time for which a process believed that it holds the lock."""

    who: str
    begin: float
    end: float
    fence: int = 0  # 0: it asked for none


@dataclass(frozen=True)
class Wait:
    """An acquire: from its call to its return, or to the end of the history."""

    who: str
    begin: float
    end: float
    won: bool


@dataclass
class History:
    """What one process claims."""

    claims: list[Claim] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)


def read(who: str, lines: Iterable[str], died: float) -> History:
    """Read one process's lines; `died` is when it was ended."""
    history = History()
    asked = until = begin = math.nan
    holding = waiting = False
    fence = 0
    for line in lines:
        kind, *values = line.split()
        time = float(values[0])
        if kind == "asked":
            asked, waiting = time, True
        elif kind in ("held", "missed"):
            history.waits.append(Wait(who, asked, time, won=kind == "held"))
            waiting = False
            if kind == "held":
                begin, until, holding = time, float(values[1]), True
                fence = int(values[2]) if len(values) > 2 else 0
        elif kind == "still" and holding and float(values[1]) > time:
            until = max(until, float(values[1]))
        elif kind == "releasing" and holding:
            history.claims.append(Claim(who, begin, min(until, time), fence))
            holding = False
    if holding:
        history.claims.append(Claim(who, begin, min(until, died), fence))
    if waiting:
        history.waits.append(Wait(who, asked, died, won=False))
    return history


def overlaps(claims: Iterable[Claim]) -> list[str]:
    """Find two processes that held the lock at once."""
    ordered = sorted((claim for claim in claims if claim.begin < claim.end), key=lambda c: c.begin)
    found = []
    last: Claim | None = None
    for claim in ordered:
        if last and claim.begin < last.end and claim.who != last.who:
            found.append(f"overlap: {last} and {claim}")
        if last is None or claim.end > last.end:
            last = claim
    return found


def not_increasing(claims: Iterable[Claim]) -> list[str]:
    """Find a fence that is not greater than the one before.

    Claims that do not overlap begin in the order in which the server gave the lock.
    """
    fenced = [claim for claim in claims if claim.fence and claim.begin < claim.end]
    fenced.sort(key=lambda claim: claim.begin)
    return [
        f"fence: {after} after {before}"
        for before, after in pairwise(fenced)
        if after.fence <= before.fence
    ]


class Disturbances:
    """When which process was disturbed; "*" stands for all."""

    def __init__(self, times: Mapping[str, Iterable[float]]) -> None:
        """Sort the times of each process."""
        everywhere = list(times.get("*", []))
        self._everywhere = sorted(everywhere)
        self._times = {who: sorted([*own, *everywhere]) for who, own in times.items()}

    def touch(self, who: str, begin: float, end: float) -> bool:
        """Tell whether the process was disturbed in that time, or shortly before."""
        times = self._times.get(who, self._everywhere)
        at = bisect.bisect_left(times, begin - SETTLE)
        return at < len(times) and times[at] <= end


def stuck(
    claims: Iterable[Claim], waits: Iterable[Wait], disturbed: Disturbances, bound: float
) -> list[str]:
    """Find times longer than `bound` in which nobody got the lock although somebody waited."""
    held = sorted(claims, key=lambda c: c.begin)
    waiting = [wait for wait in waits if not disturbed.touch(wait.who, wait.begin, wait.end)]
    found = []
    for before, after in pairwise(held):
        gap = (before.end, after.begin)
        sufferers = [w.who for w in waiting if w.begin <= gap[0] and w.end >= gap[1]]
        if gap[1] - gap[0] > bound and sufferers:
            found.append(
                f"stuck: free for {gap[1] - gap[0]:.0f} ms after {before}, waited: {sufferers}"
            )
    return found


def inversions(waits: Iterable[Wait], disturbed: Disturbances) -> list[str]:
    """Find a waiter that was passed by one who asked clearly later."""
    fair = [wait for wait in waits if not disturbed.touch(wait.who, wait.begin, wait.end)]
    return [
        f"inversion: {second} passed {first}"
        for first in fair
        for second in fair
        if second.won and first.begin + ORDER_SLACK < second.begin and second.end < first.end
    ]


def starved(waits: Iterable[Wait], disturbed: Disturbances, patience: float) -> list[str]:
    """Find a wait that went on for longer than `patience` without a disturbance."""
    return [
        f"starvation: {wait}"
        for wait in waits
        if not wait.won
        and wait.end - wait.begin > patience
        and not disturbed.touch(wait.who, wait.begin, wait.end)
    ]


def check(
    histories: Iterable[History],
    disturbed: Disturbances,
    *,
    bound: float,
    patience: float,
) -> list[str]:
    """Find everything that is wrong with the histories of one run."""
    histories = list(histories)
    claims = [claim for history in histories for claim in history.claims]
    waits = [wait for history in histories for wait in history.waits]
    return [
        *overlaps(claims),
        *not_increasing(claims),
        *stuck(claims, waits, disturbed, bound),
        *inversions(waits, disturbed),
        *starved(waits, disturbed, patience),
    ]
