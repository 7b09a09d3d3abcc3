"""Many processes in all languages change one key without a lock: nothing is lost, nobody starves.

The bound is the number of attempts, not a time: each process has to finish its own additions, with
no limit but the default number of attempts for each.
"""

from __future__ import annotations

import contextlib
import subprocess

import pytest

import resp
from programs import BUILD, PYTHON, SERVERS, TESTS, environment
from sneck.testing import Server

ADDERS = {
    "c": [str(BUILD / "tests/hot_key_adder")],
    "python": [*PYTHON, str(TESTS / "hot_key/adder.py")],
}
PROCESSES, TIMES = 32, 100
ATTEMPTS = 16  # the default
LIMIT = 300.0  # seconds; far beyond what it takes


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
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        outputs = [process.communicate(timeout=LIMIT) for process in started]
        with resp.Client(server.socket) as client:
            assert client.call("GET", "{hot}key") == str(PROCESSES * TIMES).encode()
    assert [error for _, error in outputs if error] == []
    assert max(int(most) for most, _ in outputs) <= ATTEMPTS
