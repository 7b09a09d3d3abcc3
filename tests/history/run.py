"""Disturbs processes that share one lock, and has what they claim checked.

    run.py [--seconds N] [--processes N] [--seed N] [--server PROGRAM]

See README.md. The exit status is 1 if the checker finds anything.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import checker  # noqa: E402

import sneck  # noqa: E402
from bed import Bed  # noqa: E402
from programs import BUILD, LUA, PYTHON, environment  # noqa: E402

LONGEST_TTL = 2.5  # seconds; of the workers
BOUND = 1000 * (LONGEST_TTL + 1.0 + 2.0 + 3.0)  # ms; lease, claim, timer, and a busy machine
PATIENCE = 15000.0  # ms
COMMANDS = (
    [str(BUILD / "tests/history/history_worker")],
    [*PYTHON, str(HERE / "worker.py")],
    [*LUA, str(HERE / "worker.lua")],
)


def now() -> float:
    """Milliseconds of the clock that all processes share."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


@dataclass
class Worker:
    """A process and the file with its claims."""

    name: str
    process: subprocess.Popen[bytes]
    path: Path
    died: float = 0.0

    def end(self) -> None:
        """Kill it, and note when it was surely dead."""
        self.process.kill()
        self.process.wait()
        self.died = self.died or now()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to a process that is ours and still there."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)


@dataclass
class Run:
    """The processes of a run, and what was done to them."""

    directory: Path
    socket: str
    proxy: str
    control: sneck.Client
    chance: random.Random
    workers: list[Worker] = field(default_factory=list)
    disturbed: dict[str, list[float]] = field(default_factory=dict)

    def start(self, kind: int, *, faulty: bool) -> None:
        """Start a process in one of the languages, behind the proxy or not."""
        name = f"{len(self.workers)}"
        path = self.directory / name
        url = "unix://" + (self.proxy if faulty else self.socket)
        command = [
            *COMMANDS[kind % len(COMMANDS)],
            url,
            str(path),
            str(self.chance.getrandbits(30)),
        ]
        process = subprocess.Popen(command, env=environment())
        self.workers.append(Worker(name, process, path))

    def disturb(self) -> None:
        """Do one thing that must not matter."""
        worker = self._victim()
        choice = self.chance.randrange(7)
        if choice == 0:
            self._note(worker.name)
            worker.end()
            self.start(len(self.workers), faulty=self.chance.random() < 0.5)
        elif choice in (1, 6):
            self._note(worker.name)
            worker.signal(signal.SIGSTOP)
            time.sleep(self.chance.choice((0.05, 0.5, 1.5)))
            worker.signal(signal.SIGCONT)
            self._note(worker.name)
        elif choice in (2, 3):
            with sneck.connect("unix://" + self.socket) as client:
                kind = "pubsub" if choice == 2 else "normal"
                client.execute("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
            self._note("*")
        else:
            self.control.execute("FAULT", self.chance.choice(("drop-reply", "cut-reply", "cut")))
            self._note("*")

    def _victim(self) -> Worker:
        """Choose a process: every other time the holder, who has most to claim."""
        living = [worker for worker in self.workers if not worker.died]
        if self.chance.random() < 0.5:
            with sneck.connect("unix://" + self.socket) as client:
                holder = client.lock("history").holder()
            holders = [w for w in living if holder and w.process.pid == holder.pid]
            if holders:
                return holders[0]
        return self.chance.choice(living)

    def _note(self, name: str) -> None:
        self.disturbed.setdefault(name, []).append(now())

    def check(self) -> list[str]:
        """Read all claims and find what is wrong with them."""
        for worker in self.workers:
            worker.signal(signal.SIGCONT)
            worker.end()
        histories = [
            checker.read(worker.name, complete_lines(worker.path), worker.died)
            for worker in self.workers
            if worker.path.exists()
        ]
        disturbed = checker.Disturbances(self.disturbed)
        held = sum(len(history.claims) for history in histories)
        print(f"{len(histories)} processes held the lock {held} times", flush=True)
        found = checker.check(histories, disturbed, bound=BOUND, patience=PATIENCE)
        return found if held else ["nobody ever held the lock"]


def complete_lines(path: Path) -> list[str]:
    """Read a file of which the last line may have been cut by a kill."""
    return path.read_text().split("\n")[:-1]


def leftovers(socket: str) -> list[str]:
    """Find keys that are still there when every lease has ended."""
    end = time.monotonic() + LONGEST_TTL + 10.0
    with sneck.connect("unix://" + socket) as client:
        locks = client.execute("EXISTS", "history")
        while locks and time.monotonic() < end:
            time.sleep(0.05)
            locks = client.execute("EXISTS", "history")
        keys = client.execute("KEYS", "*")
        assert isinstance(keys, list)
        names = [key for key in keys if isinstance(key, bytes)]
        immortal = [name for name in names if client.execute("PTTL", name) == -1]
    return [f"left: {name!r} without an expiry" for name in immortal] + (
        ["left: the lock itself"] if locks else []
    )


def run(program: str, *, seconds: float, processes: int, seed: int) -> list[str]:
    """Run the check against a server of its own; return what was found."""
    with Bed(program) as bed, tempfile.TemporaryDirectory(prefix="sneck-history-") as directory:
        options = dict(zip(bed.arguments[::2], bed.arguments[1::2], strict=True))
        with sneck.connect(options["--control"]) as control:
            chance = random.Random(seed)
            it = Run(Path(directory), options["--socket"], options["--proxy"], control, chance)
            try:
                for number in range(processes):
                    it.start(number, faulty=number % 2 == 1)
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    time.sleep(chance.random() * 1.5)
                    it.disturb()
            finally:
                found = it.check()
        return found + leftovers(options["--socket"])


def main() -> int:
    """Run by argument."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=random.randrange(2**30))
    parser.add_argument("--server", default="redis-server")
    given = parser.parse_args()
    print("seed", given.seed, flush=True)
    found = run(given.server, seconds=given.seconds, processes=given.processes, seed=given.seed)
    print("\n".join(found) or "nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
