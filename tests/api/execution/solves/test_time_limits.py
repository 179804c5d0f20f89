"""The time that a solve may take: the shortest of its spec, the server and the deadline."""

import json

import pytest

from api.execution.solves.time_limits import deadline_warnings, spec_in_time, within_server_limit


def spec(limit: float, work: float | None = None) -> dict[str, object]:
    work_limit = {} if work is None else {"work_limit_seconds": work}
    return {"name": "n", "solver": {"time_limit_seconds": limit, **work_limit, "seed": 3}}


def test_a_spec_within_the_limit_stays_as_it_is() -> None:
    for maximum in (None, 10.0, 11.0):
        assert within_server_limit(spec(10.0, 5.0), maximum) == (spec(10.0, 5.0), ())


def test_the_limit_of_the_server_is_reported() -> None:
    limited, (warning,) = within_server_limit(spec(10.0, 7.0), 5.0)
    assert limited == spec(5.0, 5.0)
    assert (warning.code, warning.severity) == ("time-limit-clamped", "warning")
    assert warning.pointer == "/solver/time_limit_seconds"
    assert "5 seconds" in warning.message
    assert "10" in warning.message
    assert within_server_limit(spec(10.0, 3.0), 5.0)[0] == spec(5.0, 3.0)


@pytest.mark.parametrize(("left", "limit"), [(2.5, 2.5), (1.23456, 1.234), (1e-9, 0.001)])
def test_the_deadline_is_reported(left: float, limit: float) -> None:
    (warning,) = deadline_warnings(spec(10.0), left)
    assert (warning.code, warning.severity) == ("time-limit-deadline", "warning")
    assert f"{limit:g} seconds" in warning.message
    assert deadline_warnings(spec(10.0), 10.0) == ()
    limited = spec_in_time(json.dumps(spec(10.0)).encode(), deadline_at=100.0 + left, now=100.0)
    assert json.loads(limited or b"")["solver"]["time_limit_seconds"] == pytest.approx(limit, abs=1e-3)


def test_what_a_solve_waited_is_taken_off_its_time() -> None:
    content = json.dumps(spec(10.0)).encode()
    assert spec_in_time(content, deadline_at=None, now=5.0) is content
    assert json.loads(spec_in_time(content, deadline_at=9.0, now=5.0) or b"") == spec(4.0)
    assert spec_in_time(content, deadline_at=5.0, now=5.0) is None
