"""A test bed: one server, the fault proxy in front of it, and the control socket of both.

The bed alone knows how a server is put back to how it started, so that the runners in three
languages need not. Only a server that the bed started is ever reset or ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import resp
from proxy import Control, LoopThread, Proxy
from sneck.testing import Server

SETTINGS = {"maxmemory": "0", "maxmemory-policy": "noeviction", "min-replicas-to-write": "0"}


class Cluster:
    """A cluster of one node, which has all slots, at a path that is known before it is started."""

    def __init__(self, program: str, path: Path) -> None:
        """Prepare it; nothing is started yet."""
        self.path = path
        self._program = program
        self._server: Server | None = None

    def start(self) -> None:
        """Start it, and wait until it takes commands."""
        self.stop()
        args = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
        self._server = Server(self._program, port=True, args=args)
        self._server.start()
        with resp.Client(self._server.socket) as client:
            client.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            while b"cluster_state:ok" not in text_of(client.call("CLUSTER", "INFO")):
                time.sleep(0.01)
        self.path.symlink_to(self._server.socket)

    def stop(self) -> None:
        """End it. Does nothing when it is not there."""
        self.path.unlink(missing_ok=True)
        if self._server is not None:
            self._server.stop()
        self._server = None


def free_port() -> int:
    """Find a port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def text_of(reply: resp.Value) -> bytes:
    """Narrow a reply that is text."""
    assert isinstance(reply, bytes)
    return reply


class Bed:
    """A context manager; `arguments` are what a corpus runner is told about it."""

    def __init__(self, program: str) -> None:
        """Prepare a bed for a server program; nothing is started yet."""
        self.server = Server(program, port=True)
        self._stack = contextlib.ExitStack()
        self._running = False

    def __enter__(self) -> Bed:
        """Start the server, the proxy and the control socket."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.server)
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sneck-bed-")))
            loop = stack.enter_context(LoopThread())
            self._proxy = Proxy(directory / "proxy", Path(self.server.socket))
            self._cluster = Cluster(self.server.program, directory / "cluster")
            stack.callback(self._cluster.stop)
            self._control = Control(
                directory / "control",
                {
                    "FAULT": self._fault,
                    "SERVER": self._act,
                    "BEGIN": self._begin,
                    "SLEEP": self._sleep,
                },
            )
            loop.listen(self._proxy)
            loop.listen(self._control)
            self._running = True
            self.version = self._find_version()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all that was started."""
        self._stack.close()

    @property
    def arguments(self) -> list[str]:
        """The addresses and the version, as options of a runner."""
        return [
            *("--socket", self.server.socket),
            *("--address", f"127.0.0.1:{self.server.port}"),
            *("--proxy", str(self._proxy.path)),
            *("--cluster", str(self._cluster.path)),
            *("--control", f"unix://{self._control.path}"),
            *("--redis", self.version),
        ]

    def _find_version(self) -> str:
        with resp.Client(self.server.socket) as client:
            info = text_of(client.call("INFO", "server"))
        return info.split(b"redis_version:")[1].split(b"\r\n")[0].decode()

    # ------------------------------------------------- what the control socket does

    async def _fault(self, words: list[str]) -> None:
        await self._proxy.fault(*words)

    async def _sleep(self, words: list[str]) -> None:
        (milliseconds,) = words
        await asyncio.sleep(int(milliseconds) / 1000)

    async def _act(self, words: list[str]) -> None:
        (name,) = words
        actions: dict[str, Callable[[], None]] = {
            "start": self._start,
            "stop": self._stop,
            "restart": self._restart,
            "cluster": self._cluster.start,
        }
        await asyncio.get_running_loop().run_in_executor(None, actions[name])

    async def _begin(self, words: list[str]) -> None:
        assert not words
        await self._proxy.fault("resume")
        await asyncio.get_running_loop().run_in_executor(None, self._restore)

    def _start(self) -> None:
        if not self._running:
            self._restart()

    def _restart(self) -> None:
        self.server.restart()
        self._running = True

    def _stop(self) -> None:
        # Server.stop() would give up the addresses, which a case wants to find again. The process
        # is left for the server to collect; until it has ended, its connections may be open.
        self._running = False
        os.kill(self.server.pid, signal.SIGTERM)
        os.waitid(os.P_PID, self.server.pid, os.WEXITED | os.WNOWAIT)

    def _restore(self) -> None:
        self._cluster.stop()
        self._start()
        with resp.Client(self.server.socket) as client:
            client.call("REPLICAOF", "NO", "ONE")
            for name, value in SETTINGS.items():
                client.call("CONFIG", "SET", name, value)
            client.call("FLUSHALL")
            client.call("SCRIPT", "FLUSH")
            self._remove_users(client)

    @staticmethod
    def _remove_users(client: resp.Client) -> None:
        users = client.call("ACL", "USERS")
        assert isinstance(users, list)
        for user in users:
            if isinstance(user, bytes) and user != b"default":
                client.call("ACL", "DELUSER", user)
