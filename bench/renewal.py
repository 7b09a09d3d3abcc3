"""Measure what it costs a process to hold many locks that are renewed.

Run by bench/renewal, which builds what this needs. One private server.
"""

from __future__ import annotations

import argparse
import subprocess

from launch import compile_worker

from sneck.testing import Server


def main() -> None:
    """Run by argument, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locks", type=int, default=10000)
    parser.add_argument("--ttl", type=float, default=10.0, help="seconds")
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    with Server() as server:
        worker = [
            compile_worker("hold"),
            server.url,
            str(given.locks),
            str(round(given.ttl * 1000)),
            str(given.seconds),
        ]
        print(subprocess.check_output(worker, text=True), end="")


main()
