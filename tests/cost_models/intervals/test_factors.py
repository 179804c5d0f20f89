"""Factors of measured over predicted seconds: by what is predicted and by its range."""

import pytest

from cost_models.intervals.factors import Factors, kernel_factors, link_factors, number_error

KINDS = ("forward device", "forward host", "backward device", "backward host")


@pytest.mark.parametrize("kind", KINDS)
def test_small_launches_are_known_less_well_than_large_ones(kind: str) -> None:
    small, large = kernel_factors(kind, 999_999.0), kernel_factors(kind, 1e6)  # type: ignore[arg-type]
    assert small.upper > large.upper
    assert small.upper / small.lower > 1.5
    assert kernel_factors(kind, 0.0) == small  # type: ignore[arg-type]
    assert kernel_factors(kind, 1e12) == large  # type: ignore[arg-type]


@pytest.mark.parametrize("reach", ["domain", "hosts"])
def test_links_without_a_law_have_factors_of_every_size(reach: str) -> None:
    found = [link_factors(reach, size) for size in (0.0, 1e5, 1e7, 1e9)]  # type: ignore[arg-type]
    assert len({(one.lower, one.upper) for one in found}) == 4
    assert all(one.lower < 0.8 or one.upper > 1.2 for one in found)


def test_a_number_may_be_wrong_by_less_than_itself() -> None:
    assert 0 < number_error() < 1


@pytest.mark.parametrize(("lower", "upper"), [(1.1, 1.2), (0.8, 0.9), (0.0, 1.0), (0.5, float("inf"))])
def test_factors_that_leave_out_the_prediction_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(ValueError, match="lower <= 1 <= upper"):
        Factors(lower=lower, upper=upper)
