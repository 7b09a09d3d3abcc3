"""Calls a server that may be hostile and prints what came of it; see probe.c."""

from __future__ import annotations

import sys

import sneck

NAMES = {
    sneck.NotOwned: "NOT_OWNER",
    sneck.OutcomeUnknown: "UNKNOWN",
    sneck.ConnectionError: "CONNECTION",
    sneck.ServerError: "SERVER",
    sneck.ProtocolError: "PROTOCOL",
}


def call(client: sneck.Client, verb: str) -> str:
    """Make the call and give what stands before the status."""
    lock = client.adopt("door", "mine")
    if verb in ("execute", "twice"):
        reply = client.execute("GET", "door")
        return f"{reply.decode()} " if verb == "twice" and isinstance(reply, bytes) else ""
    if verb == "acquire":
        return "" if lock.acquire(blocking=False) else "BUSY "
    getattr(lock, verb)()
    return ""


def main() -> None:
    """Print the status."""
    url, timeout, verb = sys.argv[1:]
    with sneck.connect(url, timeout=int(timeout) / 1000) as client:
        try:
            if verb == "twice":
                client.execute("GET", "door")
        except sneck.Error:
            pass
        try:
            print(call(client, verb) + "OK")
        except sneck.Error as error:
            print(NAMES[type(error)])


main()
