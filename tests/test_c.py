"""The unit tests of the C API: each program of tests/c, on each server, also under sanitizers.

Those that use threads run under ThreadSanitizer as well, and one program under valgrind and
one under libfaketime.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from programs import BUILD, SERVERS, TESTS, c_builds, environment, tsan_builds
from sneck.testing import Server

SOURCES = sorted((TESTS / "c").glob("test_*.c"))
# not renewal_process: ThreadSanitizer knows no threads in the child of a fork
THREADED = [
    *("threads", "renewal", "loss", "renewal_faults", "rlock", "fence"),
    *("quorum", "quorum_grants", "quorum_lease", "renewal_names"),
]
LIMIT = 600  # seconds; only a hang needs as many


def run(program: str, words: list[str], **variables: str) -> None:
    """Run a program of tests on a server of its own; it passes, and no tool has a word to say."""
    with Server(program) as server:
        done = subprocess.run(
            words,
            env=environment()
            | {"SNECK_TEST_URL": server.url, "SNECK_TEST_PROGRAM": program}
            | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem.removeprefix("test_"))
@pytest.mark.parametrize("build", c_builds().values(), ids=lambda build: build.name)
@pytest.mark.parametrize("program", SERVERS)
def test_c(program: str, build: Path, source: Path) -> None:
    """A program of tests passes."""
    run(program, [str(build / "tests/c" / source.stem)])


@pytest.mark.parametrize("name", THREADED)
@pytest.mark.parametrize("build", tsan_builds(), ids=lambda build: build.name)
@pytest.mark.parametrize("program", SERVERS)
def test_threads_do_not_race(program: str, build: Path, name: str) -> None:
    """A program of tests that uses threads passes under ThreadSanitizer."""
    run(program, [str(build / f"tests/c/test_{name}")])


@pytest.mark.parametrize("program", SERVERS)
def test_ten_thousand_cycles_leak_nothing(program: str) -> None:
    """Valgrind finds no leak, and no memory that is used without being ours."""
    tool = ["valgrind", "--quiet", "--leak-check=full", "--error-exitcode=9"]
    run(program, [*tool, str(BUILD / "tests/c/cycles")])


def test_the_library_stays_in_memory() -> None:
    """A renewal thread in the system's resolver may outlive who has unloaded the library."""
    (library,) = BUILD.glob("libsneck.so")
    code = (
        "import _ctypes, ctypes, os, sys; handle = ctypes.CDLL(sys.argv[1])._handle; "
        "_ctypes.dlclose(handle); "
        "ctypes.CDLL(sys.argv[1], os.RTLD_NOW | os.RTLD_NOLOAD)"
    )
    subprocess.run([sys.executable, "-c", code, str(library)], check=True)


@pytest.mark.parametrize("program", SERVERS)
def test_thousands_may_wait_in_little_memory(program: str) -> None:
    """One acquire that waits takes no more than 2 KiB, its lock object included."""
    run(program, [str(BUILD / "tests/c/waiters"), "2048"])


@pytest.mark.parametrize("program", SERVERS)
def test_steps_of_the_wall_clock_change_no_wait_and_no_validity(
    program: str, tmp_path: Path
) -> None:
    """An hour forth and back, while a lock is held, renewed and waited for."""
    offset = tmp_path / "offset"
    offset.write_text("+0\n")
    run(
        program,
        [str(BUILD / "tests/c/wall_clock"), str(offset)],
        LD_PRELOAD=faketime(),
        FAKETIME_TIMESTAMP_FILE=str(offset),
        FAKETIME_NO_CACHE="1",
        FAKETIME_DONT_FAKE_MONOTONIC="1",
    )


def faketime() -> str:
    """Ask the command of that name for its library, which is not on the linker's path."""
    show = ["faketime", "-f", "+0", "sh", "-c", "echo $LD_PRELOAD"]
    done = subprocess.run(show, env=os.environ, capture_output=True, text=True, check=True)
    return done.stdout.strip().replace("libfaketime.so", "libfaketimeMT.so")
