"""The page that the workers of a group share: a file that all of them map.

A worker writes to its own tally, and to the rest only while it holds the lock that
they contend for, so the page needs no other protection. The layout is that of
workers/page.h.
"""

from __future__ import annotations

import math
import mmap
import time
from pathlib import Path

END, SECTION, INSIDE, OWNER, CHANGES, IN_TIME, LEFT, HANDOVERS = range(8)
FINE_BITS = 4  # times are counted by their five most significant bits
BUCKETS = 64 << FINE_BITS
FIRST = HANDOVERS + BUCKETS
WORD = 8
TALLY = 2  # words of each worker: how often it did its task in time, the longest one in ns


def bucket(ns: int) -> int:
    """Say where a time is counted."""
    exponent = ns.bit_length() - 1
    if exponent < FINE_BITS:
        return ns
    fine = ns >> (exponent - FINE_BITS)
    return (exponent << FINE_BITS) + fine - (1 << FINE_BITS)


def middle_ns(index: int) -> float:
    """Say which time stands for those that are counted there."""
    exponent, fine = divmod(index, 1 << FINE_BITS)
    if exponent < FINE_BITS:
        return index
    return ((1 << FINE_BITS) + fine + 0.5) * 2.0 ** (exponent - FINE_BITS)


class Page:
    """The shared page, as a worker or the bench sees it."""

    def __init__(self, path: str) -> None:
        """Map the file."""
        with open(path, "r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")

    @staticmethod
    def create(path: Path, workers: int) -> Page:
        """Make the file for so many workers, and map it."""
        path.write_bytes(bytes(WORD * (FIRST + TALLY * workers)))
        return Page(str(path))

    def clear(self, seconds: float, section_us: int) -> None:
        """Begin a round of so many seconds, with sections of this length."""
        words = self._words
        for i in range(len(words)):
            words[i] = 0
        words[SECTION] = section_us
        words[END] = time.monotonic_ns() + int(seconds * 1e9)

    def count(self, index: int, begun_ns: int) -> bool:
        """Count a task that was begun then and is done now; False: the round is over."""
        return self._count(index, begun_ns, time.monotonic_ns())

    def _count(self, index: int, begun_ns: int, now_ns: int) -> bool:
        words = self._words
        in_time = now_ns < words[END]
        tally = FIRST + TALLY * index
        words[tally] += in_time
        if words[tally + 1] < now_ns - begun_ns:
            words[tally + 1] = now_ns - begun_ns
        return in_time

    def hold(self, index: int, asked_ns: int) -> bool:
        """Be in the section, for one who asked for the lock then; False: the round is over."""
        words = self._words
        me, now_ns = index + 1, time.monotonic_ns()
        if words[INSIDE]:
            raise SystemExit("worker: two hold the lock")
        words[INSIDE] = me
        in_time = self._count(index, asked_ns, now_ns)
        if words[OWNER] != me:
            self._change(me, now_ns, in_time)
        if words[SECTION]:
            time.sleep(words[SECTION] / 1e6)
        if words[INSIDE] != me:
            raise SystemExit("worker: two hold the lock")
        words[INSIDE] = 0
        words[LEFT] = time.monotonic_ns()
        return in_time

    def _change(self, me: int, now_ns: int, in_time: bool) -> None:
        words = self._words
        words[OWNER] = me
        words[CHANGES] += 1
        words[IN_TIME] += in_time
        if in_time and words[LEFT]:
            words[HANDOVERS + bucket(now_ns - words[LEFT])] += 1

    @property
    def changes(self) -> int:
        """How often another worker than before got the lock."""
        return self._words[CHANGES]

    @property
    def changes_in_time(self) -> int:
        """How many of these before the round's end."""
        return self._words[IN_TIME]

    def handover_us(self, share: float) -> float:
        """Say how long this share of the hand-overs took at most; NaN when there were none.

        From the end of one's section to the beginning of the next one's, in time.
        """
        counted = self._words[HANDOVERS:FIRST]
        left = share * sum(counted)
        for index, count in enumerate(counted):
            left -= count
            if count and left <= 0:
                return middle_ns(index) / 1e3
        return math.nan

    @property
    def counts(self) -> list[int]:
        """How often each worker did its task before the round's end."""
        return list(self._words[FIRST::TALLY])

    @property
    def longest_ms(self) -> float:
        """The longest that any worker needed for its task, such as to get a lock."""
        return max(self._words[FIRST + 1 :: TALLY]) / 1e6
