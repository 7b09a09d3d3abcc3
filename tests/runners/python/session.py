"""A transaction that is left open from step to step: its function does what the steps say.

client.transaction() runs in a thread of its own. Every step of the actor is handed to the function
and answered by it, or by what comes after it: the function's next run, or the transaction's end.
What a step raises ends the function.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import outcome
from casefile import CaseError

import sneck

LIMIT = 30.0  # seconds; what a step gets to end

Outcome = outcome.Outcome
Step = Callable[[], Outcome]
Function = Callable[[sneck.Transaction], None]
Transact = Callable[[Function], Outcome]  # tells the failures of the library as outcomes


class Committed(BaseException):
    """Raised by a step that ends the function: its writes are to be committed."""


class Raised(BaseException):
    """An error of the function's own."""


class Session:
    """One transaction; `tx` is what its function was given for the present run."""

    def __init__(self, transact: Transact) -> None:
        """Begin it at once; `transact` is given the function."""
        self.tx: sneck.Transaction
        self.open = True
        self._transact = transact
        self._runs = 0
        self._steps: queue.SimpleQueue[Step] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def do(self, step: Step) -> Outcome:
        """Let the function do a step, and tell what it led to."""
        self._steps.put(step)
        return self.answer()

    def answer(self) -> Outcome:
        """Tell what the step under way led to; the first one is to begin."""
        try:
            answer = self._answers.get(timeout=LIMIT)
        except queue.Empty:
            raise CaseError("the transaction does not go on") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _run(self) -> None:
        answer: Outcome | BaseException
        try:
            answer = self._transact(self._function)
        except Raised:
            answer = outcome.OK
        except BaseException as error:  # noqa: BLE001 - answer() raises it again
            answer = error
        self.open = False
        self._answers.put(answer)

    def _function(self, tx: sneck.Transaction) -> None:
        self.tx = tx
        self._answers.put(outcome.AGAIN if self._runs else outcome.OK)
        self._runs += 1
        while True:
            step = self._steps.get()
            try:
                answer = step()
            except Committed:
                return
            self._answers.put(answer)
