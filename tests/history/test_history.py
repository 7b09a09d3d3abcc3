"""The short history check, and the checker's own tests: each fault, in a history made for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

import checker  # noqa: E402
import run  # noqa: E402

from programs import SERVERS  # noqa: E402

CALM = checker.Disturbances({})
LATE = 100000.0


def check(histories: dict[str, list[str]], disturbed: checker.Disturbances = CALM) -> list[str]:
    """Check histories given as lines; return the kinds of what is found."""
    read = [checker.read(who, lines, LATE) for who, lines in histories.items()]
    found = checker.check(read, disturbed, bound=5000.0, patience=15000.0)
    return [line.split(":")[0] for line in found]


def turn(asked: float, held: float, until: float, releasing: float) -> list[str]:
    """Write down one use of the lock."""
    return [
        f"asked {asked}",
        f"held {held} {until}",
        f"releasing {releasing}",
        f"released {releasing} OK",
    ]


def test_a_good_history_has_nothing_to_find() -> None:
    """Claims that follow each other are fine, and a claim that outlived its lease ends there."""
    assert check({"a": turn(0, 1, 900, 5000), "b": turn(10, 1000, 2000, 1500)}) == []


def test_two_claims_at_once_are_an_overlap() -> None:
    """Also when the processes were disturbed."""
    histories = {"a": turn(0, 1, 2000, 1500), "b": turn(0, 1400, 3000, 1600)}
    assert check(histories) == ["overlap"]
    assert check(histories, checker.Disturbances({"*": [1000.0]})) == ["overlap"]


def test_a_claim_inside_of_another_is_an_overlap() -> None:
    """And so is one behind it that the first still covers."""
    long = turn(0, 1, 9000, 8000)
    assert (
        check({"a": long, "b": turn(0, 10, 90, 50), "c": turn(0, 100, 900, 500)}) == ["overlap"] * 2
    )


def test_a_lease_that_was_renewed_is_claimed_further() -> None:
    """Until what was last said of it, and no longer."""
    renewed = ["asked 0", "held 1 400", "still 300 700", "still 800 800", "releasing 900"]
    assert check({"a": renewed, "b": turn(0, 600, 900, 650)}) == ["overlap"]
    assert check({"a": renewed, "b": turn(0, 750, 900, 800)}) == []


def test_a_fence_that_is_not_greater_is_found() -> None:
    """Also when one without a fence had the lock in between."""
    first = ["asked 0", "held 1 400 7", "releasing 100"]
    second = ["asked 0", "held 300 700 {}", "releasing 400"]
    for fence, found in (("8", []), ("7", ["fence"]), ("6", ["fence"])):
        last = [line.format(fence) for line in second]
        assert check({"a": first, "b": turn(0, 110, 250, 200), "c": last}) == found


def test_a_lock_that_is_free_while_somebody_waits_is_stuck() -> None:
    """For longer than the bound, that is."""
    histories = {"a": turn(0, 1, 900, 500), "b": turn(400, 7000, 9000, 8000)}
    assert check(histories) == ["stuck"]
    assert check(histories, checker.Disturbances({"b": [3000.0]})) == []


def test_a_waiter_that_is_passed_is_an_inversion() -> None:
    """Unless it was disturbed, or both asked at nearly the same time."""
    first, second = turn(0, 4000, 5000, 4500), turn(1500, 3000, 3900, 3800)
    assert check({"a": first, "b": second}) == ["inversion"]
    assert check({"a": first, "b": second}, checker.Disturbances({"a": [2000.0]})) == []
    assert check({"a": first, "b": turn(900, 3000, 3900, 3800)}) == []


def test_a_waiter_that_never_gets_it_is_starved() -> None:
    """A wait that the history's end cuts counts as well."""
    assert check({"a": ["asked 1000"]}) == ["starvation"]
    assert check({"a": ["asked 1000", "missed 3000 TIMEOUT"]}) == []


@pytest.mark.parametrize("program", SERVERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_claims_agree_whatever_is_disturbed(program: str, seed: int) -> None:
    """Twelve seconds each; the long run is tests/history/run.py."""
    assert run.run(program, seconds=12.0, processes=9, seed=seed) == []
