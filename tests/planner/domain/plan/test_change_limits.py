"""Limits of the difference of two plans: errors that both share cancel, others do not."""

import pytest

from planner.domain.plan.change_limits import PricedPhase, PricedPlan, change_limits, phase_factors


def plan(forward: float, comm: float, *, types: str = "table_wise", kernels: str = "fused") -> PricedPlan:
    return PricedPlan(
        phases={"forward_compute": PricedPhase(forward, 0.5, 2.0), "forward_comm": PricedPhase(comm, 0.8, 1.25)},
        sharding_types=frozenset(types.split()),
        kernels=frozenset(kernels.split()),
    )


def test_equal_plans_differ_by_nothing() -> None:
    assert change_limits(plan(1.0, 1.0), plan(1.0, 1.0)) == (0.0, 0.0)


def test_a_phase_that_only_shrinks_is_a_gain_whatever_its_error() -> None:
    assert change_limits(plan(1.0, 1.0), plan(0.9, 1.0)) == pytest.approx((-0.2, -0.05))


def test_a_gain_in_one_phase_against_a_loss_in_another_may_be_none() -> None:
    least, most = change_limits(plan(1.0, 1.0), plan(0.8, 1.1))  # 0.1 less, as predicted
    assert (least, most) == pytest.approx((-0.4 + 0.08, -0.1 + 0.125))
    assert least < 0 < most


def test_other_sharding_types_have_errors_of_their_own_in_communication() -> None:
    least, most = change_limits(plan(1.0, 1.0), plan(1.0, 0.9, types="row_wise"))
    assert (least, most) == pytest.approx((0.9 * 0.8 - 1.25, 0.9 * 1.25 - 0.8))


def test_other_kernels_have_errors_of_their_own_in_computation() -> None:
    least, most = change_limits(plan(1.0, 1.0), plan(0.9, 1.0, kernels="fused fused_uvm"))
    assert (least, most) == pytest.approx((0.45 - 2.0, 1.8 - 0.5))


def test_the_wider_limits_of_both_plans_count() -> None:
    narrow = PricedPlan(
        phases={"forward_compute": PricedPhase(1.0, 0.9, 1.1)},
        sharding_types=frozenset({"table_wise"}),
        kernels=frozenset({"fused"}),
    )
    wide = PricedPlan(
        phases={"forward_compute": PricedPhase(2.0, 0.7, 1.5)},
        sharding_types=frozenset({"table_wise"}),
        kernels=frozenset({"fused"}),
    )
    assert change_limits(narrow, wide) == pytest.approx((0.7, 1.5))
    assert change_limits(wide, narrow) == pytest.approx((-1.5, -0.7))


def test_a_phase_that_one_plan_lacks_counts_from_nothing() -> None:
    none = PricedPlan(phases={}, sharding_types=frozenset({"table_wise"}), kernels=frozenset({"fused"}))
    assert change_limits(none, plan(1.0, 0.0)) == pytest.approx((0.5, 2.0))


def test_factors_of_a_phase() -> None:
    assert phase_factors(2.0, 1.0, 3.0) == (0.5, 1.5)
    assert phase_factors(0.0, 0.0, 0.0) == (1.0, 1.0)
    assert phase_factors(2.0, None, None) is None
