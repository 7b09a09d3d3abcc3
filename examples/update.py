"""Take the next seat by compare-and-set: without a lock, and without two in one seat."""

import sneck

SEATS = 100

client = sneck.connect()  # SNECK_URL, or else redis://localhost:6379


def take_next(taken: bytes | None) -> str:
    """Decide by the old value. Run again if another client was faster, so it does no more."""
    seat = int(taken or 0) + 1
    if seat > SEATS:
        raise LookupError("no seat is free")  # nothing is written
    return str(seat)


# raises sneck.Conflict if others were faster 16 times
seat = client.update("seats:taken", take_next)
print(f"seat {int(seat or 0)} is ours")
