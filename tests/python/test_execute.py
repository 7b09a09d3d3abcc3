"""execute(): Python's values to a command, and its reply back."""

from __future__ import annotations

from typing import Any

import pytest

import sneck


def test_replies_become_values(client: sneck.Client, name: str) -> None:
    assert client.execute("PING") == b"PONG"
    assert client.execute("GET", name) is None
    assert client.execute("SET", name, b"\x00\xff") == b"OK"
    assert client.execute("GET", name) == b"\x00\xff"
    assert client.execute("STRLEN", name) == 2
    assert client.execute("ECHO", "") == b""
    assert client.execute("EVAL", "return {}", 0) == []
    assert client.execute("EVAL", "return {-1, 'a', {{'b'}}, false}", 0) == [
        -1,
        b"a",
        [[b"b"]],
        None,
    ]


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("ü", "ü".encode()),
        (b"\x00", b"\x00"),
        (0, b"0"),
        (-(2**70), str(-(2**70)).encode()),
        (0.1, b"0.1"),
        (1e300, b"1e+300"),
    ],
)
def test_arguments_are_sent(client: sneck.Client, value: Any, sent: bytes) -> None:
    assert client.execute("ECHO", value) == sent


@pytest.mark.parametrize("value", [None, True, bytearray(b"x"), memoryview(b"x"), [], object()])
def test_other_arguments_are_refused(client: sneck.Client, value: Any) -> None:
    with pytest.raises(TypeError, match="execute"):
        client.execute("ECHO", value)


def test_a_command_is_needed(client: sneck.Client) -> None:
    with pytest.raises(TypeError, match="command"):
        client.execute()


def test_many_arguments_are_sent(client: sneck.Client, name: str) -> None:
    items = [*range(1000), *(f"t{number}" for number in range(1000)), 0.5]
    assert client.execute("RPUSH", name, *items) == len(items)
    expected = [str(item).encode() for item in items]
    assert client.execute("LRANGE", name, 0, -1) == expected
    with pytest.raises(TypeError):
        client.execute("RPUSH", name, *items, None)  # type: ignore[arg-type]


def test_an_error_inside_of_a_list_is_a_value(client: sneck.Client) -> None:
    script = "return {1, redis.error_reply('OOPS it failed'), {redis.error_reply('BAD too')}}"
    reply: Any = client.execute("EVAL", script, 0)
    assert reply[0] == 1
    assert isinstance(reply[1], sneck.ServerError)
    assert (str(reply[1]), reply[1].code) == ("OOPS it failed", "OOPS")
    assert reply[2][0].code == "BAD"


def test_an_error_reply_is_raised(client: sneck.Client) -> None:
    with pytest.raises(sneck.ServerError) as caught:
        client.execute("EVAL", "return redis.error_reply('OOPS it failed')", 0)
    assert caught.value.code == "OOPS"
    assert "it failed" in str(caught.value)


@pytest.mark.parametrize("command", ["MULTI", "SELECT", "SUBSCRIBE", "QUIT"])
def test_commands_that_change_the_connection_are_refused(
    client: sneck.Client, command: str
) -> None:
    with pytest.raises(ValueError, match=command):
        client.execute(command, "1")
