"""The hand-off holds what it promises in every order of events, and each remedy is needed.

spin makes a verifier of handoff.pml in C, gcc builds it, and it looks at every state that
can be reached within the bounds that its configuration names.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).with_name("handoff.pml")
LIMIT = 300  # seconds for one search; about ten times what the longest one takes
DEPTH = 500_000
MEMORY_MB = 2000

TWO = ["-DN=2", "-DTTL=2"]
THREE = ["-DN=3", "-DTTL=2"]
SAFE = {
    "two processes": ["-DN=2", "-DTTL=4"],
    "two processes, two ops each": [*TWO, "-DROUNDS=2", "-DGRANTS=1", "-DLEAVES=1"],
    "three processes, one leaves": [*THREE, "-DGRANTS=1", "-DLEAVES=1", "-DCRASHES=0"],
    "three processes, one dies": [*THREE, "-DGRANTS=1", "-DLEAVES=0"],
}
LIVE = {
    "two processes": TWO,
    "two processes, two ops each": [*TWO, "-DROUNDS=2", "-DPROMPT", "-DLEAVES=1"],
    "three processes, two of them die": [*THREE, "-DPROMPT", "-DCRASHES=2", "-DLEAVES=1"],
}
FAULTS = {
    "a late grant is believed from its receipt on": (
        ["-DFAULT_BELIEF", "-DONLY_BELIEF"],
        "sum<=1",
    ),
    "who won by its timer leaves its entry behind": (
        ["-DFAULT_ENTRY", "-DONLY_OTHERS"],
        "found!=",
    ),
    "a grant is counted from a later queueing than its own": (
        ["-DFAULT_FORGET", "-DONLY_BELIEF"],
        "sum<=1",
    ),
    "who forgot that it was queued leaves its entry behind": (
        ["-DFAULT_FORGET", "-DONLY_GONE"],
        "in_queue",
    ),
}


def search(folder: Path, defines: list[str], *, live: bool = False) -> str:
    """Build the verifier of a configuration and run it; return what it says."""
    spin = ["spin", *defines, *(["-DLIVENESS"] if live else []), "-a", str(MODEL)]
    # to optimize takes longer than a small search
    # where a fault is found soon, to optimize takes longer than to search
    level = "-O0" if any(define.startswith("-DFAULT") for define in defines) else "-O1"
    # every step looks at all processes, so spin's reduction finds nothing to leave out
    options = ["-DNOREDUCE", f"-DMEMLIM={MEMORY_MB}", "-DNFAIR=3" if live else "-DSAFETY"]
    if "-DN=3" in defines:
        # the same steps have their indices checked with two processes
        options.append("-DNOBOUNDCHECK")
    cc = ["cc", level, "-w", *options, "-o", "pan", "pan.c"]
    pan = ["./pan", f"-m{DEPTH}", *(["-a", "-f"] if live else [])]
    said = ""
    for command in (spin, cc, pan):
        done = subprocess.run(
            command,
            cwd=folder,
            check=False,
            timeout=LIMIT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = done.stdout
        assert done.returncode == 0, said
    return said


def errors(said: str) -> int:
    """Read how many errors a search has found."""
    found = re.search(r"errors: (\d+)$", said, re.MULTILINE)
    assert found, said
    return int(found[1])


def assert_all_is_well(said: str) -> None:
    """Check that a search went through all states and found no error."""
    assert errors(said) == 0, said
    for sign in ("not completed", "too small", "truncated", "out of memory", "reached -DMEMLIM"):
        assert sign not in said, said


@pytest.mark.parametrize("name", SAFE)
def test_never_two_holders_and_nothing_left_behind(name: str, tmp_path: Path) -> None:
    said = search(tmp_path, SAFE[name])
    assert_all_is_well(said)
    # each step of the client is taken somewhere, or the search would prove little
    assert re.search(r"unreached in proctype client\n.*\n\s+\(1 of ", said), said


@pytest.mark.parametrize("name", LIVE)
def test_no_waiter_is_lost(name: str, tmp_path: Path) -> None:
    assert_all_is_well(search(tmp_path, LIVE[name], live=True))


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found_without_its_remedy(fault: str, tmp_path: Path) -> None:
    defines, violated = FAULTS[fault]
    said = search(tmp_path, [*TWO, *defines])
    assert errors(said) >= 1, said
    assert re.search(rf"assertion violated .*{re.escape(violated)}", said), said


def test_waiter_is_lost_without_its_timer(tmp_path: Path) -> None:
    said = search(tmp_path, [*TWO, "-DFAULT_NO_TIMER"], live=True)
    assert errors(said) >= 1, said
    assert "acceptance cycle" in said, said


def test_search_that_is_cut_short_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("test_model.DEPTH", 100)
    with pytest.raises(AssertionError):
        assert_all_is_well(search(tmp_path, TWO))
