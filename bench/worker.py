"""A worker: a process that is started once, and runs a round when it is told to.

A line with a number goes in, the worker does what that asks for, "done" comes out.
At the end of its input it ends.
"""

from __future__ import annotations

import os
import subprocess
from select import select


class Worker:
    """A process by the name of its contender."""

    def __init__(self, name: str, command: list[str], **environment: str) -> None:
        """Start the process."""
        self.name = name
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def begin(self, number: int) -> None:
        """Tell the worker to run."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{number}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # end() tells it

    def end(self, limit: float | None = None) -> None:
        """Wait until the worker is done, for so many seconds. Raises TimeoutError."""
        assert self._process.stdout is not None
        if not select([self._process.stdout], [], [], limit)[0]:
            raise TimeoutError(f"did not finish in {limit:g} s")
        line = self._process.stdout.readline()
        if line != "done\n":
            why = line.strip() or "the worker failed; its message is above"
            raise RuntimeError(f"{self.name}: {why}")

    def stop(self) -> None:
        """End the process and wait for it."""
        self._process.communicate()

    def kill(self) -> None:
        """End the process whatever it does."""
        self._process.kill()
        self.stop()
