"""The unit tests of the C API: each program of tests/c, on each server, also under sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from programs import SERVERS, TESTS, c_builds, environment
from sneck.testing import Server

SOURCES = sorted((TESTS / "c").glob("test_*.c"))
LIMIT = 120  # seconds


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem.removeprefix("test_"))
@pytest.mark.parametrize("build", c_builds().values(), ids=lambda build: build.name)
@pytest.mark.parametrize("program", SERVERS)
def test_c(program: str, build: Path, source: Path) -> None:
    """A program of tests passes on a server of its own, and no sanitizer has a word to say."""
    with Server(program) as server:
        done = subprocess.run(
            [str(build / "tests/c" / source.stem)],
            env=environment() | {"SNECK_TEST_URL": server.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
    assert done.returncode == 0, done.stdout
