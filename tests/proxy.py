"""A fault proxy in front of a test server, and the control socket that drives it.

Both run on one asyncio loop in one thread, so a fault is in force before its +OK is written: it
strikes what is sent after the +OK, never what was under way. The proxy knows where requests and
replies end. A one-shot fault takes the next request of any connection, or the next one that is a
certain command, and strikes that request or the reply to it, however late the reply comes.

    cut           close all connections now
    stall         forward nothing in either direction, until resume
    drop-request  swallow the next request; the connection stays open
    drop-reply    swallow the reply to the next request; the connection stays open
    cut-reply     forward half of the reply to the next request, then close
    resume        back to normal
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any

from resp import Framer, decode

ONE_SHOT = ("drop-request", "drop-reply", "cut-reply")
LIMIT = 1 << 16  # bytes read at once


class Relay:
    """One client's connection and its twin to the server."""

    def __init__(
        self, proxy: Proxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._fates: deque[str | None] = deque()  # of the replies to come, in order

    def close(self) -> None:
        """Close both sides, once what was written has left."""
        self._client.close()
        self._server.close()

    async def cut(self) -> None:
        """Close both sides at once, and return when they are closed."""
        for side in (self._client, self._server):
            side.transport.abort()
            with contextlib.suppress(OSError):
                await side.wait_closed()

    async def requests(self, reader: asyncio.StreamReader) -> None:
        """Carry requests to the server."""
        framer = Framer()
        while data := await reader.read(LIMIT):
            for frame in framer.feed(data):
                await self._proxy.open_gate()
                fault = self._proxy.take_fault(frame)
                if fault == "drop-request":
                    continue
                self._fates.append(fault)
                self._server.write(frame)
                await self._server.drain()

    async def replies(self, reader: asyncio.StreamReader) -> None:
        """Carry replies to the client."""
        framer = Framer()
        while data := await reader.read(LIMIT):
            for frame in framer.feed(data):
                await self._proxy.open_gate()
                fate = self._fates.popleft() if self._fates else None
                if fate == "drop-reply":
                    continue
                self._client.write(frame[: len(frame) // 2] if fate == "cut-reply" else frame)
                await self._client.drain()
                if fate == "cut-reply":
                    return


class Proxy:
    """Listens at `path` and forwards to the server at `upstream`; both are unix sockets."""

    def __init__(self, path: Path, upstream: Path) -> None:
        self.path = path
        self._upstream = upstream
        self._relays: set[Relay] = set()
        self._armed: str | None = None
        self._command: bytes | None = None  # that the armed fault waits for; None: any
        self._gate = asyncio.Event()
        self._gate.set()

    async def fault(self, name: str, command: str | None = None) -> None:
        """Put a fault in force; raises ValueError for an unknown one."""
        self._command = command.upper().encode() if command else None
        if name == "cut":
            await asyncio.gather(*[relay.cut() for relay in self._relays])
        elif name == "stall":
            self._gate.clear()
        elif name == "resume":
            self._armed = None
            self._gate.set()
        elif name in ONE_SHOT:
            self._armed = name
        else:
            raise ValueError(f"unknown fault {name}")

    def take_fault(self, request: bytes) -> str | None:
        """Give the armed one-shot fault to the first request that it is for."""
        words = decode(request)
        name = words[0] if isinstance(words, list) else words
        if self._command and not (isinstance(name, bytes) and name.upper() == self._command):
            return None
        fault, self._armed = self._armed, None
        return fault

    async def open_gate(self) -> None:
        """Wait while the proxy is stalled."""
        await self._gate.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one client until either side closes."""
        try:
            from_server, to_server = await asyncio.open_unix_connection(str(self._upstream))
        except OSError:
            writer.close()
            return
        relay = Relay(self, writer, to_server)
        self._relays.add(relay)
        tasks = [
            asyncio.create_task(relay.requests(reader)),
            asyncio.create_task(relay.replies(from_server)),
        ]
        with contextlib.suppress(asyncio.CancelledError):  # when the test bed ends
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        self._relays.discard(relay)
        relay.close()
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)


Handler = Callable[[list[str]], Coroutine[Any, Any, None]]


class Control:
    """Answers commands in RESP: +OK once a command has taken effect, else an error."""

    def __init__(self, path: Path, handlers: dict[str, Handler]) -> None:
        self.path = path
        self._handlers = handlers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one client's commands, in order."""
        framer = Framer()
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while data := await reader.read(LIMIT):
                for frame in framer.feed(data):
                    writer.write(await self._answer(frame))
                    await writer.drain()
        writer.close()

    async def _answer(self, frame: bytes) -> bytes:
        request = decode(frame)
        assert isinstance(request, list)
        words = [w.decode() for w in request if isinstance(w, bytes)]
        try:
            await self._handlers[words[0].upper()](words[1:])
        except KeyError:
            return f"-ERR unknown command {words[0]}\r\n".encode()
        except Exception as error:  # noqa: BLE001 - whatever it is, the runner must hear of it
            return f"-ERR {type(error).__name__}: {error}".replace("\n", " ").encode() + b"\r\n"
        return b"+OK\r\n"


class LoopThread:
    """An asyncio loop in a thread of its own; a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._listeners: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")

    def __enter__(self) -> LoopThread:
        self._thread.start()
        return self

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the loop and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def listen(self, service: Proxy | Control) -> None:
        """Serve at the service's path until the thread ends."""
        self._listeners.append(
            self.run(asyncio.start_unix_server(service.serve, str(service.path)))
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.run(self._close_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close_all(self) -> None:
        for listener in self._listeners:
            listener.close()
        tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_default_executor()
        await asyncio.sleep(0)  # closed connections let go of their sockets
