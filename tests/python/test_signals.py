"""Renewal takes none of the program's signals, and changes none of their dispositions."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable

import sneck
from sneck.testing import Server

TTL = 60.0
LIMIT = 30.0


def test_handlers_run_in_the_main_thread(client: sneck.Client, name: str) -> None:
    threads: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: threads.append(threading.get_ident()))
    try:
        with client.lock(name, ttl=TTL) as lock:
            for number in range(1, 51):
                os.kill(os.getpid(), signal.SIGUSR1)
                assert len(threads) == number  # it has run before the next line does
            assert lock.owned
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert set(threads) == {threading.get_ident()}


def test_no_disposition_is_changed(client: sneck.Client, name: str) -> None:
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with client.lock(name, ttl=TTL):
        client.execute("PING")
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask


WAITS = """
import signal, sys, threading, sneck
signal.signal(signal.SIGINT, signal.default_int_handler)
client = sneck.connect(sys.argv[1])
try:
    with client.lock(sys.argv[2], ttl=60) as lock:
        print("held", flush=True)
        threading.Event().wait(60)  # a signal to another thread would not end it
except KeyboardInterrupt:
    print("interrupted", lock.lost, client.execute("EXISTS", sys.argv[2]))
"""


def test_ctrl_c_reaches_a_body_at_once(
    server: Server, name: str, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    process = spawn(WAITS, server.url, name)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=LIMIT)
    assert output == "interrupted False 0\n"


PIPES = """
import signal, sys, time, sneck
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
client = sneck.connect(sys.argv[1])
with client.lock(sys.argv[2], ttl=60) as lock:
    for _ in range(20):
        client.execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        lock.extend(30)  # which is renewed at once
        time.sleep(0.02)
    while lock.remaining() <= 30:
        time.sleep(0.01)
    print(lock.owned, signal.getsignal(signal.SIGPIPE) == signal.SIG_DFL)
"""


def test_a_broken_connection_is_no_sigpipe(
    name: str, spawn: Callable[..., subprocess.Popen[str]]
) -> None:
    with Server() as own:
        process = spawn(PIPES, own.url, name)
        output, _ = process.communicate(timeout=LIMIT)
        assert (process.returncode, output) == (0, "True True\n")
