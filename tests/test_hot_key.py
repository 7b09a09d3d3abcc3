"""Many processes in all languages change one key without a lock: nothing is lost, nobody starves.

The bounds are numbers of attempts and additions, not times. Each process has to finish its own
additions, with no limit but the default number of attempts for each. The number that its last one
wrote is the clock: so much had been added by all when it had done its part.
"""

from __future__ import annotations

import contextlib
import subprocess

import pytest

import resp
from programs import BUILD, LUA, PYTHON, SERVERS, TESTS, environment
from sneck.testing import Server

ADDERS = {
    "c": [str(BUILD / "tests/hot_key_adder")],
    "python": [*PYTHON, str(TESTS / "hot_key/adder.py")],
    "lua": [*LUA, str(TESTS / "hot_key/adder.lua")],
}
PROCESSES, TIMES = 32, 500
ATTEMPTS = 16  # the default
JAIN = 0.95
LIMIT = 300.0  # seconds; far beyond what it takes


def jain(rates: list[float]) -> float:
    """Compute Jain's index of fairness: 1 when all are equal, 1/n when one has it all."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


@pytest.mark.parametrize("program", SERVERS)
def test_many_processes_add_to_one_key(program: str) -> None:
    commands = [list(ADDERS.values())[i % len(ADDERS)] for i in range(PROCESSES)]
    with Server(program) as server, contextlib.ExitStack() as stack:
        started = []
        for command in commands:
            process = subprocess.Popen(
                [*command, server.url, "{hot}key", str(TIMES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(),
                text=True,
            )
            stack.callback(process.kill)
            started.append(stack.enter_context(process))
        for process in started:  # all are there before the first one begins
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        outputs = [process.communicate(timeout=LIMIT) for process in started]
        with resp.Client(server.socket) as client:
            assert client.call("GET", "{hot}key") == str(PROCESSES * TIMES).encode()
    assert [error for _, error in outputs if error] == []
    printed = [[int(word) for word in output.split()] for output, _ in outputs]
    assert max(most for most, _ in printed) <= ATTEMPTS
    assert jain([TIMES / total for _, total in printed]) >= JAIN, printed
