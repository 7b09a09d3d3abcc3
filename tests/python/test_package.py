"""The package: its types, its style, and what a build that cannot succeed says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import sneck

ROOT = Path(__file__).parents[2]


def run(*command: str, cwd: Path, env: Mapping[str, str] = {}) -> tuple[int, str]:
    """Run a module of this Python and give its status and output."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_the_types_are_strictly_right() -> None:
    status, output = run("mypy", "--strict", "python/sneck", "tests/python", cwd=ROOT)
    assert status == 0, output


def test_the_stub_tells_what_the_extension_has(tmp_path: Path) -> None:
    status, output = run("mypy.stubtest", "sneck", cwd=tmp_path)
    assert status == 0, output


def test_the_style_is_kept() -> None:
    for command in (("check",), ("format", "--check")):
        status, output = run(
            "ruff", *command, "--no-cache", "python", "tests/python", "setup.py", cwd=ROOT
        )
        assert status == 0, output


def test_the_version_is_that_of_the_header() -> None:
    assert (
        f'#define SNECK_VERSION "{sneck.__version__}"'
        in (ROOT / "core/include/sneck.h").read_text()
    )
    from importlib.metadata import version

    assert version("sneck") == sneck.__version__


def compiler_that_lacks(tmp_path: Path, header: str) -> str:
    """A compiler as on a machine where a header is not installed."""
    script = tmp_path / "cc"
    script.write_text(
        "#!/bin/sh\n"
        'for word; do case $word in *.c) if grep -q "<' + header + '>" "$word"; then\n'
        "    echo 'fatal error: " + header + ": No such file or directory' >&2; exit 1\n"
        "fi;; esac; done\n"
        'exec cc "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("missing", "package"),
    [
        ("hiredis/hiredis.h", "libhiredis-dev"),
        ("Python.h", "python3-dev"),
        ("stdlib.h", "libc6-dev"),
        (None, "gcc"),
    ],
)
def test_a_build_names_the_package_that_is_missing(
    tmp_path: Path, missing: str | None, package: str
) -> None:
    compiler = compiler_that_lacks(tmp_path, missing) if missing else "/nowhere/cc"
    status, output = run(
        *("pip", "wheel", "--no-build-isolation", "--no-deps", "-w", str(tmp_path), str(ROOT)),
        cwd=tmp_path,
        env={"CC": compiler},
    )
    assert status != 0
    complaints = [line for line in output.splitlines() if "sneck needs" in line]
    assert len(complaints) == 1, output
    assert package in complaints[0]
    for system in ("Debian", "Fedora", "Alpine", "macOS"):
        assert system in complaints[0]
