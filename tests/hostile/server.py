"""Servers that behave badly, on a unix socket: what the clients have to withstand.

A behaviour is a function of a connection; it answers, or not, and returns when the connection is
to be closed. `hold` keeps it open until the client closes.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Behaviour = Callable[[socket.socket], None]

MEBIBYTE = 1 << 20


def hold(connection: socket.socket) -> None:
    """Keep the connection open until the client closes it."""
    while connection.recv(1 << 16):
        pass


def answer(data: bytes, *, close: bool = False) -> Behaviour:
    """Answer the first request with these bytes, then be silent or close."""

    def behave(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(data)
        if not close:
            hold(connection)

    return behave


def greet(data: bytes) -> Behaviour:
    """Speak before being asked."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(data)
        hold(connection)

    return behave


def flood(head: bytes, piece: bytes, total: int) -> Behaviour:
    """Answer with a head and pieces without an end, or until the client has had enough."""

    def behave(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(head)
        for _ in range(0, total, len(piece)):
            connection.sendall(piece)
        hold(connection)

    return behave


def trickle(data: bytes) -> Behaviour:
    """Answer byte by byte."""

    def behave(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        for byte in data:
            connection.sendall(bytes([byte]))
        hold(connection)

    return behave


def each(*replies: bytes) -> Behaviour:
    """Answer one request after the other."""

    def behave(connection: socket.socket) -> None:
        for reply in replies:
            connection.recv(1 << 16)
            connection.sendall(reply)
        hold(connection)

    return behave


def _serve(connection: socket.socket, behave: Behaviour) -> None:
    # a client that has had enough closes: that is what is wanted
    with connection, contextlib.suppress(OSError):
        behave(connection)


def _accept(listener: socket.socket, behave: Behaviour) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, behave), daemon=True).start()


@contextlib.contextmanager
def hostile_server(path: Path, behave: Behaviour) -> Iterator[None]:
    """Serve until the block ends."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=_accept, args=(listener, behave), daemon=True).start()
        yield
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
