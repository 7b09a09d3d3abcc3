"""What a server was asked to do, counted by itself (INFO commandstats)."""

from __future__ import annotations

import re

import sneck

LINE = re.compile(rb"cmdstat_(\S+?):calls=(\d+)")
RARE = 0.01  # calls in a cycle: what the counting itself, or a new connection, asks for


class Commands:
    """Counts the commands between reset() and per_cycle()."""

    def __init__(self, url: str) -> None:
        """Connect to the server."""
        self._client = sneck.connect(url)

    def reset(self) -> None:
        """Begin to count."""
        self._client.execute("CONFIG", "RESETSTAT")

    def per_cycle(self, cycles: int) -> dict[str, float]:
        """Return the calls of each command by cycle, those made by scripts included."""
        answer = self._client.execute("INFO", "commandstats")
        assert isinstance(answer, bytes)
        calls = {name.decode(): int(count) / cycles for name, count in LINE.findall(answer)}
        return {name: round(count, 2) for name, count in sorted(calls.items()) if count > RARE}
