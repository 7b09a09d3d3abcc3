"""What a server that answers nonsense gets: the right outcome, at once, and no memory.

The clients are programs of their own, in C, Python and Lua, so that what they take from the system
can be seen. Where an answer is wrong, the client's own timeout is far beyond the test's limit: an
outcome in time shows that the answer was judged, not waited for.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from hostile.server import (
    MEBIBYTE,
    Behaviour,
    answer,
    each,
    flood,
    greet,
    hold,
    hostile_server,
    trickle,
)
from programs import LUA, PYTHON, TESTS, c_builds, environment

LIMIT = 30.0  # seconds, for one call
PATIENT_MS, SHORT_MS = 300_000, 500
MEMORY = 48 * MEBIBYTE  # beyond what the client takes when there is no server

PROBES: dict[str, list[str]] = {
    **{f"c{suffix}": [str(build / "tests/hostile_probe")] for suffix, build in c_builds().items()},
    "python": [*PYTHON, str(TESTS / "hostile/probe.py")],
    "lua": [*LUA, str(TESTS / "hostile/probe.lua")],
}

NONSENSE: dict[str, Behaviour] = {
    "garbage": answer(b"hello\r\n"),
    "binary garbage": answer(bytes(range(256)) * 16),
    "a NUL": answer(b"\0"),
    "an HTTP reply": answer(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "an HTTP reply, and closes": answer(b"HTTP/1.1 400 Bad Request\r\n\r\n", close=True),
    "a TLS alert": answer(b"\x15\x03\x01\x00\x02\x02\x28"),
    "an SSH banner before it is asked": greet(b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    "a RESP3 map": answer(b"%1\r\n+a\r\n+b\r\n"),
    "a bulk of 4 GiB": answer(b"$4294967296\r\n"),
    "a bulk of 2 GiB": answer(b"$2147483647\r\n"),
    "a bulk of 2^64 bytes": answer(b"$18446744073709551616\r\n"),
    "a bulk of a length without an end": flood(b"$", b"1" * 4096, 64 * MEBIBYTE),
    "a bulk of -2 bytes": answer(b"$-2\r\n"),
    "a bulk of no number": answer(b"$five\r\nhello\r\n"),
    "an array of 2^31-1 items": answer(b"*2147483647\r\n"),
    "an array of 2^62 items": answer(b"*4611686018427387904\r\n"),
    "an array of -5 items": answer(b"*-5\r\n"),
    "arrays nested 100000 deep": answer(b"*1\r\n" * 100_000),
    "arrays nested without an end": flood(b"", b"*2\r\n" * 4096, 64 * MEBIBYTE),
    "a line without an end": flood(b"+", b"x" * 65536, 256 * MEBIBYTE),
    "an error without an end": flood(b"-ERR ", b"x" * 65536, 256 * MEBIBYTE),
    "a number without an end": flood(b":", b"1" * 65536, 256 * MEBIBYTE),
}

WRONG_SHAPES = {
    "acquire": [b":1\r\n", b"*0\r\n", b"$2\r\nOK\r\n", b"+QUEUED\r\n", b"*1\r\n$1\r\nx\r\n"],
    "release": [b"+OK\r\n", b"$-1\r\n", b"$1\r\n1\r\n", b"*1\r\n:1\r\n"],
    "extend": [b"+OK\r\n", b"$-1\r\n", b"$1\r\n1\r\n", b"*1\r\n:1\r\n"],
    "holder": [
        b":1\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"*1\r\n:1\r\n",
        b"*2\r\n:1\r\n:2\r\n",
        b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    ],
}

BREAKS: dict[str, Behaviour] = {
    "closes without a word": answer(b"", close=True),
    "closes within a status": answer(b"+O", close=True),
    "closes within a length": answer(b"$1", close=True),
    "closes within a bulk": answer(b"$1000\r\nabc", close=True),
    "closes within an array": answer(b"*2\r\n$3\r\nabc\r\n", close=True),
}

VERBS = ("acquire", "release", "extend", "holder", "execute")

# reading leaves no doubt: what was lost can be asked again
LOST = {
    "acquire": "UNKNOWN",
    "release": "UNKNOWN",
    "extend": "UNKNOWN",
    "holder": "CONNECTION",
    "execute": "UNKNOWN",
}


def run_probe(probe: str, url: str, timeout_ms: int, verb: str) -> tuple[str, int]:
    """Run a client; give what it printed, and the memory that it had at most, in bytes."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*PROBES[probe], url, str(timeout_ms), verb],
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        watchdog = threading.Timer(LIMIT, process.kill)
        watchdog.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode(errors="replace").strip()
    assert process.returncode == 0, f"the client ended with {process.returncode}: {said}"
    return said, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@functools.cache
def memory_without_server(probe: str) -> int:
    """Find what a client takes that does nothing."""
    said, memory = run_probe(probe, "unix:///nowhere/at/all", PATIENT_MS, "execute")
    assert said == "CONNECTION"
    return memory


def ask(
    probe: str, folder: Path, behave: Behaviour, verb: str, timeout_ms: int = PATIENT_MS
) -> str:
    """Put a client before a hostile server; its memory is checked, too."""
    path = folder / "s"
    with hostile_server(path, behave):
        said, memory = run_probe(probe, f"unix://{path}", timeout_ms, verb)
    assert memory < memory_without_server(probe) + MEMORY
    return said


@pytest.fixture
def folder() -> object:
    """A directory whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="sneck-") as name:
        yield Path(name)


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize("probe", PROBES)
def test_nonsense_is_a_protocol_error(probe: str, nonsense: str, folder: Path) -> None:
    """It is told at once, and costs no memory, whatever length was announced."""
    assert ask(probe, folder, NONSENSE[nonsense], "execute") == "PROTOCOL"


@pytest.mark.parametrize("verb", ["acquire", "release", "extend", "holder"])
@pytest.mark.parametrize("probe", PROBES)
def test_every_call_knows_nonsense(probe: str, verb: str, folder: Path) -> None:
    """No call takes an answer that is not the protocol for one."""
    assert ask(probe, folder, NONSENSE["an HTTP reply"], verb) == "PROTOCOL"


@pytest.mark.parametrize(
    ("verb", "reply"), [(v, r) for v, replies in WRONG_SHAPES.items() for r in replies]
)
@pytest.mark.parametrize("probe", PROBES)
def test_a_reply_of_the_wrong_shape_is_a_protocol_error(
    probe: str, verb: str, reply: bytes, folder: Path
) -> None:
    """A well-formed reply that the command cannot have is not taken for success."""
    assert ask(probe, folder, answer(reply), verb) == "PROTOCOL"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("probe", PROBES)
def test_a_reply_that_is_cut_is_lost(probe: str, broken: str, verb: str, folder: Path) -> None:
    """The outcome is unknown where it matters, and told at once."""
    assert ask(probe, folder, BREAKS[broken], verb) == LOST[verb]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("probe", PROBES)
def test_a_server_that_never_answers_is_given_up(probe: str, verb: str, folder: Path) -> None:
    """After the timeout, as for a lost reply."""
    assert ask(probe, folder, hold, verb, SHORT_MS) == LOST[verb]


@pytest.mark.parametrize("probe", PROBES)
def test_a_bulk_that_never_ends_is_given_up(probe: str, folder: Path) -> None:
    """A length that is allowed, and bytes that do not come."""
    assert ask(probe, folder, answer(b"$1000000\r\nabc"), "execute", SHORT_MS) == "UNKNOWN"


@pytest.mark.parametrize("probe", PROBES)
def test_a_surplus_reply_is_not_taken_for_the_next_one(probe: str, folder: Path) -> None:
    """What answers no command is an error, or dropped with its connection."""
    said = ask(probe, folder, each(b"+one\r\n+surplus\r\n", b"+two\r\n"), "twice")
    assert said in ("one OK", "PROTOCOL")


@pytest.mark.parametrize("probe", PROBES)
def test_a_reply_in_single_bytes_is_understood(probe: str, folder: Path) -> None:
    """Slow is not hostile."""
    assert ask(probe, folder, trickle(b"*2\r\n$4\r\nabcd\r\n*1\r\n:-1\r\n"), "execute") == "OK"


@pytest.mark.parametrize(
    ("behave", "status"),
    [
        (answer(b"hello\r\n"), "PROTOCOL"),
        (answer(b"-WRONGPASS no\r\n"), "SERVER"),
        (answer(b"", close=True), "CONNECTION"),
        (answer(b"$1000\r\nabc", close=True), "CONNECTION"),
        (answer(b"$4294967296\r\n"), "PROTOCOL"),
    ],
    ids=["garbage", "an error", "closes", "closes within a bulk", "a bulk of 4 GiB"],
)
@pytest.mark.parametrize("probe", PROBES)
def test_nothing_is_done_when_the_first_commands_fail(
    probe: str, behave: Behaviour, status: str, folder: Path
) -> None:
    """AUTH comes before the call's own command, which is not sent then."""
    path = folder / "s"
    with hostile_server(path, behave):
        said, memory = run_probe(probe, f"unix://user:secret@{path}", PATIENT_MS, "acquire")
    assert said == status
    assert memory < memory_without_server(probe) + MEMORY


@pytest.mark.parametrize("probe", PROBES)
def test_a_server_that_does_not_answer_auth_is_not_there(probe: str, folder: Path) -> None:
    """The time for connecting includes the first commands."""
    path = folder / "s"
    with hostile_server(path, hold):
        said, _ = run_probe(probe, f"unix://user:secret@{path}", SHORT_MS, "acquire")
    assert said == "CONNECTION"
