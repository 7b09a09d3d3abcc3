"""The exceptions: one class for each outcome that the core's table names."""

from __future__ import annotations

import builtins
import pickle
import re
from pathlib import Path

import pytest

import sneck

TABLE = Path(__file__).parents[2] / "core/src/status.def"
CLASSES = sorted(
    set(re.findall(r"^SNECK_STATUS\(\w+, -\d+, (\w+),", TABLE.read_text(), re.MULTILINE))
)
ALSO_BUILTIN: dict[str, type[BaseException]] = {
    "LockTimeout": TimeoutError,
    "ConnectionError": builtins.ConnectionError,
    "Interrupted": InterruptedError,
}


@pytest.mark.parametrize("which", CLASSES)
def test_every_outcome_has_a_class(which: str) -> None:
    raised = getattr(sneck, which, None)
    if raised is None:
        assert which in ("ValueError", "MemoryError")
        return
    assert issubclass(raised, sneck.Error)
    assert issubclass(raised, ALSO_BUILTIN.get(which, sneck.Error))
    assert raised.__module__ == "sneck"
    assert raised.__doc__


def test_errors_can_be_pickled() -> None:
    error = sneck.ServerError("READONLY you are")
    error.code = "READONLY"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is sneck.ServerError
    assert (str(again), again.code) == (str(error), "READONLY")


def test_what_an_error_does_not_tell_is_none() -> None:
    error = sneck.ServerError("ERR")
    assert (error.code, error.index, error.results) == ("", None, None)
    conflict = sneck.Conflict("others")
    assert (conflict.attempts, conflict.waited, conflict.keys) == (0, 0.0, ())


def test_a_server_error_tells_its_code(client: sneck.Client, name: str) -> None:
    client.execute("LPUSH", name, "x")
    for attempt in (
        client.lock(name).acquire,
        client.lock(name).holder,
        client.lock(name).locked,
        lambda: client.execute("GET", name),
    ):
        with pytest.raises(sneck.ServerError) as caught:
            attempt()
        assert caught.value.code == "WRONGTYPE"


def test_a_server_that_is_not_there_is_a_connection_error(tmp_path: Path) -> None:
    client = sneck.connect(f"unix://{tmp_path}/nothing")
    for attempt in (
        client.lock("x").acquire,
        client.lock("x").locked,
        client.lock("x", wait=0).__enter__,
        lambda: client.execute("PING"),
    ):
        with pytest.raises(builtins.ConnectionError) as caught:
            attempt()
        assert type(caught.value) is sneck.ConnectionError
        assert "nothing" in str(caught.value)


def test_bytes_that_are_no_text_can_be_in_a_message(client: sneck.Client) -> None:
    with pytest.raises(sneck.NotOwned) as caught:
        client.lock(b"\xff\n").release()
    assert str(caught.value).isprintable()
