"""The code of docs/webhooks.md verifies what is sent, and nothing else."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from api.services.webhooks.delivery_worker import NUM_AT_ONCE, Patience
from api.services.webhooks.signature import new_secret, secret_text, signed_headers
from api.store.webhooks.records import EVENTS, MAX_DELIVERIES, MAX_WEBHOOKS

NOW = 1_800_000_000


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "webhooks.md").read_text()


@pytest.fixture
def verify(page: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "docs/webhooks.md", "exec"), names)
    monkeypatch.setattr("time.time", lambda: float(NOW))
    return names["verify"]


def test_a_message_is_verified(verify: Callable[..., str]) -> None:
    secret = new_secret()
    headers = signed_headers(secret, "msg_1", b'{"a": 1}', timestamp=NOW - 200)
    assert verify(secret_text(secret), headers, b'{"a": 1}') == "msg_1"
    # A receiver that changes its secret may be sent two signatures.
    two = {**headers, "webhook-signature": f"v1,bm8= {headers['webhook-signature']}"}
    assert verify(secret_text(secret), two, b'{"a": 1}') == "msg_1"


def test_what_was_changed_or_recorded_is_refused(verify: Callable[..., str]) -> None:
    secret = new_secret()
    headers = signed_headers(secret, "msg_1", b"{}", timestamp=NOW)
    for changed, body in (
        (headers, b"{ }"),
        ({**headers, "webhook-id": "msg_2"}, b"{}"),
        ({**headers, "webhook-timestamp": str(NOW + 1)}, b"{}"),
        ({**headers, "webhook-signature": "v1,"}, b"{}"),
        (signed_headers(new_secret(), "msg_1", b"{}", timestamp=NOW), b"{}"),
        (signed_headers(secret, "msg_1", b"{}", timestamp=NOW - 301), b"{}"),
    ):
        with pytest.raises(ValueError, match=r"not genuine|too old"):
            verify(secret_text(secret), changed, body)


def test_the_page_reports_the_events_and_the_bounds(page: str) -> None:
    for event in EVENTS:
        assert f"`{event}`" in page
    assert f"at most {MAX_WEBHOOKS} webhooks" in page
    assert f"last {MAX_DELIVERIES:,} messages" in page
    assert f"at most {NUM_AT_ONCE} messages at a time" in page
    assert f"attempted {Patience().attempts} times in some 22 hours" in page
