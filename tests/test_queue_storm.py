"""Thousands of acquires that are left at a random moment leave nothing on the server.

tests/c/storm.c makes them, some processes of it at once. A seed that fails is in the test's output.
"""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

import sneck
from programs import SERVERS, c_builds, environment
from sneck.testing import Server

PROCESSES = 4
ACQUIRES = 10_000  # of all processes
NAMES = [f"door{number}" for number in range(4)]
LIMIT = 120.0  # seconds


def rage(server: Server, build: Path, kills: int) -> None:
    """Run the processes to their end, side by side."""
    seeds = [str(random.randrange(2**32)) for _ in range(PROCESSES)]
    print("seeds:", *seeds)
    storms = [
        subprocess.Popen(
            [str(build / "tests/c/storm"), seed, str(ACQUIRES // PROCESSES), str(kills)],
            env=environment() | {"SNECK_TEST_URL": server.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed in seeds
    ]
    for storm in storms:
        output, _ = storm.communicate(timeout=LIMIT)
        print(output, end="")
        assert storm.returncode == 0, output
        assert "won 0," not in output


@pytest.mark.parametrize("build", c_builds().values(), ids=lambda build: build.name)
@pytest.mark.parametrize("program", SERVERS)
def test_who_leaves_at_any_time_leaves_nothing(program: str, build: Path) -> None:
    """Not even for a moment: whatever was sent is answered when the processes end."""
    with Server(program) as server, sneck.connect(server.url) as client:
        rage(server, build, kills=0)
        assert client.execute("KEYS", "*") == []


@pytest.mark.parametrize("build", c_builds().values(), ids=lambda build: build.name)
@pytest.mark.parametrize("program", SERVERS)
def test_whose_connections_are_killed_leaves_nothing_for_long(program: str, build: Path) -> None:
    """What a killed connection could not take back ends with its lease, or is passed over."""
    with Server(program) as server, sneck.connect(server.url) as client:
        rage(server, build, kills=100)
        for name in NAMES:
            with client.lock(name, fair=True, wait=LIMIT):
                assert client.waiters(name) == []
        deadline = time.monotonic() + LIMIT
        while client.execute("DBSIZE") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert client.execute("KEYS", "*") == []
