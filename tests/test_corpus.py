"""The corpus: each case, in each language, on each server, as a test of its own.

A runner does all selected files in one process, on a bed of its own; runners of different
languages run side by side. A case that a runner does not report has failed.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bed import Bed
from programs import LUA, PYTHON, SERVERS, TESTS, c_builds, environment

FILES = sorted((TESTS / "corpus").glob("*.case"))
LIMIT = 900  # seconds, for one runner and all files; only a hang needs as many
SIDE_BY_SIDE = 4
REPORT = re.compile(r"(ok|failed|excused) (.*)")


def c_runner(build: Path) -> str:
    """Name the C runner of a build."""
    return str(build / "tests/corpus_runner")


RUNNERS: dict[str, list[str]] = {
    **{
        f"c-blocking{suffix}": [c_runner(build), "--mode", "blocking"]
        for suffix, build in c_builds().items()
    },
    **{
        f"c-stepped{suffix}": [c_runner(build), "--mode", "stepped"]
        for suffix, build in c_builds().items()
    },
    "python": [*PYTHON, str(TESTS / "runners/python/runner.py")],
    "python-asyncio": [*PYTHON, str(TESTS / "runners/python/runner.py"), "--asyncio"],
    "lua": [*LUA, str(TESTS / "runners/lua/runner.lua")],
    "lua-coroutine": [*LUA, str(TESTS / "runners/lua/runner.lua"), "--mode", "coroutine"],
}


def titles_of(path: Path) -> list[str]:
    """Read the titles of a file, without a runner's help."""
    return [line[3:] for line in path.read_text("utf-8").splitlines() if line.startswith("== ")]


TITLES = {title: path for path in FILES for title in titles_of(path)}


@dataclass
class Report:
    """What a runner said, by title."""

    lines: dict[str, tuple[str, str]] = field(default_factory=dict)
    stderr: str = ""


def read_report(stdout: str, titles: list[str]) -> dict[str, tuple[str, str]]:
    """Sort the lines by title; a line's text behind the title tells what went wrong."""
    lines = {}
    for line in stdout.splitlines():
        match = REPORT.fullmatch(line)
        title = next(
            (t for t in titles if match and (match[2] == t or match[2].startswith(t + ": "))), None
        )
        if match and title:
            lines[title] = (match[1], match[2][len(title) + 2 :])
    return lines


def run_corpus(program: str, runner: str, files: list[Path]) -> Report:
    """Run files on a bed of their own."""
    with Bed(program) as bed:
        command = [
            *RUNNERS[runner],
            *bed.arguments,
            *[str(path.relative_to(TESTS)) for path in files],
        ]
        done = subprocess.run(
            command, cwd=TESTS, env=environment(), capture_output=True, text=True, timeout=LIMIT
        )
    titles = [title for title, path in TITLES.items() if path in files]
    return Report(read_report(done.stdout, titles), done.stderr)


Reports = dict[tuple[str, str], "Future[Report]"]


def selected(session: pytest.Session) -> dict[tuple[str, str], set[Path]]:
    """Find what pytest is going to ask for."""
    wanted: dict[tuple[str, str], set[Path]] = {}
    for item in session.items:
        if isinstance(item, pytest.Function) and item.originalname == "test_case":
            given = {name: str(value) for name, value in item.callspec.params.items()}
            files = wanted.setdefault((given["program"], given["runner"]), set())
            files.add(TITLES[given["title"]])
    return wanted


@pytest.fixture(scope="session")
def reports(request: pytest.FixtureRequest) -> Iterator[Reports]:
    """The reports to come, one for each server and runner."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        yield {
            (program, runner): pool.submit(run_corpus, program, runner, sorted(files))
            for (program, runner), files in selected(request.session).items()
        }


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("program", SERVERS)
def test_case(reports: Reports, program: str, runner: str, title: str) -> None:
    """A case passes, or names the attribute that excuses it."""
    report = reports[program, runner].result()
    assert title in report.lines, f"not reported; the runner said: {report.stderr[-2000:]}"
    status, text = report.lines[title]
    if status == "excused":
        pytest.skip(f"the case needs: {text}")
    assert status == "ok", text


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("program", SERVERS)
def test_a_runner_says_nothing_else(reports: Reports, program: str, runner: str) -> None:
    """No sanitizer, no warning and no traceback speaks up."""
    if (program, runner) in reports:
        assert reports[program, runner].result().stderr == ""


@pytest.mark.parametrize("runner", RUNNERS)
def test_all_runners_know_the_same_titles(runner: str) -> None:
    """`--titles` is the list that stands in the files, in their order."""
    command = [*RUNNERS[runner], "--titles", *map(str, FILES)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [title for path in FILES for title in titles_of(path)]


def test_titles_are_unique() -> None:
    """A title names one case of the whole corpus."""
    assert len(TITLES) == sum(len(titles_of(path)) for path in FILES)
    assert not [t for t in TITLES for other in TITLES if other.startswith(t + ": ")]


NOT_UNDERSTOOD = {
    "verb": "== t\na: grab door -> ok\n",
    "option": "== t\na: acquire door tll=5 -> ok any\n",
    "outcome": "== t\na: acquire door -> fine\n",
    "status": "== t\na: acquire door -> fail BUSYY\n",
    "attribute": "== t\n:planet mars\na: acquire door -> ok\n",
    "too many servers": "== t\n:servers 6\na: acquire door -> ok any\n",
    "a server that is not there": "== t\n:servers 5\nredis6: GET door -> nil\n",
    "no servers": "== t\n:servers 0\na: acquire door -> ok any\n",
    "one of many": "== t\nredis2: GET door -> nil\n",
    "no outcome": "== t\na: acquire door\n",
    "no steps": "== t\n",
    "unbound variable": "== t\nredis: GET $nothing -> nil\n",
    "open quote": '== t\nredis: GET "door -> nil\n',
    "left waiting": "== t\na: acquire d ttl=60000 -> ok\nb: acquire d wait=60000 -> ...\n",
    "wrong value": "== t\nredis: SET door 1 -> ok 2\n",
    "not nil": "== t\nredis: SET door nil -> ok\nredis: GET door -> nil\n",
    "left open": "== t\na: begin k -> ok\n",
    "not begun": "== t\na: commit -> ok\n",
    "begun twice": "== t\na: begin k -> ok\na: begin k -> ok\na: abort -> nil\na: abort -> nil\n",
    "not again": "== t\na: begin k -> ok\na: commit -> again\n",
    "again and again": "== t\na: begin k -> again\n",
    "two changes": "== t\na: update k add=1 keep=yes -> ok\n",
    "no change": "== t\na: update k -> ok\n",
    "nothing failed": "== t\na: failure attempts -> ok\n",
    "two servers": "== t\nserver: restart now -> ok\n",
    "owner left waiting": "== t\na: acquire d owner=1 wait=60000 -> ...\n",
    "owner that is none": "== t\na: acquire d owner=me -> ok any\n",
    "neither on nor off": "== t\na: keep_alive d yes -> ok\n",
    "taken name": "== t\na: clone d d -> ok\n",
    "not above": "== t\na: acquire d ttl=60000 fence=yes -> ok\n"
    "a: fence d -> ok $f\na: fence d -> ok above $f\n",
    "above nothing": "== t\nredis: INCR n -> ok above 0\n",
    "above what is unbound": "== t\nredis: INCR n -> ok above $f\n",
    "until without a verb": "== t\na: until -> ok\n",
    "until a transaction": "== t\na: until begin k -> ok\na: abort -> nil\n",
    "until a fault": "== t\nfault: until cut -> ok\n",
    "until it waits": "== t\na: until acquire d wait=60000 -> ...\n",
    "until it is bound": "== t\na: until owned $name -> ok no\n",
    "outside of a case": "a: acquire door -> ok\n",
}


@pytest.mark.parametrize("mistake", NOT_UNDERSTOOD)
@pytest.mark.parametrize("runner", RUNNERS)
def test_a_runner_fails_for_what_it_does_not_understand(
    runner: str, mistake: str, mistakes_bed: Bed, tmp_path: Path
) -> None:
    """Nothing in a case is passed over."""
    path = tmp_path / "wrong.case"
    path.write_text(NOT_UNDERSTOOD[mistake])
    done = subprocess.run(
        [*RUNNERS[runner], *mistakes_bed.arguments, str(path)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode != 0
    assert "ok t" not in done.stdout.splitlines()
    assert done.returncode == 2 or "failed t: " in done.stdout


@pytest.fixture(scope="session")
def mistakes_bed() -> Iterator[Bed]:
    """A bed for cases that are wrong on purpose."""
    with Bed(SERVERS[0]) as bed:
        yield bed


def test_a_server_is_installed() -> None:
    """Without any, all of the above would pass for want of cases."""
    assert SERVERS
