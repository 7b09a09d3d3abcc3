"""Functions that run under a lock whose name comes from their arguments."""

from __future__ import annotations

import functools
import inspect
import string
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from sneck._lock import Lock

P = ParamSpec("P")
R = TypeVar("R")


class Decorator(Protocol):
    """What locked() gives: it keeps a function's signature."""

    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]:
        """Make `function` run under the lock."""


def decorator(name: str, make_lock: Callable[[str], Lock]) -> Decorator:
    """Make the decorator behind locked(). Raises TypeError for a name not a str."""
    if not isinstance(name, str):
        raise TypeError(f"the name of locked() must be str, not {type(name).__name__}")

    def decorate(function: Callable[P, R], /) -> Callable[P, R]:
        _refuse_deferred(function)
        name_of = naming(name, function)

        @functools.wraps(function)
        def under_lock(*args: P.args, **kwargs: P.kwargs) -> R:
            with make_lock(name_of(*args, **kwargs)):
                return function(*args, **kwargs)

        return under_lock

    return decorate


def _refuse_deferred(function: Callable[..., object]) -> None:
    """Refuse what runs after its call has returned, when the lock is free again."""
    deferred = (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    )
    if any(is_deferred(function) for is_deferred in deferred):
        raise TypeError(
            f"locked() cannot decorate {function!r}: a coroutine or generator "
            "runs after its call; use `with lock:` inside of it"
        )


def naming(name: str, function: Callable[P, object]) -> Callable[P, str]:
    """Say how a call's arguments make the name. Raises ValueError for a field without one."""
    signature = inspect.signature(function)
    _check_fields(name, signature)

    def name_of(*args: P.args, **kwargs: P.kwargs) -> str:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return name.format(**bound.arguments)

    return name_of


def _check_fields(name: str, signature: inspect.Signature) -> None:
    """Refuse a name with a field that no call can fill. Raises ValueError."""
    for _, field, _, _ in string.Formatter().parse(name):
        if field is None:
            continue
        parameter = field.partition(".")[0].partition("[")[0]
        if parameter not in signature.parameters:
            raise ValueError(
                f"the name {name!r} of locked() has the field {{{field}}}, "
                f"but the function takes {', '.join(signature.parameters) or 'nothing'}"
            )
