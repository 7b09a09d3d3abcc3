"""The page that the workers of a group share: a file that all of them map.

A worker writes to its own tally, and to the rest only while it holds the lock that
they contend for, so the page needs no other protection. The layout is that of
workers/page.h.
"""

from __future__ import annotations

import mmap
import time
from pathlib import Path

END, SECTION, INSIDE, OWNER, CHANGES, IN_TIME, FIRST = range(7)
WORD = 8
TALLY = 2  # words of each worker: how often it did its task in time, the longest one in ns


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
        words = self._words
        now_ns = time.monotonic_ns()
        in_time = now_ns < words[END]
        tally = FIRST + TALLY * index
        words[tally] += in_time
        if words[tally + 1] < now_ns - begun_ns:
            words[tally + 1] = now_ns - begun_ns
        return in_time

    def hold(self, index: int, asked_ns: int) -> bool:
        """Be in the section, for one who asked for the lock then; False: the round is over."""
        words = self._words
        me = index + 1
        if words[INSIDE]:
            raise SystemExit("worker: two hold the lock")
        words[INSIDE] = me
        in_time = self.count(index, asked_ns)
        if words[OWNER] != me:
            words[OWNER] = me
            words[CHANGES] += 1
            words[IN_TIME] += in_time
        if words[SECTION]:
            time.sleep(words[SECTION] / 1e6)
        if words[INSIDE] != me:
            raise SystemExit("worker: two hold the lock")
        words[INSIDE] = 0
        return in_time

    @property
    def changes(self) -> int:
        """How often another worker than before got the lock."""
        return self._words[CHANGES]

    @property
    def changes_in_time(self) -> int:
        """How many of these before the round's end."""
        return self._words[IN_TIME]

    @property
    def counts(self) -> list[int]:
        """How often each worker did its task before the round's end."""
        return list(self._words[FIRST::TALLY])

    @property
    def longest_ms(self) -> float:
        """The longest that any worker needed for its task, such as to get a lock."""
        return max(self._words[FIRST + 1 :: TALLY]) / 1e6
