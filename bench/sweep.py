"""A bench of groups: one private server, by the number of workers and setting by setting."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Generic, TypeVar

from group import Group
from launch import Program
from rounds import chosen, names

from sneck.testing import Server

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Kind = TypeVar("Kind", bound=Group)
Result = TypeVar("Result", bound="DataclassInstance")


@dataclass
class Sweep(Generic[Kind, Result]):
    """What one bench has of its own."""

    kind: type[Kind]
    baseline: str
    contenders_of: Callable[[Server, int], dict[str, Callable[[], Program]]]
    measure: Callable[[Server, list[Kind], int, float], Iterator[list[Result]]]
    show_table: Callable[[list[Result]], None]

    def start(self, server: Server, folder: Path, workers: int, only: list[str]) -> list[Kind]:
        """Start the groups of the contenders that `only` names a part of, and the baseline."""
        return [
            self.kind(name, server.url, folder / f"{workers} {name}", workers, program())
            for name, program in self.contenders_of(server, workers).items()
            if chosen(name, only, self.baseline)
        ]

    def main(self, parser: ArgumentParser, workers: str) -> None:
        """Measure with so many workers, if not told, and print tables or JSON."""
        parser.add_argument(
            "--workers", type=names, default=workers, help=f"how many processes ({workers})"
        )
        given = parser.parse_args()
        results: list[Result] = []
        with Server() as server, TemporaryDirectory(prefix="sneck-bench-") as folder:
            for count in map(int, given.workers):
                groups = self.start(server, Path(folder), count, given.only)
                for measured in self.measure(server, groups, given.rounds, given.seconds):
                    results += measured
                    if not given.json:
                        self.show_table(measured)
                for group in groups:
                    group.stop()
        if given.json:
            print(json.dumps([asdict(result) for result in results], indent=2))
        else:
            print(f"\n{given.rounds} rounds of {given.seconds:g} s; {server.program}")
