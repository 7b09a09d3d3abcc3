"""What the tests of documents and of installations share: the builds, used from outside.

Invariant: what is made here goes below the directory that the caller gives.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from programs import BUILD, TOP, lua_paths


def install_library(prefix: Path) -> None:
    """Install header, library, pkg-config file and CMake package into a prefix."""
    command = ["cmake", "--install", str(BUILD), "--prefix", str(prefix)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def compile_program(prefix: Path, source: Path, program: Path, *options: str) -> None:
    """Compile a C program against an installed library, by pkg-config."""
    subprocess.run(
        [TOP / "scripts/compile", program, source, *options],
        check=True,
        env={**os.environ, "SNECK_PREFIX": str(prefix)},
    )


def lua_environment(tree: Path) -> dict[str, str]:
    """Return an environment in which Lua finds the rocks of a tree."""
    return {**os.environ, **lua_paths(tree)}
