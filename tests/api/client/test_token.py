"""The launcher's key: where it comes from, where it goes, and where it does not."""

import httpx
import pytest

from api.client import PlannerClient, ProblemError
from tests.support.client.plans import tiny_bytes

TOKEN = "shardplan_0123456789ab_" + "s" * 43


def shown(client_token: str | None) -> str | None:
    """The header that a service sees."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, content=tiny_bytes())

    with PlannerClient("http://planner", token=client_token, transport=httpx.MockTransport(answer)) as client:
        client.fetch_channel("c")
    return requests[0].headers.get("Authorization")


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [
        (None, None, None),
        (None, "", None),
        (None, TOKEN, f"Bearer {TOKEN}"),
        (TOKEN, None, f"Bearer {TOKEN}"),
        (f"{TOKEN}\n", "other", f"Bearer {TOKEN}"),
    ],
)
def test_the_key_is_sent(
    monkeypatch: pytest.MonkeyPatch, given: str | None, variable: str | None, expected: str | None
) -> None:
    monkeypatch.delenv("SHARDPLAN_TOKEN", raising=False)
    if variable is not None:
        monkeypatch.setenv("SHARDPLAN_TOKEN", variable)
    assert shown(given) == expected


@pytest.mark.parametrize("token", ["", " \n", "secret\r\nX-Other: 1", "secret word", "sécret"])
def test_what_is_no_key_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII") as caught:
        PlannerClient("http://planner", token=token)
    assert "cret" not in str(caught.value)


def test_the_key_goes_nowhere_else() -> None:
    hosts: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        return httpx.Response(401, json={"title": "A key is needed"}, headers={"WWW-Authenticate": "Bearer"})

    def lead_away(request: httpx.Request) -> httpx.Response:
        hosts.append(request.url.host)
        return httpx.Response(307, headers={"Location": "http://elsewhere/v1/channels/c/plan"})

    with PlannerClient("http://planner", token=TOKEN, transport=httpx.MockTransport(lead_away)) as client:
        with pytest.raises(Exception, match=r".") as caught:
            client.fetch_channel("c")
        assert TOKEN not in f"{caught.value!r}"
    with (
        PlannerClient("http://planner", token=TOKEN, transport=httpx.MockTransport(answer)) as client,
        pytest.raises(ProblemError, match="401 A key is needed") as refused,
    ):
        client.fetch_channel("c")
    assert hosts == ["planner", "planner"]  # a refusal is not tried again, and a redirect is not followed
    assert TOKEN not in f"{refused.value!r}"
