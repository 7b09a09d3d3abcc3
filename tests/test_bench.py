"""The benchmarks run, and each contender does what its row of the table says."""

from __future__ import annotations

import json
import os
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
RIVALS = ["redlock-py", "pottery"]  # those that lock on several servers
CONTENDERS = [*OURS, *SENT, "redis-py 100 ms", "python-redis-lock"]
CROWDS = ["sneck C", "sneck Python"]
POLLING = ["redis-py", "redis-py 100 ms", "redis-py 10 ms"]

ADD = {"watch": 1, "get": 1, "multi": 1, "set": 1, "exec": 1}
OUR_ADD = {**ADD, "exists": 1}
# each contender's commands and round trips for an addition that nobody disturbs
ADDS = {
    "raw hiredis": (ADD, 3),
    "raw in 2 trips": (ADD, 2),
    "sneck C update": (OUR_ADD, 2),
    "sneck C transact": (OUR_ADD, 2),
    "sneck C compare_and_set": (OUR_ADD, 2),
    "sneck Python update": (OUR_ADD, 2),
    "sneck Python transaction": (OUR_ADD, 2),
    "sneck Lua update": (OUR_ADD, 2),
    "redis-py": (ADD, 3),
    "script (no CAS)": ({"evalsha": 1, "get": 1, "set": 1}, 1),
    "INCR (no CAS)": ({"incr": 1}, 1),
}
NATIVE = "raw SET IFEQ"  # takes part where the server has that
PINNED = ["same", "split"] if len(os.sched_getaffinity(0)) > 1 else ["same"]
PLACEMENTS = {1: PINNED, WORKERS: [*PINNED, "free"]}


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


def is_jain(index: float, workers: int) -> bool:
    """Tell whether it is from 1/n to 1, but for rounding."""
    return 1 / workers - 1e-9 <= index <= 1 + 1e-9


@pytest.fixture(scope="module")
def uncontended(prefix: Path) -> dict[str, dict[str, object]]:
    results = run(prefix, "uncontended.py", "--seconds=0.001")
    return {result["name"]: result for result in results}


@pytest.fixture(scope="module")
def quorum(prefix: Path) -> dict[str, dict[str, Any]]:
    results = run(prefix, "quorum.py", "--seconds=0.001")
    return {result["name"]: result for result in results}


@pytest.fixture(scope="module")
def contended(prefix: Path) -> dict[str, dict[str, Any]]:
    """Return the results of the sections of 1 ms."""
    results = run(prefix, "contended.py", "--seconds=0.4", f"--workers={WORKERS}")
    return {result["name"]: result for result in results if result["section_us"]}


@pytest.fixture(scope="module")
def crowds(prefix: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the results of small crowds, each in one process, by name and waiters."""
    results = run(prefix, "async.py", "--seconds=0.3", "--waiters=1,50")
    return {(result["name"], result["waiters"]): result["numbers"] for result in results}


@pytest.fixture(scope="module")
def cas(prefix: Path) -> dict[tuple[str, int, str], dict[str, Any]]:
    """Return the results by contender, workers and placement."""
    results = run(prefix, "cas.py", "--seconds=0.05", f"--workers=1,{WORKERS}")
    return {(each["name"], each["workers"], each["placement"]): each for each in results}


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


@pytest.mark.parametrize("contender", ["raw hiredis", *OURS])
def test_each_server_of_a_quorum_is_asked_twice(
    quorum: dict[str, dict[str, Any]], contender: str
) -> None:
    looks = {"zpopmin": 5} if contender in OURS else {}
    assert quorum[contender]["commands"] == {**dict.fromkeys(CYCLE, 5), **looks}


def test_quorum_is_compared_in_every_placement(quorum: dict[str, dict[str, Any]]) -> None:
    assert list(quorum) == ["raw hiredis", *OURS, *RIVALS]
    for result in quorum.values():
        assert list(result["to_others"]) == [*PINNED, "free"]
        for ratios in result["to_others"].values():
            assert list(ratios) == RIVALS


@pytest.mark.parametrize("contender", CONTENDERS)
def test_contended_lock_changes_its_owner(
    contended: dict[str, dict[str, Any]], contender: str
) -> None:
    assert contended[contender]["changes_per_second"] > 0
    assert contended[contender]["longest_ms"] > 0
    assert is_jain(contended[contender]["jain"], WORKERS)


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


@pytest.mark.parametrize("waiters", [1, 50])
@pytest.mark.parametrize("contender", ["8 processes", *CROWDS, *POLLING])
def test_lock_is_handed_on_in_a_crowd(
    crowds: dict[tuple[str, int], dict[str, Any]], contender: str, waiters: int
) -> None:
    numbers = crowds[contender, waiters]
    assert numbers["per_second"] > 0
    assert 0 < numbers["median_us"] <= numbers["late_us"]
    assert numbers["late_us"] / 1000 < numbers["longest_ms"] * 1.04  # which are rounded


@pytest.mark.parametrize("contender", CROWDS)
def test_crowd_has_two_connections(
    crowds: dict[tuple[str, int], dict[str, Any]], contender: str
) -> None:
    assert crowds[contender, 1]["connections"] == crowds[contender, 50]["connections"] == 2


@pytest.mark.parametrize("contender", CROWDS)
def test_memory_of_a_waiter_is_told_by_comparison(
    crowds: dict[tuple[str, int], dict[str, Any]], contender: str
) -> None:
    assert crowds[contender, 1]["waiter_kib"] is None
    assert crowds[contender, 50]["waiter_kib"] is not None


def test_crowd_that_fails_is_told_beside_the_others(prefix: Path) -> None:
    # redis-py's pool has 100 connections unless it is told otherwise
    results = run(prefix, "async.py", "--seconds=0.1", "--waiters=200", "--only=redis-py,Python")
    told = {result["name"]: (result["numbers"] is None, result["failure"]) for result in results}
    assert told["sneck Python"] == (False, "")
    assert told["redis-py"] == (True, "failed: MaxConnectionsError: Too many connections")


@pytest.mark.parametrize("contender", CONTENDERS)
def test_each_change_of_owner_is_an_acquisition(
    contended: dict[str, dict[str, Any]], contender: str
) -> None:
    result = contended[contender]
    assert 1 < result["requests_per_acquisition"] <= result["requests"]


def test_everyone_adds_in_every_placement(cas: dict[tuple[str, int, str], dict[str, Any]]) -> None:
    # the bench itself stops when the number is not what all of them have added
    expected = [
        (name, workers, place)
        for workers, places in PLACEMENTS.items()
        for place in places
        for name in ADDS
    ]
    assert [key for key in cas if key[0] != NATIVE] == expected
    for (_, workers, _), result in cas.items():
        assert result["adds_per_second"] > 0
        assert is_jain(result["jain"], workers)


@pytest.mark.parametrize("contender", ADDS)
def test_undisturbed_addition(
    cas: dict[tuple[str, int, str], dict[str, Any]], contender: str
) -> None:
    result = cas[contender, 1, "same"]
    commands, trips = ADDS[contender]
    assert {name: result["commands"].get(name) for name in commands} == commands
    assert result["trips"] == pytest.approx(trips, abs=0.1)


@pytest.mark.parametrize("contender", ADDS)
def test_commands_of_scripts_are_not_sent(
    cas: dict[tuple[str, int, str], dict[str, Any]], contender: str
) -> None:
    result = cas[contender, 1, "same"]
    calls = sum(result["commands"].values())
    by_script = 2 if "script" in contender else 0
    assert result["sent"] == pytest.approx(calls - by_script, abs=0.1)


def test_native_form_asks_for_no_transaction(
    cas: dict[tuple[str, int, str], dict[str, Any]],
) -> None:
    for (name, _, _), result in cas.items():
        if name == NATIVE:
            assert result["trips"] == pytest.approx(result["sent"], abs=0.1)
            assert set(result["commands"]) <= {"set", "get"}
