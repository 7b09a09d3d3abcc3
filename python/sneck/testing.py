"""A private Redis or Valkey server for tests and demos.

The server lives in a temporary directory, listens on a unix socket in it (and on
a loopback port where asked), keeps nothing on disk, and is ended by its process
id, so that no other server is ever touched. This file needs nothing but the
standard library: without a build of the extension, load it by its path.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO
from urllib.parse import quote

__all__ = ["Server", "ServerNotFound", "find_server"]

PROGRAMS = ("valkey-server", "redis-server")
START_TIMEOUT = 20.0
STOP_TIMEOUT = 10.0
POLL_INTERVAL = 0.01
PORT_ATTEMPTS = 5
LAUNCH_ATTEMPTS = 5
# what a busy machine may say to a program that it runs a moment later
PASSING = (errno.EAGAIN, errno.EFAULT, errno.ENOMEM, errno.ETXTBSY)
SOCKET_PATH_MAX = 100  # sun_path has 104 bytes on macOS and 108 on Linux

INSTALL_HINT = (
    "install one: apt install valkey-server (or redis-server), "
    "dnf install valkey (or redis), apk add valkey (or redis), "
    "brew install valkey (or redis)"
)


class ServerNotFound(RuntimeError):
    """No server program is installed, or not the one that was asked for."""


def find_server(program: str | None = None) -> str:
    """Find the server program and return its path.

    `program`, else the environment's SNECK_TEST_SERVER, picks one by name or
    path; else it is valkey-server or redis-server. Raises ServerNotFound.
    """
    wanted = program or os.environ.get("SNECK_TEST_SERVER")
    names = (wanted,) if wanted else PROGRAMS
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return path
    raise ServerNotFound(f"no {' or '.join(names)} on the PATH; {INSTALL_HINT}")


class Server:
    """A server of one's own, from `with` (or start) to its end (or stop).

    `program` picks the server as in find_server(); `port=True` also listens on a
    free loopback port; `args` are further arguments of the server.
    """

    def __init__(
        self, program: str | None = None, *, port: bool = False, args: Sequence[str] = ()
    ) -> None:
        """Find the program; nothing is started yet. Raises ServerNotFound."""
        self.program = find_server(program)
        self.port: int | None = None
        self._wants_port = port
        self._args = tuple(args)
        self._directory: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        """Start the server."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self.stop()

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise RuntimeError("the server is not running: call start()")
        return self._process.pid

    @property
    def socket(self) -> str:
        """The path of the unix socket."""
        if self._directory is None:
            raise RuntimeError("the server is not running: call start()")
        return str(self._directory / "socket")

    @property
    def url(self) -> str:
        """The address of the unix socket."""
        return "unix://" + quote(self.socket)

    @property
    def tcp_url(self) -> str:
        """The address of the loopback port."""
        if self.port is None:
            raise RuntimeError("the server has no port: ask for one by Server(port=True)")
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers.

        Does nothing when it runs. Raises RuntimeError, with the server's last
        words, when it does not start.
        """
        if self._process is not None:
            return
        if self._directory is None:
            self._directory = _short_directory()
        try:
            self._launch_on_free_port()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server and remove its directory. Does nothing when stopped."""
        self._end_process()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = None
        self.port = None

    def restart(self) -> None:
        """End the server and start it again at the same addresses, empty."""
        self._end_process()
        self.start()

    def _launch_on_free_port(self) -> None:
        # Another program can take the port between our look and the server's bind.
        attempts = PORT_ATTEMPTS if self._wants_port and self.port is None else 1
        for attempt in range(attempts):
            if self._wants_port and self.port is None:
                self.port = _free_port()
            self._launch()
            if self._wait_until_ready():
                return
            if attempt + 1 == attempts or b"in use" not in self._log():
                break
            self.port = None
        words = self._log().decode(errors="replace").strip().splitlines()[-5:]
        raise RuntimeError(f"{self.program} did not start: {' / '.join(words) or 'no output'}")

    def _launch(self) -> None:
        directory = self._directory
        assert directory is not None
        command = [
            *(self.program, "--dir", str(directory), "--daemonize", "no"),
            *("--save", "", "--appendonly", "no"),
            *("--unixsocket", self.socket, "--unixsocketperm", "700"),
            *("--bind", "127.0.0.1", "--port", str(self.port or 0)),
            *self._args,
        ]
        with open(directory / "log", "wb") as log:
            for _ in range(LAUNCH_ATTEMPTS - 1):
                if self._launched(command, log, PASSING):
                    return
                time.sleep(POLL_INTERVAL)
            self._launched(command, log)

    def _launched(self, command: list[str], log: BinaryIO, excused: Sequence[int] = ()) -> bool:
        """Launch the program; False where the system refused it for an excused reason."""
        try:
            # A session of its own: Ctrl-C is for the program under test.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            if error.errno in excused:
                return False
            raise
        return True

    def _wait_until_ready(self) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                self._process = None
                return False
            if _answers(self.socket):
                return True
            time.sleep(POLL_INTERVAL)
        self._end_process()
        return False

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _log(self) -> bytes:
        assert self._directory is not None
        return (self._directory / "log").read_bytes()


def _short_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="sneck-"))
    if len(os.fsencode(directory / "socket")) <= SOCKET_PATH_MAX:
        return directory
    directory.rmdir()
    return Path(tempfile.mkdtemp(prefix="sneck-", dir="/tmp"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(path: str) -> bool:
    """Tell whether the server serves; asking for a password is an answer, too."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1.0)
            connection.connect(path)
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
    except OSError:
        return False
