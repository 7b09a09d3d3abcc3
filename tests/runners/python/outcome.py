"""What a step led to, as words, and whether a case expected it.

What came from the library as bytes is a quoted word, and never mistaken for `nil`, `[` or `]`,
which are words with a meaning.
"""

from __future__ import annotations

import re

from casefile import CaseError, Word

import sneck

NAMES = {
    sneck.NotOwned: "NOT_OWNER",
    sneck.OutcomeUnknown: "UNKNOWN",
    sneck.ConnectionError: "CONNECTION",
    sneck.ServerError: "SERVER",
    sneck.ProtocolError: "PROTOCOL",
    sneck.Conflict: "CONFLICT",
    sneck.QuorumImpossible: "QUORUM",
    ValueError: "INVALID",
}
CODES = {*NAMES.values(), "BUSY", "TIMEOUT", "INTERRUPTED", "NO_MEMORY"}
RANGE = re.compile(rb"(-?\d+)\.\.(-?\d+)\Z")
VARIABLE = re.compile(rb"\$([a-z][a-z0-9_]*)\Z")

Outcome = list[Word]


def keyword(text: str) -> Word:
    """Make a word with a meaning."""
    return Word(text.encode())


OK, NIL, PENDING = [keyword("ok")], [keyword("nil")], [keyword("...")]
AGAIN = [keyword("again")]


def value(data: bytes | str | int) -> Word:
    """Make a word of plain bytes."""
    return Word(data if isinstance(data, bytes) else str(data).encode(), quoted=True)


def ok(data: bytes | str | int) -> Outcome:
    """Succeed with one value."""
    return [*OK, value(data)]


def yes(truth: bool) -> Outcome:
    """Succeed with yes or no."""
    return ok("yes" if truth else "no")


def _reply_words(reply: object) -> Outcome:
    if reply is None:
        return NIL
    if isinstance(reply, list):
        return [
            keyword("["),
            *(word for item in reply for word in _reply_words(item)),
            keyword("]"),
        ]
    if isinstance(reply, sneck.ServerError):  # inside of an array
        return [value(str(reply))]
    assert isinstance(reply, bytes | int)
    return [value(reply)]


def labels(given: list[sneck.Waiter]) -> Outcome:
    """Tell who waits."""
    return [*OK, *_reply_words([waiter.label.encode() for waiter in given])]


def reply(given: object) -> Outcome:
    """Tell the reply of a raw command."""
    return NIL if given is None else [*OK, *_reply_words(given)]


def fail(code: str) -> Outcome:
    """Fail with the name of a status."""
    return [keyword("fail"), keyword(code)]


def error(raised: BaseException) -> Outcome:
    """Tell an exception by its status; raises again what the library has no status for."""
    for kind, name in NAMES.items():
        if isinstance(raised, kind):
            word = [keyword(raised.code)] if isinstance(raised, sneck.ServerError) else []
            return [*fail(name), *word]
    raise raised


def check(expected: Outcome) -> None:
    """Raise CaseError unless a case may expect this."""
    if not expected:
        raise CaseError("no outcome")
    head = expected[0]
    if head == "ok":
        _check_values(expected[1:])
    elif head == "nil" or head == "again" or head == "...":
        if len(expected) > 1:
            raise CaseError("more words than the outcome has")
    elif head == "fail":
        if len(expected) not in (2, 3) or expected[1].data.decode() not in CODES:
            raise CaseError("fail is not followed by a known code")
    else:
        raise CaseError("unknown outcome")


def _check_values(values: Outcome) -> None:
    for at, word in enumerate(values):
        if word == "in" and not (at + 1 < len(values) and RANGE.match(values[at + 1].data)):
            raise CaseError("in is not followed by A..B")
        if word == "above" and not (at + 1 < len(values) and _is_variable(values[at + 1])):
            raise CaseError("above is not followed by a variable")
        if word.data[:1] == b"$" and not word.quoted and not _is_variable(word):
            raise CaseError("not the name of a variable")


def _is_variable(word: Word) -> bool:
    return not word.quoted and VARIABLE.match(word.data) is not None


def _is_marker(word: Word) -> bool:
    return word == "nil" or word == "[" or word == "]"


def _matches_range(limits: Word, got: Word) -> bool:
    match = RANGE.match(limits.data)
    if not match or not re.fullmatch(rb"-?\d+", got.data):
        return False
    return int(match[1]) <= int(got.data) <= int(match[2])


def _matches_above(variable: Word, got: Word, variables: dict[str, bytes]) -> bool:
    """Compare with the number in a variable."""
    low = variables.get(variable.data[1:].decode(), b"")
    numbers = [re.fullmatch(rb"-?\d+", text) for text in (low, got.data)]
    return all(numbers) and int(got.data) > int(low)


def _matches_word(expected: Word, got: Word, variables: dict[str, bytes]) -> bool:
    if expected == "any":
        return True
    if not expected.quoted and expected.data[:1] == b"$":
        return (
            not _is_marker(got)
            and variables.setdefault(expected.data[1:].decode(), got.data) == got.data
        )
    return _is_marker(expected) == _is_marker(got) and expected.whole == got.data


def matches(expected: Outcome, got: Outcome, variables: dict[str, bytes]) -> bool:
    """Compare, and bind the variables that are new if all is as expected."""
    left, rest, bound = list(expected), list(got), dict(variables)
    while left and rest:
        word = left.pop(0)
        first = len(left) == len(expected) - 1
        if word == "in" and not first:
            same = _matches_range(left.pop(0), rest.pop(0))
        elif word == "above" and not first:
            same = _matches_above(left.pop(0), rest.pop(0), bound)
        else:
            same = _matches_word(word, rest.pop(0), bound)
        if not same:
            return False
    says_no_more = (expected[0] == "ok" and len(expected) == 1) or (
        expected[0] == "fail" and len(expected) == 2
    )
    if left or (rest and not says_no_more):
        return False
    variables.update(bound)
    return True
