"""Reads case files; the grammar stands in tests/corpus/README.md.

Steps stay text until they are run, because their words depend on variables. Bytes that came from
quotes or from a variable have no meaning; everything with a meaning is a word without them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b'"': b'"', b"\\": b"\\"}
QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"(?:\*(\d+))?')
ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.)", re.DOTALL)
VARIABLE = re.compile(rb"\$([a-z][a-z0-9_]*)")
KEY = re.compile(rb"[a-z_]+\Z")


class CaseError(Exception):
    """A case that cannot be understood; its text says why."""


@dataclass
class Word:
    """A word; `key` is set when it is an option, and `data` is its value then."""

    data: bytes = b""
    quoted: bool = False
    key: str | None = None

    def __eq__(self, other: object) -> bool:
        """Compare with a keyword, or with another word."""
        if isinstance(other, str):
            return not self.quoted and self.key is None and self.data == other.encode()
        return isinstance(other, Word) and (self.data, self.quoted) == (other.data, other.quoted)

    @property
    def whole(self) -> bytes:
        """The word as an argument, its key included."""
        return self.data if self.key is None else self.key.encode() + b"=" + self.data

    def __repr__(self) -> str:
        """Show the word as one would write it, cut to a readable length."""
        text = repr(self.whole[:80])[2:-1] or '""'
        return text + "..." * (len(self.whole) > 80)


@dataclass
class Case:
    """A title with what it needs and what it does; lines have their numbers."""

    path: Path
    title: str
    attributes: list[str] = field(default_factory=list)
    steps: list[tuple[int, str]] = field(default_factory=list)


def give_up(message: str) -> NoReturn:
    """End the run: the corpus cannot be understood."""
    print(message, file=sys.stderr)
    sys.exit(2)


def read_cases(path: Path) -> list[Case]:
    """Read one file."""
    cases: list[Case] = []
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line.startswith("== "):
            cases.append(Case(path, line[3:]))
        elif not cases or (line.startswith(":") and cases[-1].steps):
            give_up(f"{path}:{number}: outside of its place: {line}")
        elif line.startswith(":"):
            cases[-1].attributes.append(line[1:])
        else:
            cases[-1].steps.append((number, line))
    return cases


def _unescape(match: re.Match[bytes]) -> bytes:
    name = match[1]
    if name[:1] == b"x" and len(name) == 3:
        return bytes([int(name[1:], 16)])
    if name not in ESCAPES:
        raise CaseError("unknown escape")
    return ESCAPES[name]


def _read_word(line: bytes, at: int, variables: Mapping[str, bytes] | None) -> tuple[Word, int]:
    word = Word()
    while at < len(line) and line[at] not in b" \t":
        variable = VARIABLE.match(line, at) if variables is not None else None
        if line[at : at + 1] == b'"':
            quoted = QUOTED.match(line, at)
            if not quoted:
                raise CaseError("quote is not closed")
            word.data += ESCAPE.sub(_unescape, quoted[1]) * int(quoted[2] or 1)
            word.quoted, at = True, quoted.end()
        elif variables is not None and variable:
            if variable[1].decode() not in variables:
                raise CaseError("variable is not bound")
            word.data += variables[variable[1].decode()]
            word.quoted, at = True, variable.end()
        elif (
            line[at : at + 1] == b"="
            and not word.quoted
            and word.key is None
            and KEY.match(word.data)
        ):
            word.key, word.data, at = word.data.decode(), b"", at + 1
        else:
            word.data, at = word.data + line[at : at + 1], at + 1
    return word, at


def read_words(text: str, variables: Mapping[str, bytes]) -> list[Word]:
    """Cut a step into words; variables left of `->` are replaced. Raises CaseError."""
    line, at, words = text.encode(), 0, list[Word]()
    known: Mapping[str, bytes] | None = variables
    while at < len(line):
        if line[at] in b" \t":
            at += 1
        elif line[at : at + 1] == b"#":
            break
        else:
            word, at = _read_word(line, at, known)
            words.append(word)
            if word == "->":
                known = None
    return words
