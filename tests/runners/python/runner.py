"""Runs the cases of the corpus against the Python package and prints how they went.

What it reads and prints stands in tests/corpus/README.md. A case starts on a server reset by the
control socket, with no actor left over.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import onloop
import outcome
from actor import ONCE, Actor, connect
from casefile import Case, CaseError, Word, give_up, read_cases, read_words

CONTROL_TIMEOUT = 60.0
UNTIL_TRIES = 1000  # with pauses of 10 ms
UNTIL_PAUSE = 0.01
SPECIAL = re.compile(r"(redis|fault|server)([1-5]?):")


class Run:
    """What the cases of one run have in common."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        names = ("socket", "proxy", "cluster")
        self._sockets = {name: getattr(given, name) for name in names if getattr(given, name)}
        self._variables: dict[str, bytes] = {}
        self._actors: dict[str, Actor] = {}
        self._make = onloop.connector() if given.asyncio else connect
        self._servers: list[str] = []  # of a quorum, through their proxies; none: there is one
        self._plain: dict[str, Actor] = {}  # by what a raw command begins with
        self._control = Actor(self._sockets)
        self._control.connect(given.control, timeout=CONTROL_TIMEOUT)

    def case(self, case: Case) -> str | None:
        """Run one case; None when it passed, or what went wrong."""
        self._begin(case)
        problem = None if case.steps else f"{case.path}: no steps"
        for line, text in case.steps:
            problem = self._try_step(text)
            if problem:
                problem = f"{case.path}:{line} {problem}"
                break
        if not self._end() and not problem:
            problem = f"{case.path}: the case ends while a call is waiting"
        return problem

    def excuse(self, case: Case) -> str | None:
        """Find the first attribute that is not met."""
        for attribute in case.attributes:
            name, _, value = attribute.partition(" ")
            if name == "tcp" and not value:
                met = self._given.address is not None
            elif name == "redis":
                met = _version(self._given.redis) >= _version(value)
            elif name == "servers" and re.fullmatch("[1-5]", value):
                met = self._given.servers is not None
            else:
                give_up(f"unknown attribute: {attribute}")
            if not met:
                return attribute
        return None

    def _reset(self) -> None:
        words = [Word(b"BEGIN"), *([Word(b"servers")] if self._servers else [])]
        if self._control.run("execute", words, leave=False)[0] != "ok":
            give_up("the server cannot be reset")

    def _begin(self, case: Case) -> None:
        counts = [text.split()[1] for text in case.attributes if text.startswith("servers ")]
        numbers = range(1, int(counts[0]) + 1 if counts else 1)
        self._servers = [f"unix://{self._given.servers}/proxy{number}" for number in numbers]
        self._reset()
        self._renew_plain()
        self._variables = {name: path.encode() for name, path in self._sockets.items()}
        if self._given.address:
            self._variables["address"] = self._given.address.encode()

    def _renew_plain(self) -> None:
        """Make new actors for raw commands, which are not about what a lost connection does."""
        self._close_plain()
        self._plain = {"redis:": Actor(self._sockets)}
        for number in range(1, len(self._servers) + 1):
            socket = f"{self._given.servers}/server{number}"
            self._plain[f"redis{number}:"] = Actor({**self._sockets, "socket": socket})

    def _close_plain(self) -> None:
        for actor in self._plain.values():
            actor.close()
        self._plain.clear()

    def _end(self) -> bool:
        """Close the actors. False: a call was still waiting."""
        waited = any(actor.waits for actor in self._actors.values())
        if waited:
            self._reset()  # so that every lock is free, and the waiters end
        closed = [actor.close() for actor in self._actors.values()]
        if not all(closed):
            give_up("a call does not end")
        self._actors.clear()
        self._close_plain()
        return not waited

    def _try_step(self, text: str) -> str | None:
        try:
            return self._step(text)
        except CaseError as error:
            return str(error)

    def _step(self, text: str) -> str | None:
        words = read_words(text, self._variables)
        if words[0] == "sleep":
            return self._sleep(words)
        left = next((at for at, word in enumerate(words) if word == "->"), len(words))
        expected = words[left + 1 :]
        outcome.check(expected)
        if left > 1 and words[1] == "until":
            got = self._until([words[0], *words[2:left]], expected)
        else:
            got = self._do(words[:left], leave=expected[0] == "...")
        if outcome.matches(expected, got, self._variables):
            return None
        return f"expected {' '.join(map(repr, expected))} got {' '.join(map(repr, got))}"

    def _until(self, words: list[Word], expected: outcome.Outcome) -> outcome.Outcome:
        """Repeat a step until its outcome is the expected one; gives the last outcome."""
        once = len(words) < 2 or (not words[1].quoted and words[1].data.decode() in ONCE)
        if once or self._action(words[0]) or expected[0] == "...":
            raise CaseError("until stands before a verb that may be repeated")
        for _ in range(UNTIL_TRIES):
            got = self._do(words, leave=False)
            if outcome.matches(expected, got, self._variables):
                break
            time.sleep(UNTIL_PAUSE)
        return got

    @staticmethod
    def _sleep(words: list[Word]) -> None:
        if len(words) != 2 or not words[1].data.isdigit():
            raise CaseError("sleep is not followed by milliseconds")
        time.sleep(int(words[1].data) / 1000)

    def _do(self, words: list[Word], *, leave: bool) -> outcome.Outcome:
        name, arguments = words[0].data.decode(), words[1:]
        if not name.endswith(":") or not arguments:
            raise CaseError("not an actor with a verb")
        if name in self._plain:
            return self._plain[name].run("execute", arguments, leave=leave)
        action = self._action(words[0])
        if action:
            return self._act(action, arguments)
        actor = self._actors.setdefault(name, Actor(self._sockets, self._make, self._servers))
        if arguments[0] == "...":
            return actor.resume(leave=leave)
        return actor.run(arguments[0].data.decode(), arguments[1:], leave=leave)

    def _action(self, word: Word) -> str:
        """Tell what the control socket is told for a word that begins a step; "": nothing."""
        found = None if word.quoted else SPECIAL.fullmatch(word.data.decode())
        if not found or found[1] == "redis" or int(found[2] or 0) > len(self._servers):
            return ""
        return found[1].upper() + found[2]

    def _act(self, verb: str, arguments: list[Word]) -> outcome.Outcome:
        if len(arguments) not in (1, 2 if verb.startswith("FAULT") else 1):
            raise CaseError("wrong number of arguments")
        self._renew_plain()
        return self._control.run("execute", [Word(verb.encode()), *arguments], leave=False)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--titles", action="store_true")
    parser.add_argument("--asyncio", action="store_true", help="by sneck.aio, on one loop")
    for name in ("socket", "address", "proxy", "cluster", "servers", "control", "redis"):
        parser.add_argument(f"--{name}")
    parser.add_argument("files", nargs="+", type=Path)
    return parser.parse_args()


def _report(run: Run, case: Case) -> bool:
    excuse = run.excuse(case)
    if excuse:
        print(f"excused {case.title}: {excuse}", flush=True)
        return True
    problem = run.case(case)
    print(f"failed {case.title}: {problem}" if problem else f"ok {case.title}", flush=True)
    return problem is None


def main() -> int:
    """Run, or list the titles."""
    given = _arguments()
    cases = [case for path in given.files for case in read_cases(path)]
    if given.titles:
        print("\n".join(case.title for case in cases))
        return 0
    run = Run(given)
    passed = [_report(run, case) for case in cases]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    raise SystemExit(main())
