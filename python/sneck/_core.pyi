import builtins
from typing import TypeAlias, TypeVar

from typing_extensions import Self, disjoint_base

_Reply: TypeAlias = int | bytes | list[_Reply] | ServerError | None
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

class ProtocolError(Error): ...
class Interrupted(Error, InterruptedError): ...

@disjoint_base
class Client:
    def close(self) -> None: ...
    def execute(self, *args: str | bytes | float) -> _Reply: ...
    def _lock(
        self,
        cls: type[_Lock],
        name: str | bytes,
        ttl: float,
        wait: float | None,
        label: str | None,
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
        /,
    ) -> _Lock: ...

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
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...
    def extend(self, ttl: float | None = None) -> None: ...
    def remaining(self) -> float: ...
    def _holder(self) -> tuple[bytes, str, int, str, float | None, bool] | None: ...
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
