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
from proxy import Control, Handler, LoopThread, Proxy
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


class Five:
    """The servers of a quorum, at paths that are known before they are started.

    `server1` to `server5` in the directory are their sockets, `proxy1` to `proxy5` those of the
    fault proxies in front of them.
    """

    COUNT = 5

    def __init__(self, program: str, directory: Path) -> None:
        """Prepare them; nothing is started yet."""
        self._servers = [Server(program) for _ in range(self.COUNT)]
        self._paths = [directory / f"server{n}" for n in range(1, self.COUNT + 1)]
        self._running: set[int] = set()
        self._started = False
        self.proxies = [
            Proxy(directory / f"proxy{n}", path) for n, path in enumerate(self._paths, 1)
        ]

    def start(self, n: int) -> None:
        """Start the server of that number, from 1, unless it runs."""
        if n not in self._running:
            self.restart(n)

    def restart(self, n: int) -> None:
        """Start it anew, and empty."""
        server, path = self._servers[n - 1], self._paths[n - 1]
        if path.is_symlink():
            server.restart()
        else:
            server.start()
            path.symlink_to(server.socket)
        self._running.add(n)

    def stop(self, n: int) -> None:
        """End it; it keeps its path."""
        self._running.discard(n)
        end_process(self._servers[n - 1].pid)

    def act(self, n: int, name: str) -> None:
        """Do what a `server` step says."""
        {"start": self.start, "stop": self.stop, "restart": self.restart}[name](n)

    def restore(self) -> None:
        """Start all, and make them as new."""
        for n, path in enumerate(self._paths, 1):
            self.start(n)
            with resp.Client(str(path)) as client:
                client.call("FLUSHALL")
                client.call("SCRIPT", "FLUSH")

    def end(self) -> None:
        """End all that was started."""
        for server in self._servers:
            server.stop()


def end_process(pid: int) -> None:
    """End a server's process, which is left for the server's object to collect."""
    # Server.stop() would give up the addresses, which a case wants to find again. Until the
    # process has ended, its connections may be open.
    os.kill(pid, signal.SIGTERM)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


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
            self._directory = directory
            self._five = Five(self.server.program, directory)
            stack.callback(self._five.end)
            self._control = Control(
                directory / "control",
                {
                    "FAULT": self._fault,
                    "SERVER": self._act,
                    "BEGIN": self._begin,
                    "SLEEP": self._sleep,
                    **{f"FAULT{n}": self._fault_of(n) for n in range(1, Five.COUNT + 1)},
                    **{f"SERVER{n}": self._act_on(n) for n in range(1, Five.COUNT + 1)},
                },
            )
            for proxy in (self._proxy, *self._five.proxies):
                loop.listen(proxy)
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
            *("--servers", str(self._directory)),
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
        for proxy in (self._proxy, *self._five.proxies):
            await proxy.fault("resume")
        run = asyncio.get_running_loop().run_in_executor
        await run(None, self._restore)
        if words == ["servers"]:
            await run(None, self._five.restore)
        else:
            assert not words

    def _fault_of(self, n: int) -> Handler:
        async def fault(words: list[str]) -> None:
            await self._five.proxies[n - 1].fault(*words)

        return fault

    def _act_on(self, n: int) -> Handler:
        async def act(words: list[str]) -> None:
            (name,) = words
            await asyncio.get_running_loop().run_in_executor(None, self._five.act, n, name)

        return act

    def _start(self) -> None:
        if not self._running:
            self._restart()

    def _restart(self) -> None:
        self.server.restart()
        self._running = True

    def _stop(self) -> None:
        self._running = False
        end_process(self.server.pid)

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
