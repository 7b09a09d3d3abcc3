"""What the tests run: the builds of the three languages, found by the environment.

scripts/test sets it; without it, the build folders are where scripts/build puts them.

    SNECK_BUILD        the CMake build (build/cmake)
    SNECK_ASAN_BUILD   one under AddressSanitizer and UBSan; where set, it is tested, too
    SNECK_TSAN_BUILD   one under ThreadSanitizer; where set, threads are tested in it
    SNECK_LUA_TREE     the tree that the rock is installed in (build/rock)
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
TOP = TESTS.parent
BUILD = TOP / os.environ.get("SNECK_BUILD", "build/cmake")
LUA_TREE = TOP / os.environ.get("SNECK_LUA_TREE", "build/rock")
PYTHON = [sys.executable]
LUA = ["lua5.4"]
NODE = Path(sys.executable).with_name("node")
NODE_MODULES = TOP / "build/node/node_modules"
SERVERS = [name for name in ("redis-server", "valkey-server") if shutil.which(name)]


def c_builds() -> dict[str, Path]:
    """Find the C builds to test; the key is a suffix for names."""
    asan = os.environ.get("SNECK_ASAN_BUILD")
    return {"": BUILD, "-asan": Path(asan)} if asan else {"": BUILD}


def tsan_builds() -> list[Path]:
    """Find the build for what uses threads, if there is one."""
    return [Path(build) for build in [os.environ.get("SNECK_TSAN_BUILD")] if build]


def lua_paths(tree: Path) -> dict[str, str]:
    """Make the variables by which Lua finds the rocks of a tree."""
    share, lib = tree / "share/lua/5.4", tree / "lib/lua/5.4"
    return {
        "LUA_PATH": f"{share}/?.lua;{share}/?/init.lua;;",
        "LUA_CPATH": f"{lib}/?.so;;",
    }


def environment() -> dict[str, str]:
    """Make the environment of a program under test; no server but the test's own is named in it."""
    inherited = {name: value for name, value in os.environ.items() if name != "SNECK_URL"}
    return {
        **inherited,
        **lua_paths(LUA_TREE),
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:allocator_may_return_null=1",
        "TSAN_OPTIONS": "die_after_fork=0:halt_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
