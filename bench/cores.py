"""Which processes run on which core: that changes every number."""

from __future__ import annotations

import os
from pathlib import Path


def cores() -> list[int]:
    """Return the cores that there are for us."""
    return sorted(os.sched_getaffinity(0))


def pin(pid: int, *allowed: int) -> None:
    """Let every thread of a process run on these cores only."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), allowed)


def placements(*, free: bool) -> dict[str, tuple[list[int], list[int]]]:
    """Name the cores of the servers and those of a contender, as far as there are cores.

    `free`: also with nothing pinned.
    """
    first, *others = cores()
    split = {"split": ([first], [others[0]])} if others else {}
    all_cores = {"free": (cores(), cores())} if free else {}
    return {"same": ([first], [first]), **split, **all_cores}
