"""What is Lua's own: its specs, Ctrl-C in the program `lua5.4`, and running out of memory.

All of it runs against servers that the tests started, with the rock that the build made.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import resp
from installed import lua_environment
from programs import BUILD, LUA_TREE
from sneck.testing import Server

HERE = Path(__file__).resolve().parent
ON_SEVERAL_SERVERS = HERE / "quorum_spec.lua"
SPECS = sorted({*HERE.glob("*_spec.lua")} - {ON_SEVERAL_SERVERS})
LIMIT = 60.0  # seconds; for what takes none, so that it cannot fail by timing

HELD = "another"
WAITER = """
local client = assert(require("sneck").connect(nil, {client_name = "waiter"}))
local lock = client:lock("interrupted", {ttl = 60})
"""
IN_MAIN = WAITER + "lock:acquire() print('not reached')"
IN_A_COROUTINE = (
    WAITER
    + "coroutine.wrap(function() print(select(3, lock:acquire()), lock:token()) end)()"
    + " print('not reached')"
)
IN_AN_OP = WAITER + "lock:acquire_start():wait() print('not reached')"
IN_A_BODY = (
    WAITER
    + "client:with_lock('around', {ttl = 60}, function() lock:acquire() end) print('not reached')"
)

# each prints "ready" and waits to be told to go on; a paused server then answers no write
SAY_READY = """
local sneck = require("sneck")
local client = assert(sneck.connect(nil, {timeout = 600}))
local said
local function ready() if not said then said = print("ready") or io.read() end end
io.stdout:setvbuf("no")
"""
IN_A_READ = (
    SAY_READY
    + """client:transaction({"interrupted"}, function(tx)
        tx:queue("SET", "interrupted", "written")
        ready()
        tx:execute("PUBLISH", "channel", "x")
    end) print("not reached")"""
)
IN_A_COMMIT = (
    SAY_READY
    + """client:transaction({"interrupted"}, function(tx)
        tx:get("interrupted")
        tx:queue("SET", "interrupted", "written")
        ready()
    end) print("not reached")"""
)
BETWEEN_CONFLICTS = (
    SAY_READY
    + """client:update("interrupted", function()
        ready()
        client:execute("APPEND", "interrupted", "")
        return "written"
    end, {attempts = 2 ^ 31 - 1, wait = math.huge}) print("not reached")"""
)


def environment(server: Server) -> dict[str, str]:
    """Let Lua find the rock and the specs' helper, and both the server."""
    variables = lua_environment(LUA_TREE)
    variables["LUA_PATH"] = f"{HERE}/?.lua;{variables['LUA_PATH']}"
    return {**variables, "SNECK_TEST_URL": server.url, "SNECK_URL": server.url}


def run_spec(spec: Path, variables: dict[str, str]) -> None:
    done = subprocess.run(
        ["busted", "--lua=lua5.4", "--output=TAP", str(spec)],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "\nok " in "\n" + done.stdout


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.stem)
def test_spec(server: Server, spec: Path) -> None:
    run_spec(spec, environment(server))


def test_spec_on_several_servers(servers: list[Server]) -> None:
    urls = " ".join(server.url for server in servers)
    run_spec(ON_SEVERAL_SERVERS, {**environment(servers[0]), "SNECK_TEST_URLS": urls})


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def interrupt(server: Server, script: str) -> tuple[str, str]:
    """Run a script that waits for a lock, and interrupt it there; return what it printed."""
    with resp.Client(server.socket) as redis:
        redis.call("FLUSHALL")
        redis.call("SET", "interrupted", HELD)

        def waits() -> bool:
            clients = redis.call("CLIENT", "LIST")
            assert isinstance(clients, bytes)
            return any(
                b" name=waiter " in line and b" cmd=eval" in line for line in clients.splitlines()
            )

        with subprocess.Popen(
            ["lua5.4", "-e", script],
            env=environment(server),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as lua:
            try:
                wait_until(waits)
                os.kill(lua.pid, signal.SIGINT)
                output, errors = lua.communicate(timeout=LIMIT)
            finally:
                lua.kill()
        assert lua.returncode == 1
        assert redis.call("GET", "interrupted") == HELD.encode()
        assert redis.call("DBSIZE") == 1
    return output, errors


@pytest.mark.parametrize("script", [IN_MAIN, IN_AN_OP, IN_A_BODY], ids=["lock", "op", "body"])
def test_ctrl_c_ends_a_wait(server: Server, script: str) -> None:
    output, errors = interrupt(server, script)
    assert "interrupted!" in errors
    assert output == ""


def test_ctrl_c_ends_a_wait_in_a_coroutine(server: Server) -> None:
    output, errors = interrupt(server, IN_A_COROUTINE)
    assert "interrupted!" in errors
    assert output == "INTERRUPTED\tnil\n"


def test_ctrl_c_ends_a_read_of_a_transaction() -> None:
    assert interrupt_when_ready(IN_A_READ, pause=True) == HELD.encode()


def test_ctrl_c_ends_a_commit() -> None:
    # what had left by then the server may still do
    assert interrupt_when_ready(IN_A_COMMIT, pause=True) in (HELD.encode(), b"written")


def test_ctrl_c_ends_a_transaction_between_conflicts() -> None:
    assert interrupt_when_ready(BETWEEN_CONFLICTS, pause=False) == HELD.encode()


def interrupt_when_ready(script: str, *, pause: bool) -> object:
    """Interrupt a script wherever it is by then; return what is at the key after it."""
    with Server() as server, resp.Client(server.socket) as redis:
        redis.call("SET", "interrupted", HELD)
        with subprocess.Popen(
            ["lua5.4", "-e", script],
            env=environment(server),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as lua:
            try:
                assert lua.stdout is not None
                assert lua.stdout.readline() == "ready\n"
                if pause:
                    redis.call("CLIENT", "PAUSE", "600000", "WRITE")
                assert lua.stdin is not None
                lua.stdin.write("\n")
                lua.stdin.flush()
                os.kill(lua.pid, signal.SIGINT)
                output, errors = lua.communicate(timeout=LIMIT)
            finally:
                lua.kill()
        redis.call("CLIENT", "UNPAUSE")
        assert "interrupted!" in errors
        assert output == ""
        return redis.call("GET", "interrupted")


def test_the_module_exports_its_entry_only() -> None:
    module = LUA_TREE / "lib/lua/5.4/sneck/core.so"
    symbols = subprocess.run(
        ["nm", "--dynamic", "--defined-only", "--format=posix", str(module)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert [line.split()[0] for line in symbols.splitlines()] == ["luaopen_sneck_core"]


@pytest.mark.parametrize("script", ["out_of_memory", "out_of_memory_async"])
def test_no_allocation_that_fails_leaks_or_crashes(server: Server, script: str) -> None:
    done = subprocess.run(
        [
            str(BUILD / "tests/lua/lua_out_of_memory"),
            str(HERE / f"{script}.lua"),
            server.url,
        ],
        env=environment(server),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "allocations failed once" in done.stdout
