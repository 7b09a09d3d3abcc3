"""The benchmarks run, and each contender does what its row of the table says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from installed import install_library, lua_environment
from programs import LUA_TREE, TOP

CYCLE = {"set": 1, "evalsha": 1, "get": 1, "del": 1}
WORKERS = 3
OURS = ["sneck C", "sneck Python", "sneck Lua"]
# the commands that a contender sends itself, where its scripts call none of them
SENT = {
    "ring": ["blpop", "rpush"],
    "redis-py 1 ms": ["set", "evalsha"],
}
CONTENDERS = [*OURS, *SENT, "redis-py 100 ms", "python-redis-lock"]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    installed = tmp_path_factory.mktemp("prefix")
    install_library(installed)
    return installed


def run(prefix: Path, bench: str, *arguments: str) -> Any:
    """Run a bench that is too short to tell anything; return its results."""
    printed = subprocess.run(
        [sys.executable, TOP / "bench" / bench, "--rounds=2", "--json", *arguments],
        env={**lua_environment(LUA_TREE), "SNECK_PREFIX": str(prefix)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return json.loads(printed)


@pytest.fixture(scope="module")
def uncontended(prefix: Path) -> dict[str, dict[str, object]]:
    results = run(prefix, "uncontended.py", "--seconds=0.001")
    return {result["name"]: result for result in results}


@pytest.fixture(scope="module")
def contended(prefix: Path) -> dict[str, dict[str, Any]]:
    """Return the results of the sections of 1 ms."""
    results = run(prefix, "contended.py", "--seconds=0.4", f"--workers={WORKERS}")
    return {result["name"]: result for result in results if result["section_us"]}


@pytest.fixture(scope="module")
def crowds(prefix: Path) -> dict[str, dict[str, Any]]:
    """Return the results of small crowds, each in one process."""
    results = run(prefix, "async.py", "--seconds=0.2", "--waiters=1,50")
    return {result["name"]: result for result in results}


@pytest.mark.parametrize("contender", ["raw hiredis", "redis-py Lock"])
def test_contender_takes_two_round_trips(
    uncontended: dict[str, dict[str, object]], contender: str
) -> None:
    assert uncontended[contender]["commands"] == CYCLE


@pytest.mark.parametrize("contender", OURS)
def test_uncontended_release_only_looks_at_the_queue(
    uncontended: dict[str, dict[str, object]], contender: str
) -> None:
    assert uncontended[contender]["commands"] == {**CYCLE, "zpopmin": 1}


@pytest.mark.parametrize("contender", CONTENDERS)
def test_contended_lock_changes_its_owner(
    contended: dict[str, dict[str, Any]], contender: str
) -> None:
    assert contended[contender]["changes_per_second"] > 0
    assert contended[contender]["longest_ms"] > 0
    assert 1 / WORKERS <= round(contended[contender]["jain"], 9) <= 1


@pytest.mark.parametrize("contender", SENT)
def test_requests_are_the_commands_that_are_sent(
    contended: dict[str, dict[str, Any]], contender: str
) -> None:
    result = contended[contender]
    by_name = sum(result["commands"][name] for name in SENT[contender])
    assert by_name == pytest.approx(result["requests"], abs=0.03)


@pytest.mark.parametrize("contender", OURS)
def test_contended_cycle_takes_two_requests(
    contended: dict[str, dict[str, Any]], contender: str
) -> None:
    # two, and on a machine that is busy one more for who waited so long that it must confirm
    assert 1 < contended[contender]["requests"] < 3.2


@pytest.mark.parametrize("contender", ["8 processes", "sneck C 1", "sneck C 50"])
def test_lock_is_handed_on_in_a_crowd(crowds: dict[str, dict[str, Any]], contender: str) -> None:
    assert crowds[contender]["per_second"] > 0
    assert crowds[contender]["longest_ms"] > 0


def test_crowd_has_two_connections(crowds: dict[str, dict[str, Any]]) -> None:
    assert crowds["sneck C 1"]["connections"] == crowds["sneck C 50"]["connections"] == 2


def test_memory_of_a_waiter_is_told_by_comparison(crowds: dict[str, dict[str, Any]]) -> None:
    assert crowds["sneck C 1"]["waiter_kib"] is None
    assert crowds["sneck C 50"]["waiter_kib"] is not None
