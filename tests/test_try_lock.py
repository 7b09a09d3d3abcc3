"""try_lock and release_lock where a case of the corpus does not reach: old code, messages."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

import sneck
import sneck.aio
from sneck.testing import Server


class OldLock:
    """The helper that many services have: SET NX PX, then GET, compare and DEL."""

    def __init__(self, client: sneck.Client, value: bytes) -> None:
        """Use the client for its plain commands."""
        self._client = client
        self._value = value

    def acquire(self, key: str, expire_ms: int) -> bool:
        """Try once."""
        return self._client.execute("SET", key, self._value, "NX", "PX", expire_ms) is not None

    def owns(self, key: str) -> bool:
        """Do the first half of the release."""
        return self._client.execute("GET", key) == self._value

    def delete(self, key: str) -> None:
        """Do the second half."""
        self._client.execute("DEL", key)


def test_get_then_del_deletes_the_lock_of_the_next_holder(client: sneck.Client) -> None:
    old = OldLock(client, b"old")
    assert old.acquire("door", 60000)
    assert old.owns("door")
    client.execute("PEXPIRE", "door", 0)
    assert client.try_lock("door", "next", 60000)
    old.delete("door")
    assert client.execute("EXISTS", "door") == 0  # and a third one walks in
    assert not client.release_lock("door", "next")


def test_release_lock_does_not_delete_the_lock_of_the_next_holder(client: sneck.Client) -> None:
    assert client.try_lock("door", "old", 60000)
    client.execute("PEXPIRE", "door", 0)
    assert client.try_lock("door", "next", 60000)
    assert not client.release_lock("door", "old")
    assert client.execute("GET", "door") == b"next"
    assert client.release_lock("door", "next")


def test_old_code_and_try_lock_exclude_each_other(client: sneck.Client) -> None:
    old = OldLock(client, b"1")
    assert old.acquire("door", 60000)
    assert not client.try_lock("door", "1", 60000, 50)
    assert old.owns("door")
    old.delete("door")
    assert client.try_lock("door", "1", 60000, 50)
    assert not old.acquire("door", 60000)


def test_who_waits_for_a_plain_setnx_is_told_that_it_never_expires(client: sneck.Client) -> None:
    assert client.execute("SETNX", "door", "theirs") == 1
    never = pytest.raises(sneck.LockTimeout, match="without an expiry: it may never end")
    with never, client.lock("door", wait=0.05):
        pass
    assert client.force_release("door")
    assert client.try_lock("door", "mine", 60000)


def test_try_locks_own_message_tells_that_the_holder_never_expires(
    server: Server, client: sneck.Client, tmp_path: Path
) -> None:
    source = tmp_path / "try.c"
    source.write_text(TRY)
    top = Path(__file__).parent.parent
    subprocess.run([str(top / "scripts/compile"), str(tmp_path / "try"), str(source)], check=True)
    client.execute("SETNX", "door", "theirs")
    done = subprocess.run(
        [str(tmp_path / "try"), server.url], capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[0] == "TIMEOUT"
    assert "not free within 50 ms" in done.stdout
    assert "without an expiry: it may never end" in done.stdout


TRY = r"""
#include <sneck_legacy.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    sneck_client *client;
    char error[SNECK_ERROR_SIZE] = "";
    if (argc != 2 || sneck_client_new(&client, argv[1], NULL, error) != SNECK_OK)
        return 1;
    int status = sneck_try_lock(client, "door", 4, "mine", 4, 60000, 50, error);
    printf("%s\n%s\n", sneck_status_name(status), error);
    sneck_client_free(client);
    return 0;
}
"""


@pytest.mark.parametrize(
    ("expire_ms", "timeout_ms", "error"),
    [
        (1.5, 0, TypeError),
        (True, 0, TypeError),
        ("60000", 0, TypeError),
        (60000, 0.5, TypeError),
        (2, 0, ValueError),
        (10**30, 0, ValueError),
        (60000, -1, ValueError),
        (60000, 10**30, ValueError),
    ],
)
def test_times_are_whole_milliseconds(
    client: sneck.Client, expire_ms: int, timeout_ms: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match="_ms"):
        client.try_lock("door", "mine", expire_ms, timeout_ms)
    assert client.execute("EXISTS", "door") == 0


def test_none_as_the_timeout_is_no_limit(client: sneck.Client) -> None:
    client.execute("SET", "door", "theirs", "PX", 200)
    assert client.try_lock("door", "mine", 60000, None)


def test_a_cancelled_task_that_waits_leaves_nothing_behind(
    server: Server, client: sneck.Client
) -> None:
    async def cancel_a_waiter() -> None:
        async with sneck.aio.connect(server.url) as waiting:
            task = asyncio.create_task(waiting.try_lock("door", "1", 60000, None))
            while not client.waiters("door"):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)  # its answer, too
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    assert client.try_lock("door", "1", 60000)
    asyncio.run(cancel_a_waiter())
    assert client.waiters("door") == []
    assert client.release_lock("door", "1")
    assert client.execute("EXISTS", "door") == 0


def test_a_call_that_is_cancelled_under_way_is_unknown(client: sneck.Client) -> None:
    link = client._link()
    op = link.try_lock("door", "1", 60000, 0)
    op.cancel()
    assert op.status == "UNKNOWN"
    with pytest.raises(sneck.OutcomeUnknown, match="it may be ours"):
        op.result()
    link.close()
