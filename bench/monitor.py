"""How many commands a server runs for each script that it is sent (MONITOR).

INFO commandstats has what clients send and what scripts call in one number. MONITOR
tells them apart, but slows the server, so it is for a round that is not measured.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import sneck

END = b"bench:end of the monitored run"
CALLED = b" lua] "
SENT = (b'] "evalsha" ', b'] "eval" ')


def calls_of_scripts(path: str, url: str, run: Callable[[], object]) -> float:
    """Return the calls per script of what runs meanwhile; 0 when there are no scripts."""
    called = scripts = 0
    with socket.socket(socket.AF_UNIX) as connection, sneck.connect(url) as client:
        connection.connect(path)
        connection.sendall(b"MONITOR\r\n")
        lines = connection.makefile("rb")
        assert lines.readline() == b"+OK\r\n"
        run()
        client.execute("ECHO", END)
        while END not in (line := lines.readline()):
            assert line
            called += CALLED in line
            scripts += any(name in line.lower() for name in SENT)
    return called / scripts if scripts else 0.0
