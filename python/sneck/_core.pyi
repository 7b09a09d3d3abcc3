import builtins
from collections.abc import Callable, Mapping
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar, final

from typing_extensions import Self, disjoint_base

_Reply: TypeAlias = int | bytes | list[_Reply] | ServerError | None
_Wakeups: TypeAlias = Literal["untried", "used", "denied"]
_Lease: TypeAlias = Literal["none", "held", "uncertain", "lost"]
_Client = TypeVar("_Client", bound=Client)
_Lock = TypeVar("_Lock", bound=Lock)

__version__: str

class Error(Exception):
    servers: Mapping[str, str]

class LockTimeout(Error, TimeoutError): ...
class NotOwned(Error): ...
class OutcomeUnknown(Error): ...
class ConnectionError(Error, builtins.ConnectionError): ...

class ServerError(Error):
    code: str
    index: int | None
    results: list[_Reply] | None

class Conflict(Error):
    attempts: int
    waited: float
    keys: tuple[str | bytes, ...]

class ProtocolError(Error): ...
class QuorumImpossible(Error): ...
class Interrupted(Error, InterruptedError): ...
class _AttemptEnded(BaseException): ...

@final
class Transaction:
    @property
    def conflicts(self) -> int: ...
    def get(self, key: str | bytes, /) -> bytes | None: ...
    def execute(self, *args: str | bytes | float) -> _Reply: ...
    def queue(self, *args: str | bytes | float) -> None: ...
    def watch(self, *keys: str | bytes) -> None: ...
    def abort(self) -> NoReturn: ...

@final
class Op:
    @property
    def status(self) -> str: ...
    def cancel(self) -> None: ...
    def result(self) -> Any: ...  # noqa: ANN401 - it depends on the call
    def link(self) -> Link: ...

@final
class Link:
    @property
    def generation(self) -> int: ...
    @property
    def quiet(self) -> bool: ...
    def fds(self) -> list[tuple[int, bool, bool]]: ...
    def timeout(self) -> float | None: ...
    def step(self) -> None: ...
    def ended(self) -> Op | None: ...
    def close(self) -> None: ...
    def acquire(self, lock: Lock, blocking: bool, timeout: float, /) -> Op: ...
    def release(self, lock: Lock, /) -> Op: ...
    def extend(self, lock: Lock, ttl: float | None, /) -> Op: ...
    def holder(self, lock: Lock, /) -> Op: ...
    def waiters(self, lock: Lock, /) -> Op: ...
    def force_release(self, lock: Lock, /) -> Op: ...
    def execute(self, *args: str | bytes | float) -> Op: ...

@final
class Attempts:
    @property
    def conflicts(self) -> int: ...
    def begin(self) -> Op: ...
    def read(self, *args: str | bytes | float) -> Op: ...
    def queue(self, *args: str | bytes | float) -> None: ...
    def watch(self, *keys: str | bytes) -> None: ...
    def commit(self) -> Op: ...
    def unwatch(self) -> Op: ...
    def close(self) -> None: ...

@disjoint_base
class Client:
    @property
    def servers(self) -> tuple[str, ...]: ...
    def close(self) -> None: ...
    def execute(self, *args: str | bytes | float) -> _Reply: ...
    def _stats(self) -> tuple[int, int, int, int, float, int, int, _Wakeups]: ...
    def _lock(
        self,
        cls: type[_Lock],
        name: str | bytes,
        ttl: float,
        wait: float | None,
        label: str | None,
        fair: bool,
        poll: float,
        renew: bool | None,
        max_hold: float | None,
        fence: bool,
        listens: bool,
        /,
    ) -> _Lock: ...
    def _rlock(
        self,
        cls: type[_Lock],
        name: str | bytes,
        ttl: float,
        wait: float | None,
        label: str | None,
        fair: bool,
        poll: float,
        renew: bool | None,
        max_hold: float | None,
        fence: bool,
        listens: bool,
        owner: Callable[[], int] | None = None,
        /,
    ) -> _Lock: ...
    def _legacy_lock(
        self,
        cls: type[_Lock],
        name: str | bytes,
        ttl: float,
        wait: float | None,
        label: str | None,
        fair: bool,
        poll: float,
        renew: bool | None,
        max_hold: float | None,
        fence: bool,
        listens: bool,
        /,
    ) -> _Lock: ...
    def _adopt(
        self,
        cls: type[_Lock],
        name: str | bytes,
        token: str | bytes,
        ttl: float,
        wait: float | None,
        label: str | None,
        fair: bool,
        poll: float,
        renew: bool | None,
        max_hold: float | None,
        fence: bool,
        listens: bool,
        /,
    ) -> _Lock: ...
    def _transaction(
        self,
        function: Callable[[Transaction], object],
        keys: tuple[str | bytes, ...],
        attempts: int,
        wait: float | None,
        guard: Lock | None,
        /,
    ) -> list[_Reply] | None: ...
    def _update(
        self,
        key: str | bytes,
        function: Callable[[bytes | None], object],
        ttl: float | None,
        attempts: int,
        wait: float | None,
        guard: Lock | None,
        keep: object,
        /,
    ) -> bytes | None: ...
    def _compare_and_set(
        self,
        key: str | bytes,
        expected: str | bytes | float | None,
        new: str | bytes | float | None,
        ttl: float | None,
        /,
    ) -> bool: ...
    def _link(self) -> Link: ...
    def _attempts(
        self,
        keys: tuple[str | bytes, ...],
        attempts: int,
        wait: float | None,
        guard: Lock | None,
        /,
    ) -> Attempts: ...

@disjoint_base
class Lock:
    @property
    def name(self) -> str | bytes: ...
    @property
    def ttl(self) -> float: ...
    @property
    def owned(self) -> bool: ...
    @property
    def token(self) -> bytes | None: ...
    @property
    def lost(self) -> bool: ...
    @property
    def lease(self) -> _Lease: ...
    @property
    def fence(self) -> int | None: ...
    @property
    def _outermost(self) -> bool: ...
    @property
    def _client(self) -> Client: ...
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...
    def extend(self, ttl: float | None = None) -> None: ...
    def remaining(self) -> float: ...
    def keep_alive(self, on: bool = True) -> None: ...
    def _holder(self) -> tuple[bytes, str, int, str, float | None, bool] | None: ...
    def _waiters(self) -> list[tuple[str, int, str, float]]: ...
    def _force_release(self) -> bool: ...
    def __enter__(self) -> Self: ...

def connect(
    cls: type[_Client],
    url: str | None,
    timeout: float,
    connect_timeout: float | None,
    client_name: str | None,
    prefix: str | bytes | None,
    label: str | None,
    /,
) -> _Client: ...
def quorum(
    cls: type[_Client],
    urls: tuple[str, ...],
    timeout: float,
    connect_timeout: float | None,
    client_name: str | None,
    prefix: str | bytes | None,
    label: str | None,
    /,
) -> _Client: ...
def milliseconds(ttl: float, /) -> int: ...
