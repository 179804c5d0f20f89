"""Operations of layers, and the seconds that they take at the rate of the hardware."""

import numpy as np
import pytest

from cost_models.analytic.dense import Layers, compute_seconds, gradient_all_reduce
from cost_models.collectives.collectives import Network
from cost_models.errors import MissingHardwareNumber
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from cost_models.vocabulary import Evidence


def hardware(**values: float) -> Hardware:
    return Hardware(
        profile="made-up",
        family="gpu",
        ranks_per_host=2,
        numbers={
            name: Quantity(value=value, unit="flops_per_second", evidence=Evidence.DATASHEET, source="here")
            for name, value in values.items()
        },
    )


def test_a_fully_connected_layer_has_a_weight_per_pair_and_a_bias_per_output() -> None:
    """13 x 512 + 512 x 4 and 3 x 5 weights."""
    layers = Layers(mlp_widths=[[13, 512, 4], [3, 5]])
    assert layers.num_weights == 6656 + 2048 + 15
    assert layers.num_parameters == layers.num_weights + 512 + 4 + 5
    assert layers.forward_flops_per_sample == 2 * layers.num_weights


@pytest.mark.parametrize(("rank", "weights"), [(None, 100 * 100), (8, 2 * 100 * 8)])
def test_a_cross_layer_has_one_full_matrix_or_two_narrow_ones(rank: int | None, weights: int) -> None:
    layers = Layers(num_cross_layers=3, cross_width=100, cross_rank=rank)
    assert layers.num_weights == 3 * weights
    assert layers.num_parameters == 3 * (weights + 100)


def test_seconds_are_operations_over_the_sustained_rate() -> None:
    machine = hardware(fp16_flops_per_second=1e14, tf32_flops_per_second=5e13, dense_efficiency=0.5)
    assert compute_seconds(1e12, "fp16", machine) == pytest.approx(0.02)
    assert compute_seconds(1e12, "tf32", machine) == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"dense_efficiency": 0.5}, "fp16_flops_per_second"),
        ({"fp16_flops_per_second": 1e14}, "dense_efficiency"),
    ],
)
def test_a_missing_number_is_refused_by_name(values: dict[str, float], name: str) -> None:
    with pytest.raises(MissingHardwareNumber, match=f"no {name}, needed for dense compute in fp16"):
        compute_seconds(1.0, "fp16", hardware(**values))


def test_gradients_are_reduced_like_those_of_replicas() -> None:
    network = Network(hardware=load_profile("dgx-h100-80g"), num_ranks=16, ranks_per_host=8)
    size = np.array([4e7])
    assert gradient_all_reduce(4e7, network).seconds == network.all_reduce(size, size).seconds > 0
    assert gradient_all_reduce(0.0, network).seconds.tolist() == [0.0]


def test_profiles_with_a_rate_have_an_efficiency_and_an_overhead() -> None:
    with_rates = 0
    for name in profile_ids():
        numbers = load_profile(name).numbers
        has_rate = any(number.unit == "flops_per_second" for number in numbers.values())
        assert ("dense_efficiency" in numbers) is ("step_overhead_seconds" in numbers) is has_rate
        if has_rate:
            with_rates += 1
            assert "interval" in numbers["dense_efficiency"].note
            assert "MLPerf" in numbers["dense_efficiency"].source
    assert with_rates >= 10


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_a_share_is_between_0_and_1(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        Quantity(value=share, unit="share", evidence=Evidence.GIVEN, source="here")
