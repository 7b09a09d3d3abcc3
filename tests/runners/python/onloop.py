"""The asyncio client with the face of the one that blocks, so that one actor does for both.

Every call is a task on one loop, which runs in a thread of its own and which all actors share. A
transaction's function, which blocks from step to step, is run beside the loop; what it does with
its transaction is a task again.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar, cast

import sneck
import sneck.aio

T = TypeVar("T")
FUNCTIONS = 64  # of transactions that are open at once, at most


class Loop:
    """A loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(FUNCTIONS))
        self._tasks = threading.local()
        self._serving: list[Future[None]] = []
        atexit.register(self._end)
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, from another thread."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _end(self) -> None:
        for served in self._serving:
            served.cancel()
        self.run(asyncio.sleep(0.1))  # a turn of the loop, or a few

    def run_in_task(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine to its end, in the one task that the calling thread has."""
        if not hasattr(self._tasks, "calls"):
            self._tasks.calls = asyncio.Queue()
            served = asyncio.run_coroutine_threadsafe(_serve(self._tasks.calls), self._loop)
            self._serving.append(served)
        answer: Future[T] = Future()
        self._loop.call_soon_threadsafe(self._tasks.calls.put_nowait, (function, answer))
        return answer.result()


async def _serve(calls: asyncio.Queue[tuple[Callable[[], Awaitable[Any]], Future[Any]]]) -> None:
    while True:
        function, answer = await calls.get()
        try:
            answer.set_result(await function())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that called
            answer.set_exception(error)


class Lock:
    """A sneck.aio.Lock; what asks nobody is its own."""

    def __init__(self, loop: Loop, lock: sneck.aio.Lock) -> None:
        self.lock = lock
        self._loop = loop

    def clone(self) -> Lock:
        """Wrap the clone, too."""
        return Lock(self._loop, self.lock.clone())

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.lock, name)
        if not asyncio.iscoroutinefunction(found):
            return found
        return lambda *args, **kwargs: self._loop.run(found(*args, **kwargs))


class RLock:
    """A sneck.aio.RLock; a thread that calls is a task, also to read an attribute."""

    def __init__(self, loop: Loop, lock: sneck.aio.RLock) -> None:
        self._lock = lock
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        async def read() -> Any:
            return getattr(self._lock, name)

        found = self._loop.run_in_task(read)
        if not asyncio.iscoroutinefunction(found):
            return found
        return lambda *args, **kwargs: self._loop.run_in_task(lambda: found(*args, **kwargs))


class Transaction:
    """A sneck.aio.Transaction, for a function that runs beside the loop."""

    def __init__(self, loop: Loop, tx: sneck.aio.Transaction) -> None:
        self._loop = loop
        self._tx = tx

    def execute(self, *args: Any) -> object:
        """Read."""
        return self._loop.run(self._tx.execute(*args))

    def queue(self, *args: Any) -> None:
        """Queue on the loop, as all."""
        self._loop.run(self._call(lambda: self._tx.queue(*args)))

    def watch(self, *keys: bytes) -> None:
        """Watch on the loop."""
        self._loop.run(self._call(lambda: self._tx.watch(*keys)))

    def abort(self) -> NoReturn:
        """Abort."""
        self._loop.run(self._call(self._tx.abort))
        raise AssertionError("it has returned")

    @property
    def conflicts(self) -> int:
        """How often the function was run before."""
        return self._tx.conflicts

    @staticmethod
    async def _call(function: Callable[[], T]) -> T:
        return function()


class Client:
    """A sneck.aio.Client."""

    def __init__(self, loop: Loop, client: sneck.aio.Client) -> None:
        self._loop = loop
        self._client = client

    def lock(self, name: bytes, **options: Any) -> Lock:
        """Make a lock."""
        return Lock(self._loop, self._client.lock(name, **options))

    def legacy_lock(self, name: bytes, **options: Any) -> Lock:
        """Make a timestamp lock."""
        return Lock(self._loop, self._client.legacy_lock(name, **options))

    def adopt(self, name: bytes, token: bytes, **options: Any) -> Lock:
        """Make a lock with a token."""
        return Lock(self._loop, self._client.adopt(name, token, **options))

    def rlock(self, name: bytes, **options: Any) -> RLock:
        """Make a re-entrant lock."""
        return RLock(self._loop, self._client.rlock(name, **options))

    def transaction(
        self, function: Callable[[Any], object], *keys: bytes, **options: Any
    ) -> object:
        """Run a function beside the loop."""

        async def run_beside(tx: sneck.aio.Transaction) -> None:
            await asyncio.to_thread(function, Transaction(self._loop, tx))

        return self._loop.run(self._client.transaction(run_beside, *keys, **_unwrapped(options)))

    def update(self, key: bytes, function: Callable[[Any], Any], **options: Any) -> object:
        """Run a function that is a coroutine function every other time."""

        def change(old: bytes | None) -> Awaitable[Any]:
            return asyncio.sleep(0, function(old))

        either = change if len(key) % 2 else function
        return self._loop.run(self._client.update(key, either, **_unwrapped(options)))

    def close(self) -> None:
        """Close it."""
        self._loop.run(self._client.aclose())

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if not asyncio.iscoroutinefunction(found):
            return found
        return lambda *args, **kwargs: self._loop.run(found(*args, **kwargs))


def _unwrapped(options: dict[str, Any]) -> dict[str, Any]:
    guard = options.get("guard")
    return {**options, "guard": guard.lock} if guard is not None else options


def connector() -> Callable[..., sneck.Client]:
    """Start a loop, and give what makes clients on it."""
    loop = Loop()

    def connect(address: str | list[str], **options: Any) -> sneck.Client:
        make: Callable[..., sneck.aio.Client] = (
            sneck.aio.quorum if isinstance(address, list) else sneck.aio.connect
        )
        return cast(sneck.Client, Client(loop, make(address, **options)))

    return connect
