"""What holds for any argument, looked for by hypothesis."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sneck
from sneck.testing import Server

LABELS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
YEAR = 365 * 24 * 3600.0
NOWHERE = "unix:///nonexistent/never-connected"
same_server = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(st.floats())
@settings(deadline=None)
def test_a_ttl_is_rounded_up_to_a_millisecond_or_refused(ttl: float) -> None:
    """NaN, infinities, zero, negative and tiny ones are among what is tried."""
    client = sneck.connect(NOWHERE)
    if math.isfinite(ttl) and 0.0021 <= ttl <= YEAR:
        kept = client.lock("door", ttl=ttl).ttl
        assert ttl - 1e-6 <= kept <= ttl + 0.001001
    elif not 0.002 < ttl < 0.0021:
        with pytest.raises(ValueError, match="ttl"):
            client.lock("door", ttl=ttl)


@given(st.one_of(st.text(), st.binary()))
@settings(deadline=None)
def test_a_name_is_any_text_or_bytes_that_is_not_empty(name: str | bytes) -> None:
    """Lone surrogates have no bytes, so they are refused."""
    client = sneck.connect(NOWHERE)
    try:
        valid = bool(name.encode() if isinstance(name, str) else name)
    except UnicodeEncodeError:
        valid = False
    if valid:
        assert client.lock(name).name == name
    else:
        with pytest.raises(ValueError):  # noqa: PT011 - which of both does not matter
            client.lock(name)


@same_server
@given(
    label=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=70)
)
def test_any_label_leaves_a_token_that_can_be_read(server: Server, label: str) -> None:
    """What would break the token's form is replaced, and what is too long is cut."""
    with sneck.connect(server.url) as client, client.lock("door", label=label) as lock:
        holder = lock.holder()
    assert holder is not None
    assert not holder.foreign
    clean = "".join("_" if c <= " " or c in ":\x7f" else c for c in label)
    assert clean.startswith(holder.label)
    assert holder.label == clean or len(clean.encode()) > 63
