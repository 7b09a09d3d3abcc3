"""What a server was asked to do, counted by itself (INFO)."""

from __future__ import annotations

import re
from collections import Counter

import sneck

LINE = re.compile(rb"cmdstat_(\S+?):calls=(\d+)")
READS = re.compile(rb"total_reads_processed:(\d+)")
RARE = 0.01  # calls in a cycle: what the counting itself, or a new connection, asks for


class Commands:
    """Counts what comes after reset()."""

    def __init__(self, url: str) -> None:
        """Connect to the server."""
        self._client = sneck.connect(url)

    def reset(self) -> None:
        """Begin to count."""
        self._client.execute("CONFIG", "RESETSTAT")

    def _info(self, section: str) -> bytes:
        answer = self._client.execute("INFO", section)
        assert isinstance(answer, bytes)
        return answer

    def requests(self) -> int:
        """Return how many requests came in, without what scripts call.

        commandstats has both in one number. But each request is read by a read(2)
        of its own as long as nobody sends the next one before the reply, and the
        server counts these. Ask for them first: this very question is subtracted.
        """
        found = READS.search(self._info("stats"))
        assert found is not None
        return int(found[1]) - 1

    def calls(self) -> Counter[str]:
        """Return the calls of each command, those made by scripts included."""
        lines = LINE.findall(self._info("commandstats"))
        return Counter({name.decode(): int(count) for name, count in lines})


def per_cycle(calls: Counter[str], cycles: int) -> dict[str, float]:
    """Return the calls of each command by cycle, without those that are rare."""
    shares = {name: count / cycles for name, count in sorted(calls.items())}
    return {name: round(share, 2) for name, share in shares.items() if share > RARE}
