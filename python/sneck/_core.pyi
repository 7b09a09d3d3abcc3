import builtins
from collections.abc import Callable
from typing import Literal, NoReturn, TypeAlias, TypeVar, final

from typing_extensions import Self, disjoint_base

_Reply: TypeAlias = int | bytes | list[_Reply] | ServerError | None
_Wakeups: TypeAlias = Literal["untried", "used", "denied"]
_Lease: TypeAlias = Literal["none", "held", "uncertain", "lost"]
_Client = TypeVar("_Client", bound=Client)
_Lock = TypeVar("_Lock", bound=Lock)

__version__: str

class Error(Exception): ...
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

@disjoint_base
class Client:
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
