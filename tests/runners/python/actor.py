"""The verbs of a case, done with a Python client of the actor's own.

An actor has at most one call under way, in a thread of its own, and touches no lock object of it
before it has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import outcome
from casefile import CaseError, Word
from owner import Owner
from session import Committed, Function, Raised, Session

import sneck

LEAVE = 0.08  # seconds; how long a call that should wait is watched
LIMIT = 30.0  # seconds; what a call gets to end
AGAIN = 0.005  # seconds; between two looks at who waits

Outcome = outcome.Outcome


class Call:
    """A call under way in a thread."""

    def __init__(self, function: Callable[[], Outcome]) -> None:
        self._function = function
        self._result: Outcome = []
        self._surprise: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:  # noqa: BLE001 - wait() raises it again
            self._surprise = error

    def wait(self, limit: float) -> Outcome | None:
        """Give the call time to end; None when it has not."""
        self._thread.join(limit)
        if self._thread.is_alive():
            return None
        if self._surprise is not None:
            raise self._surprise
        return self._result


def seconds(milliseconds: bytes) -> float:
    """Convert a time of a case."""
    return int(milliseconds) / 1000


def connect(address: str | list[str], **options: Any) -> sneck.Client:
    """Make a client of one server, or of several."""
    make: Callable[..., sneck.Client] = sneck.quorum if isinstance(address, list) else sneck.connect
    return make(address, **options)


CLIENT_OPTIONS: dict[str, Callable[[bytes], object]] = {
    "timeout": seconds,
    "connect_timeout": seconds,
    "prefix": bytes,
    "label": bytes.decode,
    "client_name": bytes.decode,
}


def flag(text: bytes) -> bool:
    """Read an option that is yes, or not there."""
    if text != b"yes":
        raise CaseError("a flag is yes, or not there")
    return True


LOCK_OPTIONS: dict[str, Callable[[bytes], object]] = {
    "ttl": seconds,
    "label": bytes.decode,
    "fair": flag,
    "poll": seconds,
    "renew": flag,
    "fence": flag,
    "max_hold": seconds,
}

# of timestamp locks, and whether they write milliseconds
KINDS = {b"timestamp": False, b"timestamp_ms": True}


def limit(text: bytes) -> float | None:
    """Read a wait; None when it has no end."""
    return None if text == b"forever" else seconds(text)


# the verbs of an open transaction; begin opens one
TX_VERBS = {"read", "queue", "watch", "conflicts", "commit", "abort", "raise"}
ONCE = {"begin", "..."} | TX_VERBS  # what `until` does not repeat
TX_OPTIONS: dict[str, Callable[[bytes], object]] = {"attempts": int, "wait": limit}


def add(old: bytes | None, number: bytes) -> int:
    """Add to a number; there is none yet: to 0."""
    return int(old or 0) + int(number)


def append(old: bytes | None, text: bytes) -> bytes:
    """Add to a text."""
    return (old or b"") + text


# what the function of an update makes of the old value
CHANGES: dict[str, Callable[[bytes | None, bytes], bytes | int | sneck.Keep | None]] = {
    "add": add,
    "append": append,
    "delete": lambda old, given: None if flag(given) else old,
    "keep": lambda old, given: sneck.KEEP if flag(given) else old,
}


def value(word: Word) -> bytes | None:
    """Read a value; None for the bare word `nil`."""
    return None if word == "nil" else word.data


# what an exception tells, beside its message
FAILURE_FIELDS: dict[str, Callable[[Any], Outcome]] = {
    "attempts": lambda error: outcome.ok(error.attempts),
    "waited": lambda error: outcome.ok(round(error.waited * 1000)),
    "keys": lambda error: outcome.reply(list(error.keys)),
    "index": lambda error: outcome.ok(error.index),
    "results": lambda error: outcome.reply(error.results),
}


class Arguments:
    """The words behind a verb: all of them, or places by position and options by key."""

    def __init__(self, words: list[Word]) -> None:
        self.words = [word.whole for word in words]
        self.values = [word for word in words if word.key is None]
        self.places = [word.data for word in self.values]
        self.options = {word.key: word.data for word in words if word.key is not None}

    def check(self, places: int, *keys: str) -> None:
        """Raise CaseError unless there are so many places, and known options only."""
        if not self.options.keys() <= set(keys):
            raise CaseError("unknown option")
        if len(self.places) != places:
            raise CaseError("wrong number of arguments")

    def read(self, known: Mapping[str, Callable[[bytes], object]]) -> dict[str, object]:
        """Read those of the known options that are there."""
        return {key: read(self.options[key]) for key, read in known.items() if key in self.options}

    def seconds(self, key: str) -> float | None:
        """Read a time; None when it is not there."""
        return seconds(self.options[key]) if key in self.options else None


class Actor:
    """A client with one lock object per name; it is made at its first use."""

    def __init__(
        self,
        sockets: Mapping[str, str],
        make: Callable[..., sneck.Client] = connect,
        servers: list[str] | None = None,
    ) -> None:
        """Prepare it; `servers` are the addresses of a quorum, if its client is to be of one."""
        self._default = servers or "unix://" + sockets["socket"]
        self._proxy = "unix://" + sockets["proxy"]
        self._make = make
        self._client: sneck.Client | None = None
        self._locks: dict[bytes, sneck.Lock] = {}
        self._rlocks: dict[bytes, sneck.RLock] = {}
        self._owners: dict[int, Owner] = {}
        self._waiting: Call | None = None
        self._session: Session | None = None
        self._failure: Exception | None = None  # the last one

    @property
    def waits(self) -> bool:
        """Whether a step left a call waiting, or a transaction open."""
        return self._waiting is not None or self._session is not None

    def run(self, verb: str, words: list[Word], *, leave: bool) -> Outcome:
        """Do a verb. `leave`: it is expected to wait, so give it a moment only."""
        if self._waiting is not None:
            raise CaseError("the actor is still waiting")
        if leave and verb not in ("acquire", "try_lock"):
            raise CaseError("only an acquire or a try may be left waiting")
        arguments = Arguments(words)
        if leave and "owner" in arguments.options:
            raise CaseError("an owner's acquire is not left waiting")
        if verb == "begin":
            return self._begin(arguments)
        function = getattr(self, f"_verb_{verb}", None)
        if function is None:
            raise CaseError("unknown verb")
        if verb in TX_VERBS:
            self._tx()
            return self._do(lambda: function(arguments))
        return self._await(lambda: self._guarded(lambda: function(arguments)), leave=leave)

    def resume(self, *, leave: bool) -> Outcome:
        """Give the call left waiting its time to end."""
        call, self._waiting = self._waiting, None
        if call is None:
            raise CaseError("the actor has no call that waits")
        result = call.wait(LEAVE if leave else LIMIT)
        if result is None:
            self._waiting = call
            return outcome.PENDING
        return result

    def close(self) -> bool:
        """Close all. False: a call is still under way and does not end."""
        if self._waiting is not None and self._waiting.wait(LIMIT) is None:
            return False
        if self._session is not None:
            self._do(self._abort)
        for owner in self._owners.values():
            owner.end()
        if self._client is not None:
            self._client.close()
        return True

    def connect(self, address: str | list[str], **options: object) -> None:
        """Make the client."""
        self._client = self._make(address, **options)

    def _guarded(self, function: Callable[[], Outcome]) -> Outcome:
        """Call, and tell an exception as an outcome."""
        try:
            return function()
        except (sneck.Error, ValueError) as error:
            self._failure = error
            return outcome.error(error)

    def _await(self, function: Callable[[], Outcome], *, leave: bool) -> Outcome:
        if self._session is not None and not leave:
            return self._do(function)
        self._waiting = Call(function)
        return self.resume(leave=leave)

    def _do(self, step: Callable[[], Outcome] | None) -> Outcome:
        """Let the function of the open transaction do a step; None: it has just begun."""
        assert self._session is not None
        try:
            return self._session.do(step) if step else self._session.answer()
        finally:
            if not self._session.open:
                self._session = None

    def _abort(self) -> Outcome:
        self._tx().abort()

    def _tx(self) -> sneck.Transaction:
        if self._session is None:
            raise CaseError("the actor is in no transaction")
        return self._session.tx

    def _made(self) -> sneck.Client:
        if self._client is None:
            self.connect(self._default)
            assert self._client is not None
        return self._client

    def _lock(self, name: bytes) -> sneck.Lock:
        if name not in self._locks:
            self._locks[name] = self._made().lock(name)
        return self._locks[name]

    def _legacy_lock(self, name: bytes, kind: bytes, options: dict[str, Any]) -> sneck.Lock:
        if kind not in KINDS:
            raise CaseError("a kind is timestamp, timestamp_ms, or not there")
        timeout = options.pop("ttl", 10.0)
        return self._made().legacy_lock(name, timeout=timeout, milliseconds=KINDS[kind], **options)

    def _owner(self, arguments: Arguments) -> sneck.Lock:
        """Find the actor's lock object, or adopt one for this step only."""
        (name,) = arguments.places
        token = arguments.options.get("token")
        return self._lock(name) if token is None else self._made().adopt(name, token)

    def _as_owner(self, given: Arguments, function: Callable[[sneck.RLock], Outcome]) -> Outcome:
        """Call for one owner of the actor's re-entrant lock: in a thread of its own."""
        (name,) = given.places
        options = given.read(LOCK_OPTIONS)
        if options or name not in self._rlocks:
            self._rlocks[name] = self._made().rlock(name, **options)  # type: ignore[arg-type]
        number = int(given.options["owner"])
        owner = self._owners.setdefault(number, Owner())
        return owner.do(lambda: function(self._rlocks[name]))

    def _verb_connect(self, given: Arguments) -> Outcome:
        given.check(0, "url", "through", *CLIENT_OPTIONS)
        if self._client is not None:
            raise CaseError("connect is the first step of an actor")
        through = given.options.get("through")
        url = given.options.get("url")
        if through not in (None, b"proxy") or (through and url is not None):
            raise CaseError("through=proxy stands alone")
        if isinstance(self._default, list) and (through or url is not None):
            raise CaseError("where there are several servers, a client is a quorum of all of them")
        address = url.decode() if url is not None else self._proxy if through else self._default
        self.connect(address, **given.read(CLIENT_OPTIONS))
        return outcome.OK

    def _verb_acquire(self, given: Arguments) -> Outcome:
        given.check(1, *LOCK_OPTIONS, "kind", "wait", "owner")
        if "owner" in given.options:
            if "kind" in given.options:
                raise CaseError("a timestamp lock has no owner")
            return self._as_owner(given, lambda lock: self._acquire(given, lock))
        (name,) = given.places
        options = given.read(LOCK_OPTIONS)
        if "kind" in given.options:
            self._locks[name] = self._legacy_lock(name, given.options["kind"], options)
        elif options:
            self._locks[name] = self._made().lock(name, **options)  # type: ignore[arg-type]
        return self._acquire(given, self._lock(name))

    @staticmethod
    def _acquire(given: Arguments, lock: sneck.Lock) -> Outcome:
        wait = given.options.get("wait", b"0")
        if wait == b"forever":
            held = lock.acquire()
        elif wait == b"0":
            held = lock.acquire(blocking=False)
        else:
            held = lock.acquire(timeout=seconds(wait))
        if not held:
            return outcome.fail("BUSY" if wait == b"0" else "TIMEOUT")
        assert lock.token is not None
        return outcome.ok(lock.token)

    def _verb_release(self, given: Arguments) -> Outcome:
        given.check(1, "owner" if "owner" in given.options else "token")
        if "owner" in given.options:
            return self._as_owner(given, self._release)
        return self._release(self._owner(given))

    @staticmethod
    def _release(lock: sneck.Lock) -> Outcome:
        lock.release()
        return outcome.OK

    def _verb_extend(self, given: Arguments) -> Outcome:
        given.check(1, "ttl", "token")
        self._owner(given).extend(ttl=given.seconds("ttl"))
        return outcome.OK

    def _verb_adopt(self, given: Arguments) -> Outcome:
        given.check(2, "ttl")
        name, token = given.places
        ttl = given.seconds("ttl")
        client = self._made()
        self._locks[name] = (
            client.adopt(name, token) if ttl is None else client.adopt(name, token, ttl=ttl)
        )
        return outcome.OK

    def _verb_remaining(self, given: Arguments) -> Outcome:
        given.check(1)
        return outcome.ok(round(self._lock(given.places[0]).remaining() * 1000))

    def _verb_owned(self, given: Arguments) -> Outcome:
        given.check(1, "owner")
        if "owner" in given.options:
            return self._as_owner(given, lambda lock: outcome.yes(lock.owned))
        return outcome.yes(self._lock(given.places[0]).owned)

    def _verb_lease(self, given: Arguments) -> Outcome:
        given.check(1)
        return outcome.ok(self._lock(given.places[0]).lease)

    def _verb_lost(self, given: Arguments) -> Outcome:
        given.check(1)
        return outcome.yes(self._lock(given.places[0]).lost)

    def _verb_fence(self, given: Arguments) -> Outcome:
        given.check(1)
        fence = self._lock(given.places[0]).fence
        return outcome.NIL if fence is None else outcome.ok(fence)

    def _verb_keep_alive(self, given: Arguments) -> Outcome:
        given.check(2)
        name, state = given.places
        if state not in (b"on", b"off"):
            raise CaseError("keep_alive is on, or off")
        self._lock(name).keep_alive(state == b"on")
        return outcome.OK

    def _verb_clone(self, given: Arguments) -> Outcome:
        given.check(2)
        name, other = given.places
        lock = self._lock(name)
        if other in self._locks:
            raise CaseError("the name of the clone is taken")
        self._locks[other] = lock.clone()
        return outcome.OK

    def _verb_token(self, given: Arguments) -> Outcome:
        given.check(1)
        token = self._lock(given.places[0]).token
        return outcome.NIL if token is None else outcome.ok(token)

    def _verb_locked(self, given: Arguments) -> Outcome:
        given.check(1)
        return outcome.yes(self._lock(given.places[0]).locked())

    def _verb_holder(self, given: Arguments) -> Outcome:
        given.check(2)
        name, field = given.places
        holder = self._lock(name).holder()
        if holder is None:
            return outcome.NIL
        fields: dict[bytes, Callable[[], Outcome]] = {
            b"token": lambda: outcome.ok(holder.token),
            b"host": lambda: outcome.ok(holder.host),
            b"pid": lambda: outcome.ok(holder.pid),
            b"label": lambda: outcome.ok(holder.label),
            b"foreign": lambda: outcome.yes(holder.foreign),
            b"ttl": lambda: outcome.ok("never" if holder.ttl is None else round(holder.ttl * 1000)),
        }
        if field not in fields:
            raise CaseError("unknown field")
        return fields[field]()

    def _verb_waiters(self, given: Arguments) -> Outcome:
        given.check(2 if len(given.places) == 2 else 1)
        name, *count = given.places
        found = self._made().waiters(name)
        deadline = time.monotonic() + LIMIT
        while count and len(found) != int(count[0]) and time.monotonic() < deadline:
            time.sleep(AGAIN)
            found = self._made().waiters(name)
        return outcome.labels(found)

    def _verb_force_release(self, given: Arguments) -> Outcome:
        given.check(1)
        (name,) = given.places
        lock = self._locks.get(name)
        return outcome.yes(lock.force_release() if lock else self._made().force_release(name))

    def _verb_try_lock(self, given: Arguments) -> Outcome:
        given.check(2, "expire", "wait")
        wait = given.options.get("wait", b"0")
        expire_ms = int(given.options.get("expire", b"60000"))
        timeout_ms = None if wait == b"forever" else int(wait)
        key, locked_by = given.places
        if self._made().try_lock(key, locked_by, expire_ms, timeout_ms):
            return outcome.OK
        return outcome.fail("BUSY" if wait == b"0" else "TIMEOUT")

    def _verb_release_lock(self, given: Arguments) -> Outcome:
        given.check(2)
        key, locked_by = given.places
        released = self._made().release_lock(key, locked_by)
        return outcome.OK if released else outcome.fail("NOT_OWNER")

    def _verb_stats(self, given: Arguments) -> Outcome:
        given.check(1)
        stats = asdict(self._made().stats())
        name = given.places[0].decode()
        if name not in stats:
            raise CaseError("unknown field")
        return outcome.ok(round(stats[name] * 1000) if name == "wait" else stats[name])

    def _tx_options(self, given: Arguments) -> dict[str, object]:
        options = given.read(TX_OPTIONS)
        if "guard" in given.options:
            options["guard"] = self._lock(given.options["guard"])
        return options

    def _verb_update(self, given: Arguments) -> Outcome:
        given.check(1, *CHANGES, "ttl", *TX_OPTIONS, "guard")
        changes = given.options.keys() & CHANGES.keys()
        if len(changes) != 1:
            raise CaseError("an update has one change")
        change = changes.pop()
        function, argument = CHANGES[change], given.options[change]
        after = self._made().update(
            given.places[0],
            lambda old: function(old, argument),
            ttl=given.seconds("ttl"),
            **self._tx_options(given),  # type: ignore[arg-type]
        )
        return outcome.reply(after)

    def _verb_compare_and_set(self, given: Arguments) -> Outcome:
        given.check(3, "ttl")
        expected, new = map(value, given.values[1:])
        return outcome.yes(
            self._made().compare_and_set(given.places[0], expected, new, ttl=given.seconds("ttl"))
        )

    def _verb_compare_and_delete(self, given: Arguments) -> Outcome:
        given.check(2)
        key, expected = given.places
        return outcome.yes(self._made().compare_and_delete(key, expected))

    def _begin(self, given: Arguments) -> Outcome:
        given.check(len(given.places), *TX_OPTIONS, "guard")
        if self._session is not None:
            raise CaseError("the actor is in a transaction")
        client, options = self._made(), self._tx_options(given)

        def transact(function: Function) -> Outcome:
            results = client.transaction(function, *given.places, **options)  # type: ignore[arg-type]
            return outcome.reply(results)

        self._session = Session(lambda function: self._guarded(lambda: transact(function)))
        return self._do(None)

    def _verb_read(self, given: Arguments) -> Outcome:
        return outcome.reply(self._tx().execute(*given.words))

    def _verb_queue(self, given: Arguments) -> Outcome:
        self._tx().queue(*given.words)
        return outcome.OK

    def _verb_watch(self, given: Arguments) -> Outcome:
        self._tx().watch(*given.words)
        return outcome.OK

    def _verb_conflicts(self, given: Arguments) -> Outcome:
        given.check(0)
        return outcome.ok(self._tx().conflicts)

    def _verb_commit(self, given: Arguments) -> Outcome:
        given.check(0)
        raise Committed

    def _verb_abort(self, given: Arguments) -> Outcome:
        given.check(0)
        return self._abort()

    def _verb_raise(self, given: Arguments) -> Outcome:
        given.check(0)
        raise Raised

    def _verb_failure(self, given: Arguments) -> Outcome:
        given.check(1)
        name = given.places[0].decode()
        if name not in FAILURE_FIELDS or not hasattr(self._failure, name):
            raise CaseError("unknown field")
        return FAILURE_FIELDS[name](self._failure)

    def _verb_execute(self, given: Arguments) -> Outcome:
        return outcome.reply(self._made().execute(*given.words))
