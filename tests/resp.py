"""The Redis protocol (RESP2) as the tests need it: frames, values, and one plain client.

Nothing here uses Sneck, so the tests can prepare and judge a server without trusting what they
test. A frame is the bytes of exactly one value; a request is a frame, too.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import TracebackType

Value = bytes | int | None | list["Value"] | Exception


class ReplyError(Exception):
    """An error reply; its text is the message."""


def encode(*words: str | bytes | int) -> bytes:
    """Encode a command."""
    parts = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


def frame_end(data: bytes | bytearray, start: int) -> int | None:
    """Find where the value that begins at `start` ends; None while bytes are missing."""
    line = data.find(b"\r\n", start)
    if line < 0:
        return None
    kind, head, end = data[start : start + 1], data[start + 1 : line], line + 2
    if kind == b"$" and int(head) >= 0:
        end += int(head) + 2
        return end if end <= len(data) else None
    if kind == b"*":
        for _ in range(max(int(head), 0)):
            inner = frame_end(data, end)
            if inner is None:
                return None
            end = inner
    return end


class Framer:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take what arrived and yield the frames that are complete now."""
        self._buffer += data
        while self._buffer:
            end = frame_end(self._buffer, 0)
            if end is None:
                return
            frame = bytes(self._buffer[:end])
            del self._buffer[:end]
            yield frame


def _decode_at(frame: bytes, start: int) -> tuple[Value, int]:
    line = frame.index(b"\r\n", start)
    kind, head, end = frame[start : start + 1], frame[start + 1 : line], line + 2
    if kind == b"+":
        return head, end
    if kind == b"-":
        return ReplyError(head.decode()), end
    if kind == b":":
        return int(head), end
    if int(head) < 0:
        return None, end
    if kind == b"$":
        return frame[end : end + int(head)], end + int(head) + 2
    items: list[Value] = []
    for _ in range(int(head)):
        item, end = _decode_at(frame, end)
        items.append(item)
    return items, end


def decode(frame: bytes) -> Value:
    """Decode one frame."""
    return _decode_at(frame, 0)[0]


class Client:
    """A blocking client over a unix socket.

    Raises ReplyError when the server answers with an error.
    """

    def __init__(self, path: str, timeout: float = 20.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        self._socket.connect(path)
        self._framer = Framer()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def call(self, *words: str | bytes | int) -> Value:
        """Send a command and return its reply."""
        self._socket.sendall(encode(*words))
        while True:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server closed the connection")
            for frame in self._framer.feed(data):
                value = decode(frame)
                if isinstance(value, Exception):
                    raise value
                return value
