"""What is said of measured and predicted seconds."""

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.prices.real_steps.measured import Measured
from benchmarks.prices.real_steps.models import bare_model
from benchmarks.prices.real_steps.planners import whole_tables
from benchmarks.prices.real_steps.plans import OURS, TORCHREC, TWIN, NamedPlan, Prediction, problem_of
from benchmarks.prices.real_steps.random_plans import random_placements
from benchmarks.prices.real_steps.report import as_json, is_reached, model_lines, summary_lines
from benchmarks.prices.real_steps.verdict import ModelResult, kind_starts

PROBLEM = problem_of(bare_model(), {"profile": "cpu-xeon-vm", "num_hosts": 1, "ranks_per_host": 2})


def plans(count: int, ours: int) -> list[NamedPlan]:
    """TorchRec's first and, as a twin, last; the plan ``ours`` is also ours."""
    random = random_placements(PROBLEM, np.random.default_rng(7))
    placements = [whole_tables(PROBLEM, [1.0] * len(PROBLEM.tables)), *(next(random) for _ in range(count - 1))]
    named = [
        NamedPlan(
            names=(
                *((TORCHREC,) if index == 0 else ()),
                *((f"{OURS}roofline",) if index == ours else ()),
                *((f"random {index}",) if index not in (0, ours) else ()),
            ),
            placement=placement,
        )
        for index, placement in enumerate(placements)
    ]
    return [*named, NamedPlan(names=(TWIN,), placement=placements[0])]


def result(
    seconds: Sequence[float], predicted: Sequence[float], *, ours: int, spread: float = 0.0, rounds: int = 40
) -> ModelResult:
    """Plans that take ``seconds`` but for log-normal noise; the last one is the first one's twin."""
    steps = np.array(seconds) * np.exp(spread * np.random.default_rng(0).standard_normal((rounds, 3, len(seconds))))
    measured = Measured(steps=steps, busy=steps / 2, phases=[], collectives={}, build_seconds=1.0, load=(0.1, 0.2))
    predictions = [Prediction(step_seconds=one, phases={"input_comm": one}) for one in predicted]
    return ModelResult(
        model="m", plans=plans(len(seconds) - 1, ours), measured=measured, predictions={"roofline": predictions}
    )


def test_order_winner_and_regret() -> None:
    found = result([3.0, 1.0, 2.0, 4.0, 3.0], [3.0, 2.0, 1.0, 4.0, 3.0], ours=2)
    verdict = found.verdict("roofline")
    assert verdict.tau == pytest.approx((5 - 1) / 6)  # of six pairs one is in the wrong order; the twin is no pair
    assert verdict.plan == f"{OURS}roofline"
    assert verdict.over_best == pytest.approx(2.0)
    assert verdict.over_torchrec == pytest.approx(2 / 3)
    assert verdict.picked_over_best == pytest.approx(2.0)
    assert verdict.ratio == pytest.approx(1.0)
    assert found.noise == pytest.approx(0.0)


def test_a_twin_that_takes_longer_is_noise() -> None:
    assert result([2.0, 1.0, 4.0, 2.2], [1.0] * 4, ours=1).noise == pytest.approx(np.log(1.1))


def test_the_best_of_many_equal_plans_is_no_better_than_the_others() -> None:
    """Chosen and compared in the same rounds, the luckiest of 20 equal plans would be ahead of ours by its luck."""
    found = result([1.0] * 21, [1.0] * 21, ours=3, spread=0.3, rounds=20)
    best = found.measured.seconds.min()
    luck = found.measured.seconds[3] / best
    over_best = found.verdict("roofline").over_best
    assert luck > 1.04
    assert abs(np.log(over_best)) < np.log(luck)


def test_early_steps_count_and_bursts_do_not() -> None:
    found = result([1.0, 2.0, 1.0], [1.0, 2.0, 1.0], ours=1)
    found.measured.steps[::2, :, 0] *= 9
    assert found.measured.seconds.tolist() == [1.0, 2.0, 1.0]


def test_halves_are_every_second_round() -> None:
    found = result([1.0, 2.0, 1.0], [1.0, 2.0, 1.0], ours=1, rounds=6)
    found.measured.steps[1::2, :, 1] = 4.0
    first, second = found.measured.halves
    assert (first.tolist(), second.tolist()) == ([1.0, 2.0, 1.0], [1.0, 4.0, 1.0])
    assert found.noise == pytest.approx(np.log(2) / np.sqrt(3))  # the root mean square over three plans


def test_starts_of_sharding_types_are_found() -> None:
    starts = {"row_wise": 4e-3, "table_wise": 1e-3, "column_wise": 2e-3}
    made = plans(40, ours=1)
    seconds = [5e-3 + sum(starts.get(kind, 0.5e-3) for kind in plan.kinds) for plan in made]
    bare = result(seconds, [1e-6] * len(seconds), ours=1, spread=0.02)
    found = {one.kind: one for one in kind_starts(bare)}
    for kind, expected in starts.items():
        assert found[kind].seconds == pytest.approx(expected, rel=0.15), kind
        assert found[kind].busy_seconds == pytest.approx(expected / 2, rel=0.15)
        assert 0 < found[kind].error_seconds < 0.5e-3
        assert found[kind].num_plans == sum(kind in plan.kinds for plan in bare.plans)


@pytest.mark.parametrize(
    ("ours_seconds", "predicted", "is_as_wanted"),
    [
        (1.0, [3.0, 1.0, 2.0, 4.0, 3.0], True),
        (2.5, [3.0, 1.0, 2.0, 4.0, 3.0], False),  # slower than another
        (1.0, [3.0, 1.0, 5.0, 4.0, 3.0], False),  # tau below 0.8
    ],
)
def test_targets(ours_seconds: float, predicted: list[float], is_as_wanted: bool) -> None:
    assert is_reached([result([3.0, ours_seconds, 2.0, 4.0, 3.0], predicted, ours=1)]) is is_as_wanted


def test_noise_gives_no_verdict_and_says_so() -> None:
    found = result([3.0, 1.0, 2.0, 4.0, 3.5], [3.0, 1.0, 2.0, 4.0, 3.0], ours=1)
    assert found.noise == pytest.approx(np.log(3.5 / 3.0))
    assert not is_reached([found])
    assert "noise above 10% on m: no verdict there" in "\n".join(summary_lines([found], []))


def test_the_report_shows_every_plan_and_every_figure() -> None:
    found = result([3e-3, 1e-3, 2e-3, 3e-3], [3e-3, 1e-3, 2e-3, 3e-3], ours=1)
    text = "\n".join([*model_lines(found), *summary_lines([found], [])])
    assert "3 plans, 40 rounds of 3 steps; 1.00 ms (ours: roofline) to 3.00 ms" in text
    for plan in found.plans[:3]:
        assert plan.name in text
    assert "roofline: tau 1.00 to 1.00" in text
    starts = kind_starts(result([5e-3] * 41, [1e-6] * 41, ours=1))
    assert "table_wise" in "\n".join(summary_lines([found], starts))
    assert {"kind", "seconds", "error_seconds", "busy_seconds", "num_plans"} == {
        *as_json([found], starts, {})["starts"][0]
    }
    document = as_json([found], [], {"cpu": "x"})
    assert document["models"][0]["verdicts"][0]["over_torchrec"] == pytest.approx(1 / 3)
    assert [plan["measured_seconds"] for plan in document["models"][0]["plans"]] == [3e-3, 1e-3, 2e-3, 3e-3]
    assert document["models"][0]["plans"][0]["predicted"]["roofline"]["phases"] == {"input_comm": 3e-3}
