"""Leases in Lua, where processes end or have no room for the thread that renews."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from test_lua import environment

from sneck.testing import Server

LIMIT = 60.0
TIMES = 50
AT_ONCE = 2

BEGIN = """
local sneck = require("sneck")
local client = assert(sneck.connect())
local function lock(ttl)
    local made = client:lock(arg[1], {ttl = ttl or 0.03, renew = true})
    assert(made:acquire())
    return made
end
"""

ENDS = {
    "by the end of the script": "held = lock()",
    "by os.exit": "held = lock() os.exit(0)",
    "by os.exit that closes the state": "held = lock() os.exit(0, true)",
    "in a block": "local held <close> = assert(client:hold(arg[1], {ttl = 0.03})) os.exit(0, true)",
    "in a coroutine": """
        coroutine.wrap(function()
            local rlock = client:rlock(arg[1], {ttl = 0.03})
            local held <close> = assert(rlock:hold())
            os.exit(0, true)
        end)()
    """,
    "in a coroutine of a loop, while another waits": """
        local async = require("sneck.async")
        local loop = async.loop()
        local rlock = assert(async.connect(loop)):rlock(arg[1], {ttl = 0.03})
        loop:spawn(function()
            local held <close> = assert(rlock:hold())
            loop:spawn(rlock.acquire, rlock)
            loop:sleep(0)
            os.exit(0, true)
        end)
        loop:run()
    """,
    "in a function that is within the library": """
        held = lock()
        client:update(arg[1] .. ":value", function() os.exit(0, true) end, {guard = held})
    """,
    "when its client is made by a finalizer": """
        setmetatable({}, {__gc = function()
            client = assert(sneck.connect())
            held = lock()
        end})
        client = nil
    """,
    "while it is lost": 'held = lock() client:execute("DEL", arg[1]) os.exit(0, true)',
}


@pytest.fixture
def program(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A script that begins to renew a lock, and ends."""
    path = tmp_path / "program.lua"
    path.write_text(BEGIN + ENDS[request.param])
    return path


@pytest.mark.parametrize("program", ENDS, indirect=True)
def test_it_ends_well_while_it_renews(server: Server, program: Path) -> None:
    for batch in range(TIMES // AT_ONCE):
        ending = [
            subprocess.Popen(
                ["lua5.4", str(program), f"ends:{program}:{batch}:{number}"],
                env=environment(server),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for number in range(AT_ONCE)
        ]
        for process in ending:
            output, _ = process.communicate(timeout=LIMIT)
            assert (process.returncode, output) == (0, "")


NO_THREAD = """
io.stdout:setvbuf("no")
function main(client)
    assert(client:execute("PING"))
    print("ready")
    io.read()
    for _, lock in ipairs {client:lock("no thread"), client:rlock("no thread")} do
        local held, message, code = lock:hold()
        print(held, message, code, lock:token(), client:execute("EXISTS", "no thread"))
    end
end
"""

MAINS = {
    "blocking": 'main(assert(require("sneck").connect()))',
    "in a coroutine": """
        local async = require("sneck.async")
        local loop = async.loop()
        loop:spawn(main, assert(async.connect(loop)))
        loop:run()
    """,
}


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize("main", MAINS)
def test_a_lock_that_cannot_be_renewed_is_not_held(server: Server, main: str) -> None:
    with subprocess.Popen(
        ["lua5.4", "-e", NO_THREAD + MAINS[main]],
        env=environment(server),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as lua:
        assert lua.stdout is not None
        assert lua.stdout.readline() == "ready\n"
        pages = int(Path(f"/proc/{lua.pid}/statm").read_text().split()[0])
        room = pages * resource.getpagesize() + 2**20
        resource.prlimit(lua.pid, resource.RLIMIT_AS, (room, room))
        output, _ = lua.communicate("\n", timeout=LIMIT)
    lack = "the system gives no thread for its renewal: Resource temporarily unavailable"
    why = f'lock "no thread": {lack}'
    assert output == f"nil\t{why}\tNO_MEMORY\tnil\t0\n" * 2
