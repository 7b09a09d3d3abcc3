"""An owner of re-entrant locks: to Python that is a thread, so its calls are all made by one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import outcome

Outcome = outcome.Outcome


class Owner:
    """A thread that makes one call at a time."""

    def __init__(self) -> None:
        """Begin it."""
        self._calls: queue.SimpleQueue[Callable[[], Outcome] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def do(self, call: Callable[[], Outcome]) -> Outcome:
        """Make a call and wait for it; what it raises is raised here."""
        self._calls.put(call)
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def end(self) -> None:
        """End the thread, which is idle."""
        self._calls.put(None)

    def _run(self) -> None:
        while call := self._calls.get():
            self._answers.put(_answer(call))


def _answer(call: Callable[[], Outcome]) -> Outcome | BaseException:
    try:
        return call()
    except BaseException as error:  # noqa: BLE001 - do() raises it again
        return error
