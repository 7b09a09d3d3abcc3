"""The benchmarks run, and each contender does what its row of the table says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from installed import install_library, lua_environment
from programs import LUA_TREE, TOP

CYCLE = {"set": 1, "evalsha": 1, "get": 1, "del": 1}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Run a bench that is too short to tell anything; return its results by contender."""
    prefix: Path = tmp_path_factory.mktemp("prefix")
    install_library(prefix)
    printed = subprocess.run(
        [sys.executable, TOP / "bench/uncontended.py", "--rounds=2", "--seconds=0.001", "--json"],
        env={**lua_environment(LUA_TREE), "SNECK_PREFIX": str(prefix)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return {result["name"]: result for result in json.loads(printed)}


@pytest.mark.parametrize(
    "contender", ["raw hiredis", "sneck C", "sneck Python", "sneck Lua", "redis-py Lock"]
)
def test_contender_takes_two_round_trips(
    results: dict[str, dict[str, object]], contender: str
) -> None:
    assert results[contender]["commands"] == CYCLE
