"""sneck.testing.Server: a private server, and nothing left of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

import sneck
from sneck.testing import Server, ServerNotFound


def is_alive(pid: int) -> bool:
    """Tell whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_serves_and_goes_away() -> None:
    with Server(port=True) as server:
        pid, directory = server.pid, Path(server.socket).parent
        for url in (server.url, server.tcp_url):
            assert sneck.connect(url).execute("PING") == b"PONG"
        assert directory.stat().st_mode & 0o077 == 0
    assert not is_alive(pid)
    assert not directory.exists()


def test_it_ends_with_a_body_that_raises() -> None:
    with pytest.raises(KeyError), Server() as server:
        pid = server.pid
        raise KeyError
    assert not is_alive(pid)


def test_a_restarted_server_is_empty_and_at_the_same_address() -> None:
    with Server(port=True) as server:
        before = (server.url, server.tcp_url)
        pid = server.pid
        client = sneck.connect(server.url)
        client.execute("SET", "x", 1)
        server.restart()
        assert (server.url, server.tcp_url) == before
        assert server.pid != pid
        assert sneck.connect(server.url).execute("GET", "x") is None


def test_there_is_no_port_unless_asked_for() -> None:
    with Server() as server:
        with pytest.raises(RuntimeError, match="port=True"):
            _ = server.tcp_url
        assert sneck.connect(server.url).execute("CONFIG", "GET", "port") == [b"port", b"0"]


def test_a_stopped_server_can_be_started_again() -> None:
    server = Server()
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.pid
    for _ in range(2):
        with server:
            assert sneck.connect(server.url).execute("PING") == b"PONG"
        server.stop()


def test_a_missing_program_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServerNotFound, match="no-such-server"):
        Server("no-such-server")
    monkeypatch.setenv("SNECK_TEST_SERVER", "other-server")
    with pytest.raises(ServerNotFound, match="other-server"):
        Server()
    monkeypatch.delenv("SNECK_TEST_SERVER")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ServerNotFound, match="apt install valkey-server"):
        Server()


def test_a_server_that_does_not_start_says_why() -> None:
    server = Server(args=["--no-such-option", "1"])
    with pytest.raises(RuntimeError, match="no-such-option"):
        server.start()
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.socket


def test_a_long_temporary_directory_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with Server() as server:
        assert sneck.connect(server.url).execute("PING") == b"PONG"


def test_a_server_may_ask_for_a_password() -> None:
    with Server(args=["--requirepass", "secret"]) as server:
        url = server.url.replace("unix://", "unix://:secret@")
        assert sneck.connect(url).execute("PING") == b"PONG"
