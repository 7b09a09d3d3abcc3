"""Numbers are stored as numbers, whatever their type calls itself, by both clients."""

from __future__ import annotations

import asyncio
import enum
from typing import Any

import pytest
from aio import run_on

import sneck
import sneck.aio
from sneck.testing import Server


class Color(enum.IntEnum):
    """Whose repr is no number."""

    RED = 1


class Real(float):
    """As numpy's float64 is."""

    def __repr__(self) -> str:
        """Be no number."""
        return f"Real({float.__repr__(self)})"

    __str__ = __repr__


class Whole(int):
    """An int that tells otherwise."""

    def __repr__(self) -> str:
        """Be no number."""
        return "Whole()"

    __str__ = __repr__


VALUES: list[tuple[Any, bytes]] = [
    (Color.RED, b"1"),
    (Whole(-7), b"-7"),
    (Real(1.5), b"1.5"),
    (Real("inf"), b"inf"),
    (2**70, b"1180591620717411303424"),
    (0.1, b"0.1"),
    (1e300, b"1e+300"),
]


@pytest.mark.parametrize(("value", "stored"), VALUES)
def test_numbers_of_all_types(client: sneck.Client, name: str, value: float, stored: bytes) -> None:
    assert client.execute("ECHO", value) == stored
    assert client.update(name, lambda _: value) == stored
    assert client.execute("GET", name) == stored
    assert client.compare_and_set(name, value, value)
    assert client.transaction(lambda tx: tx.queue("ECHO", value)) == [stored]
    assert client.compare_and_delete(name, value)


@pytest.mark.parametrize(("value", "stored"), VALUES)
def test_numbers_of_all_types_on_a_loop(
    server: Server, name: str, value: float, stored: bytes
) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url) as client:
            assert await client.execute("ECHO", value) == stored
            assert await client.update(name, lambda _: value) == stored
            assert await client.execute("GET", name) == stored
            assert await client.compare_and_set(name, value, value)
            assert await client.transaction(lambda tx: tx.queue("ECHO", value)) == [stored]
            assert await client.compare_and_delete(name, value)

    run_on(asyncio.new_event_loop, main)


@pytest.mark.parametrize("value", [True, [], object(), 1j])
def test_other_values_are_refused(
    client: sneck.Client, server: Server, name: str, value: Any
) -> None:
    async def main() -> None:
        async with sneck.aio.connect(server.url) as aclient:
            with pytest.raises(TypeError, match="int, float"):
                await aclient.update(name, lambda _: value)
            with pytest.raises(TypeError, match="int, float"):
                await aclient.compare_and_set(name, value, None)

    with pytest.raises(TypeError, match="int, float"):
        client.update(name, lambda _: value)
    run_on(asyncio.new_event_loop, main)
    assert client.execute("EXISTS", name) == 0
