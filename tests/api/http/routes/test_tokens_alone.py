"""Tokens, and services of their own that take them or do not."""

from dataclasses import replace
from pathlib import Path

from tests.support.contracts.store.values import new_solve
from tests.support.service.issuer import Issuer, claims, signed
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny
from tests.support.thorough import thorough

LIMIT = 30


def test_a_service_without_an_issuer_takes_no_token(tmp_path: Path) -> None:
    with Live.of(tmp_path, auth="keys") as live:
        headers = {"Authorization": f"Bearer {signed(claims('https://login.example'))}"}
        assert_problem(live.get("/v1/solves", headers=headers), 401, "unauthorized")


@thorough
def test_an_issuer_that_does_not_answer(tmp_path: Path) -> None:
    with Issuer().running() as issuer, Live.of(tmp_path, **issuer.settings()) as live:
        issuer.is_down = True
        headers = {"Authorization": f"Bearer {signed(claims(issuer.url))}"}
        answer = live.get("/v1/solves", headers=headers)
        problem = assert_problem(answer, 503, "issuer-unavailable")
        assert problem["retryable"]
        assert int(answer.headers["retry-after"]) >= 1


def test_tokens_are_counted_by_their_subject(tmp_path: Path) -> None:
    with Issuer().running() as issuer:
        settings = issuer.settings(rate_limit_per_minute=LIMIT)
        with Live.of(tmp_path, **settings) as live:
            one = [{"Authorization": f"Bearer {signed(claims(issuer.url, jti=str(n)))}"} for n in range(2)]
            other = {"Authorization": f"Bearer {signed(claims(issuer.url, sub='joe'))}"}
            found: list[int] = []
            while 429 not in found and len(found) < 2 * LIMIT:  # on a slow machine some are refilled meanwhile
                found.append(live.get("/v1/solves", headers=one[len(found) % 2]).status_code)
            assert found == [200] * (len(found) - 1) + [429]
            assert len(found) > LIMIT
            assert live.get("/v1/solves", headers=other).status_code == 200


@thorough
def test_without_an_issuer_and_keys_every_priority_is_anybodys(tmp_path: Path) -> None:
    with Live.of(tmp_path) as live:
        assert live.post("/v1/solves?priority=100", TINY).status_code == 202


def test_a_priority_above_0_needs_a_scope(tmp_path: Path) -> None:
    with Issuer().running() as issuer, Live.of(tmp_path, **issuer.settings()) as live:

        def headers(scope: str) -> dict[str, str]:
            return {"Authorization": f"Bearer {signed(claims(issuer.url, scope=scope))}"}

        for scope, priority, status in (
            ("solve", 1, 403),
            ("solve", 100, 403),
            ("solve", 0, 202),
            ("solve", -100, 202),
            ("solve promote", 1, 202),
            ("admin", 100, 202),
        ):
            spec = tiny(solver__seed=priority + 200)
            answer = live.post(f"/v1/solves?priority={priority}&fresh=true", spec, headers=headers(scope))
            assert answer.status_code == status, (scope, priority, answer.text)
            if status == 403:
                detail = assert_problem(answer, 403, "forbidden")["detail"]
                assert "a priority above 0 needs the scope promote" in detail
                assert 'scope="promote"' in answer.headers["www-authenticate"]
        # Nor by the way of trying again what somebody else asked for.
        store = live.app.state.services.store
        like = store.solve(answer.json()["id"])
        spec_bytes = store.spec(like.request_digest)
        new = replace(new_solve(1, request=like.request_digest), assumptions=[], warnings=[])
        hurried = replace(new, spec_bytes=spec_bytes, priority=5)
        store.accept(hurried, max_queued=99, reuse=False)
        assert store.request_cancel(hurried.id, now=1.0).state == "cancelled"
        again = f"/v1/solves/{hurried.id}:retry"
        assert_problem(live.post(again, headers=headers("solve")), 403, "forbidden")
        assert live.post(again, headers=headers("solve promote")).status_code == 202
