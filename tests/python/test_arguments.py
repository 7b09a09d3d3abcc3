"""What bad arguments get: a ValueError or TypeError before anything is sent."""

from __future__ import annotations

import math
from typing import Any

import pytest

import sneck
import sneck.aio
from sneck.testing import Server

NOWHERE = "unix:///nowhere/at/all"  # whatever is sent there fails with another error

BAD_NUMBERS = [True, False, math.nan, math.inf, -math.inf, -1, -0.001, 10**9, 10**400, 1e300]
NOT_NUMBERS: list[Any] = ["1", b"1", 1j, [1], object()]


@pytest.fixture
def offline() -> sneck.Client:
    """A client without a server."""
    return sneck.connect(NOWHERE)


@pytest.mark.parametrize("ttl", [*BAD_NUMBERS, 0, 0.0, 0.0004])
def test_a_bad_ttl_is_refused(offline: sneck.Client, ttl: float) -> None:
    with pytest.raises(ValueError, match="ttl"):
        offline.lock("x", ttl=ttl)
    with pytest.raises(ValueError, match="ttl"):
        offline.adopt("x", "token", ttl=ttl)
    with pytest.raises(ValueError, match="ttl"):
        offline.adopt("x", "token").extend(ttl)


@pytest.mark.parametrize("wait", BAD_NUMBERS)
def test_a_bad_wait_is_refused(offline: sneck.Client, wait: float) -> None:
    with pytest.raises(ValueError, match="wait"):
        offline.lock("x", wait=wait)


@pytest.mark.parametrize("max_hold", [*BAD_NUMBERS, 0, 0.0])
def test_a_bad_max_hold_is_refused(offline: sneck.Client, max_hold: float) -> None:
    for make in (offline.lock, offline.rlock):
        with pytest.raises(ValueError, match="max_hold"):
            make("x", max_hold=max_hold)
    with pytest.raises(ValueError, match="max_hold"):
        offline.adopt("x", "token", max_hold=max_hold)


def test_an_option_that_is_none_is_refused(offline: sneck.Client) -> None:
    for attempt in (
        lambda: offline.lock("x", renewed=True),  # type: ignore[call-arg]
        lambda: offline.rlock("x", renewed=True),  # type: ignore[call-arg]
        lambda: offline.adopt("x", "token", renewed=True),  # type: ignore[call-arg]
        lambda: offline.locked("x", renewed=True),  # type: ignore[call-arg]
        lambda: sneck.locked("x", renewed=True),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match="renewed"):
            attempt()


@pytest.mark.parametrize("poll", [*BAD_NUMBERS, 0, 0.0])
def test_a_bad_poll_interval_is_refused(offline: sneck.Client, poll: float) -> None:
    with pytest.raises(ValueError, match="poll"):
        offline.lock("x", poll=poll)
    with pytest.raises(ValueError, match="poll"):
        offline.adopt("x", "token", poll=poll)
    with pytest.raises(ValueError, match="poll"):
        offline.locked("x", poll=poll)(lambda: None)()


@pytest.mark.parametrize("timeout", [each for each in BAD_NUMBERS if each != -1])
def test_a_bad_timeout_is_refused(offline: sneck.Client, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        offline.lock("x").acquire(timeout=timeout)


@pytest.mark.parametrize("timeout", [*BAD_NUMBERS, 0])
@pytest.mark.parametrize("which", ["timeout", "connect_timeout"])
def test_a_bad_timeout_of_a_client_is_refused(which: str, timeout: float) -> None:
    options: dict[str, Any] = {which: timeout}
    with pytest.raises(ValueError, match=which):
        sneck.connect(NOWHERE, **options)


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_what_is_not_a_number_is_no_duration(offline: sneck.Client, value: Any) -> None:
    for attempt in (
        lambda: offline.lock("x", ttl=value),
        lambda: offline.lock("x", wait=value),
        lambda: offline.lock("x", poll=value),
        lambda: offline.lock("x").acquire(timeout=value),
        lambda: offline.adopt("x", "token").extend(value),
        lambda: sneck.connect(NOWHERE, timeout=value),
        lambda: sneck.connect(NOWHERE, connect_timeout=value),
    ):
        with pytest.raises(TypeError, match="a number of seconds"):
            attempt()


@pytest.mark.parametrize("value", ["no", "", b"x", 0, 1, [True]])
def test_what_is_not_a_bool_is_no_flag(offline: sneck.Client, value: Any) -> None:
    for call, option in (
        (offline.lock, "fair"),
        (offline.rlock, "fence"),
        (offline.lock, "renew"),
        (offline.legacy_lock, "renew"),
        (offline.legacy_lock, "milliseconds"),
        (sneck.aio.connect(NOWHERE).legacy_lock, "milliseconds"),
        (sneck.aio.connect(NOWHERE).lock, "fair"),
    ):
        make: Any = call
        with pytest.raises(TypeError, match=f"^{option} must be True or False, not "):
            make("x", **{option: value})
    with pytest.raises(TypeError, match="fence"):
        offline.lock("x", fence=None)  # type: ignore[arg-type]


def test_a_ttl_is_not_truncated(offline: sneck.Client) -> None:
    assert offline.lock("x", ttl=0.0035).ttl == 0.004
    assert offline.lock("x", ttl=0.07).ttl == 0.07
    assert offline.lock("x", ttl=1.001).ttl == 1.001
    assert offline.lock("x", ttl=365 * 24 * 3600).ttl == 365 * 24 * 3600


def test_the_shortest_wait_is_not_a_single_try(client: sneck.Client, name: str) -> None:
    with client.lock(name), pytest.raises(sneck.LockTimeout, match="within 1 ms"):
        client.lock(name, wait=1e-9).__enter__()


@pytest.mark.parametrize("value", [None, 1, 1.5, ["x"], bytearray(b"x"), object()])
def test_a_name_is_str_or_bytes(offline: sneck.Client, value: Any) -> None:
    with pytest.raises(TypeError, match="name"):
        offline.lock(value)
    with pytest.raises(TypeError, match="name"):
        offline.adopt(value, "token")
    with pytest.raises(TypeError, match="token"):
        offline.adopt("x", value)


@pytest.mark.parametrize("value", ["", b"", "x" * (2**20 + 1), "\udc80"])
def test_a_name_that_cannot_be_a_key_is_refused(offline: sneck.Client, value: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - one of them is an error of the codec
        offline.lock(value)


def test_names_may_hold_anything(client: sneck.Client) -> None:
    for odd in ("\0", "%s", "{", " ", "ü", b"\xff\x00", "x" * 65536):
        with client.lock(odd) as lock:
            assert client.execute("GET", odd) == lock.token


def test_a_str_and_its_utf8_are_the_same_name(client: sneck.Client) -> None:
    with client.lock("schlüssel"):
        assert client.lock("schlüssel".encode(), wait=0).acquire() is False


@pytest.mark.parametrize("option", ["client_name", "label"])
def test_texts_of_a_client_are_checked(option: str) -> None:
    options: dict[str, Any]
    for bad, error in ((b"bytes", TypeError), (1, TypeError), ("a\0b", ValueError)):
        options = {option: bad}
        with pytest.raises(error, match=option):
            sneck.connect(NOWHERE, **options)


@pytest.mark.parametrize("url", ["http://x", "redis://x:99999", "rediss://x", "nonsense", "a\0b"])
def test_a_bad_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are the core's
        sneck.connect(url)


def test_a_url_is_a_str() -> None:
    with pytest.raises(TypeError, match="url"):
        sneck.connect(b"redis://localhost")  # type: ignore[arg-type]


def test_a_prefix_is_put_before_every_name(server: Server, name: str) -> None:
    with sneck.connect(server.url, prefix=b"app:\xff:") as client, client.lock(name) as lock:
        assert client.execute("GET", b"app:\xff:" + name.encode()) == lock.token
        assert lock.name == name


def test_options_are_keywords_only() -> None:
    with pytest.raises(TypeError):
        sneck.connect(NOWHERE, 5.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        sneck.connect(NOWHERE).lock("x", 10)  # type: ignore[call-arg]


def test_classes_cannot_be_called() -> None:
    with pytest.raises(TypeError):
        sneck.Client()
    with pytest.raises(TypeError):
        sneck.Lock()
