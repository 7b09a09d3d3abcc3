"""The default client: made when first used, once, from SNECK_URL."""

from __future__ import annotations

import os
import subprocess
import sys

from sneck.testing import Server

LIMIT = 60.0

USE = """
import sneck
from concurrent.futures import ThreadPoolExecutor

@sneck.locked("default:{number}", ttl=60)
def work(number):
    return sneck.lock(f"default:{number}").locked()

print(work(1))
with sneck.lock("default", ttl=60, wait=0, label="x") as lock:
    print(lock.holder().label)
from sneck import _default
with ThreadPoolExecutor(8) as pool:
    print(len({id(client) for client in pool.map(lambda _: _default._client(), range(64))}))
"""

IMPORT = """
import sneck
sneck.locked("x")(lambda: None)
try:
    sneck.lock("x")
except ValueError as error:
    print("refused")
"""


def run(script: str, url: str) -> str:
    """Run a script with an address in the environment."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "SNECK_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.stdout


def test_module_level_locks_use_the_address_in_the_environment(server: Server) -> None:
    assert run(USE, server.url) == "True\nx\n1\n"


def test_a_bad_address_fails_at_the_first_use_only() -> None:
    assert run(IMPORT, "nonsense") == "refused\n"
