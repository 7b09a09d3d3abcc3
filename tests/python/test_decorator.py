"""locked(): functions that run under a lock named by their arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import sneck


def test_the_name_comes_from_the_arguments(client: sneck.Client, name: str) -> None:
    @client.locked(name + ":{id}:{where}:{rest}:{options[x]}", ttl=60)
    def held(id: int, /, where: str = "here", *rest: int, **options: str) -> Any:  # noqa: A002
        return client.execute("KEYS", name + "*")

    assert held(42, "there", 1, x="y") == [f"{name}:42:there:(1,):y".encode()]
    assert held(7, x="z") == [f"{name}:7:here:():z".encode()]
    assert client.execute("KEYS", name + "*") == []


def test_it_works_on_methods(client: sneck.Client, name: str) -> None:
    class Report:
        def __init__(self, number: int) -> None:
            self.number = number

        @client.locked(name + ":{self.number}")
        def build(self) -> Any:
            return client.execute("EXISTS", f"{name}:{self.number}")

    assert Report(42).build() == 1


def test_the_function_keeps_its_looks(client: sneck.Client) -> None:
    def build(number: int, *, fast: bool = False) -> str:
        """Build it."""
        return f"{number} {fast}"

    locked = client.locked("x:{number}")(build)
    assert (locked.__name__, locked.__doc__) == ("build", "Build it.")
    assert inspect.signature(locked) == inspect.signature(build)
    assert locked(1, fast=True) == "1 True"


def test_each_call_has_a_lock_of_its_own(client: sneck.Client, name: str) -> None:
    @client.locked(name + ":{depth}", wait=0)
    def dive(depth: int) -> int:
        return depth if depth == 0 else dive(depth - 1)

    assert dive(3) == 0


def test_a_call_whose_wait_ended_does_not_run(client: sneck.Client, name: str) -> None:
    calls = []

    @client.locked(name, wait=0)
    def work() -> None:
        calls.append(1)

    with client.lock(name), pytest.raises(sneck.LockTimeout):
        work()
    assert calls == []
    work()
    assert calls == [1]


def test_what_a_function_raises_goes_on(client: sneck.Client, name: str) -> None:
    @client.locked(name)
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        fail()
    assert client.execute("EXISTS", name) == 0


def test_wrong_arguments_are_the_usual_error(client: sneck.Client) -> None:
    @client.locked("x:{number}")
    def work(number: int) -> None: ...

    with pytest.raises(TypeError, match="number"):
        work()  # type: ignore[call-arg]


async def coroutine() -> None: ...


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    "function", [coroutine, generator, async_generator, functools.partial(coroutine)]
)
def test_what_runs_after_its_call_is_refused(client: sneck.Client, function: Any) -> None:
    with pytest.raises(TypeError, match="coroutine or generator"):
        client.locked("x")(function)


def test_a_name_that_no_call_can_fill_is_refused(client: sneck.Client) -> None:
    def work(number: int) -> None: ...

    for wrong in ("x:{id}", "x:{}", "x:{0}", "x:{id.number}", "x:{id[0]}"):
        with pytest.raises(ValueError, match="field"):
            client.locked(wrong)(work)


def test_a_name_is_a_str(client: sneck.Client) -> None:
    with pytest.raises(TypeError, match="str"):
        client.locked(b"x")  # type: ignore[arg-type]


def test_braces_can_be_escaped(client: sneck.Client, name: str) -> None:
    @client.locked(name + ":{{tag}}")
    def held() -> Any:
        return client.execute("KEYS", name + "*")

    assert held() == [f"{name}:{{tag}}".encode()]
