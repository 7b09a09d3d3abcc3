"""Rounds: each contender once in each, in a new order, and ratios within one.

What slows the machine for a while slows both sides of a ratio that is taken within
a round.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

Quartiles = tuple[float, float, float]
Outcome = TypeVar("Outcome")


class Named(Protocol):
    """A contender."""

    name: str


Contending = TypeVar("Contending", bound=Named)


def interleave(
    contenders: Sequence[Contending], rounds: int, run: Callable[[Contending], Outcome]
) -> dict[str, list[Outcome]]:
    """Run every contender once in each round; return the outcomes of each by its name."""
    outcomes: dict[str, list[Outcome]] = {contender.name: [] for contender in contenders}
    for _ in range(rounds):
        for contender in random.sample(contenders, len(contenders)):
            outcomes[contender.name].append(run(contender))
    return outcomes


def quartiles(values: Sequence[float], baseline: Sequence[float]) -> Quartiles:
    """Return the quartiles of the ratios that were measured round by round."""
    ratios = [value / base for value, base in zip(values, baseline, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return low, middle, high


def show(ratios: Quartiles) -> str:
    """Format the quartiles of ratios."""
    low, middle, high = ratios
    return f"{middle:.3f} [{low:.3f} {high:.3f}]"


def heading(columns: Sequence[tuple[str, str]]) -> str:
    """Format the two lines above a table; the upper cells are as wide as the columns."""
    upper = " | ".join(above for above, _ in columns)
    lower = " | ".join(f"{below:<{len(above)}}" for above, below in columns)
    return f"{upper}\n{lower}"


def names(text: str) -> list[str]:
    """Read a list with commas."""
    return [part for part in text.split(",") if part]


def chosen(name: str, only: list[str], baseline: str) -> bool:
    """Tell whether a contender takes part: the baseline does, and whatever `only` names."""
    return name == baseline or not only or any(part in name for part in only)


def options(prog: str, *, rounds: int, seconds: float) -> argparse.ArgumentParser:
    """Make a parser of the options that all benchmarks have, with these defaults."""
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds in each setting")
    parser.add_argument("--seconds", type=float, default=seconds, help="of each contender's round")
    parser.add_argument(
        "--only", type=names, default=[], help="parts of contenders' names, with commas"
    )
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    return parser
