"""Coroutine functions that run under a lock whose name comes from their arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar

from sneck._decorator import naming
from sneck.aio._lock import Lock

P = ParamSpec("P")
R = TypeVar("R")


class Decorator(Protocol):
    """What locked() gives: it keeps a function's signature."""

    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Callable[P, Coroutine[Any, Any, R]]:
        """Make `function` run under the lock."""


def decorator(name: str, make_lock: Callable[[str], Lock]) -> Decorator:
    """Make the decorator behind locked(). Raises TypeError for a name not a str."""
    if not isinstance(name, str):
        raise TypeError(f"the name of locked() must be str, not {type(name).__name__}")

    def decorate(
        function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Callable[P, Coroutine[Any, Any, R]]:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"locked() of sneck.aio needs a coroutine function, not {function!r}")
        name_of = naming(name, function)

        @functools.wraps(function)
        async def under_lock(*args: P.args, **kwargs: P.kwargs) -> R:
            async with make_lock(name_of(*args, **kwargs)):
                result: R = await function(*args, **kwargs)
                return result

        return under_lock

    return decorate
