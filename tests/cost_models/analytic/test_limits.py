"""Limits of analytic seconds: numbers at their errors, laws at their intervals, launches by what they do."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.analytic.limits import limits_of
from cost_models.analytic.roofline import RooflineModel
from cost_models.analytic.serving import ServingModel
from cost_models.analytic.torchrec import TorchRecModel
from cost_models.arrays import Floats
from cost_models.hardware.hardware import Hardware, Limit, Quantity
from cost_models.hardware.profiles_loader import load_profile
from cost_models.intervals.factors import kernel_factors, link_factors, number_error
from cost_models.protocol import IntervalModel, SecondsLimits, ShardWork
from cost_models.vocabulary import Evidence, Kernel, Phase, Scheme
from tests.support.cost_models.laws import domain_law, laws
from tests.support.cost_models.shard_work import hardware, plain_hardware, table_shard

MANY = 1e7
LINKS = {"intra_host_bytes_per_second": 1e11}
FORWARD, BACKWARD = Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE


def factors(work: ShardWork, machine: Hardware, phase: Phase, launch_lookups: float = MANY) -> tuple[float, float]:
    """Limits of the first shard as shares of its seconds."""
    model = RooflineModel()
    seconds = model.predict(work, machine).seconds[0, phase]
    limits = model.limits(work, machine, launch_lookups=launch_lookups)
    return limits.lower_seconds[0, phase] / seconds, limits.upper_seconds[0, phase] / seconds


def with_error(machine: Hardware, name: str, error: float) -> Hardware:
    return replace(machine, numbers={**machine.numbers, name: replace(machine.numbers[name], relative_error=error)})


def test_a_number_that_states_its_error_gives_limits_that_far_away() -> None:
    machine = with_error(plain_hardware(), "hbm_bytes_per_second", 0.6)
    assert factors(table_shard(Scheme.TABLE_WISE), machine, FORWARD) == pytest.approx((1 / 1.6, 1.6))


def test_a_number_without_an_error_has_that_of_all_numbers() -> None:
    wide, public = 1 + number_error(), kernel_factors("forward device", MANY)
    expected = min(1 / wide, public.lower), max(wide, public.upper)
    assert factors(table_shard(Scheme.TABLE_WISE), plain_hardware(), FORWARD) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kernel", "phase", "kind"),
    [
        (Kernel.FUSED, FORWARD, "forward device"),
        (Kernel.FUSED, BACKWARD, "backward device"),
        (Kernel.FUSED_UVM, FORWARD, "forward host"),
        (Kernel.FUSED_UVM, BACKWARD, "backward host"),
    ],
)
def test_limits_are_never_closer_than_public_launches_lie(kernel: Kernel, phase: Phase, kind: str) -> None:
    machine = hardware(hbm_bytes_per_second=1e12, host_link_bytes_per_second=1e10, ddr_bytes_per_second=1e11, **LINKS)
    for name in machine.numbers:
        machine = with_error(machine, name, 1e-6)
    work = table_shard(Scheme.TABLE_WISE, kernel=kernel)
    for lookups in (1e3, MANY):
        public = kernel_factors(kind, lookups)  # type: ignore[arg-type]
        expected = (public.lower, public.upper)
        assert factors(work, machine, phase, lookups) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("message_bytes", "limits"), [(1e5, (0.8, 1.25)), (2e6, (0.9, 1.1))])
def test_a_collective_has_the_interval_of_its_law(message_bytes: float, limits: tuple[float, float]) -> None:
    machine = hardware(laws=laws(domain_law()), hbm_bytes_per_second=1e12, **LINKS)
    work = table_shard(Scheme.TABLE_WISE, forward_message_bytes=message_bytes)
    assert factors(work, machine, Phase.FORWARD_COMM) == pytest.approx(limits)


def test_a_collective_without_a_law_has_the_factors_of_constant_rates() -> None:
    work = table_shard(Scheme.TABLE_WISE)
    expected = link_factors("domain", work.forward_message_bytes)
    found = factors(work, plain_hardware(), Phase.FORWARD_COMM)
    assert found == pytest.approx((expected.lower, expected.upper))


def test_rates_and_times_move_to_opposite_sides_and_bytes_stay() -> None:
    def number(unit: str) -> Quantity:
        return Quantity(value=8.0, unit=unit, evidence=Evidence.MEASURED, source="test", relative_error=0.25)

    found = {
        unit: [number(unit).at_limit(limit).value for limit in (Limit.FASTEST, Limit.NONE, Limit.SLOWEST)]
        for unit in ("bytes_per_second", "seconds", "bytes")
    }
    assert found == {"bytes_per_second": [10.0, 8.0, 6.4], "seconds": [6.4, 8.0, 10.0], "bytes": [8.0, 8.0, 8.0]}


@pytest.mark.parametrize(
    "profile", ["dgx-h100-80g", "dgx-b200-180g", "gb200-nvl72", "mi300x-8x-400g", "azure-ndv4-a100-40g"]
)
@pytest.mark.parametrize("scheme", list(Scheme))
def test_limits_enclose_the_seconds_on_every_machine(profile: str, scheme: Scheme) -> None:
    machine, work, model = load_profile(profile), table_shard(scheme), RooflineModel()
    seconds = model.predict(work, machine).seconds
    limits = limits_of(model, work, machine, MANY)
    assert np.all((limits.lower_seconds <= seconds) & (seconds <= limits.upper_seconds))
    takes_time = seconds > 0
    assert np.all(limits.lower_seconds[takes_time] < limits.upper_seconds[takes_time])
    assert np.all(limits.upper_seconds[~takes_time] == 0)


def by_numbers(work: ShardWork, machine: Hardware, limit: Limit) -> Floats:
    """Compute seconds with every number at its limit, as shares of those as stated."""
    stated, limited = (RooflineModel().predict(work, one).seconds[0] for one in (machine, machine.at_limit(limit)))
    compute = [FORWARD, BACKWARD]
    shares: Floats = limited[compute] / stated[compute]
    return shares


def test_a_scaled_gpu_is_known_less_well_than_the_one_that_was_measured() -> None:
    work = table_shard(Scheme.TABLE_WISE)
    for phase in (FORWARD, BACKWARD):
        measured, scaled = (factors(work, load_profile(name), phase) for name in ("dgx-h100-80g", "dgx-b200-180g"))
        assert scaled[1] >= measured[1]
        assert scaled[0] <= measured[0]
    for limit, sign in ((Limit.FASTEST, -1), (Limit.SLOWEST, 1)):
        known, guessed = (by_numbers(work, load_profile(name), limit) for name in ("dgx-h100-80g", "dgx-b200-180g"))
        assert np.all(sign * guessed > sign * known)


def test_models_with_limits() -> None:
    assert isinstance(RooflineModel(), IntervalModel)
    assert isinstance(ServingModel(), IntervalModel)
    assert not isinstance(TorchRecModel(), IntervalModel)


def test_limits_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match="lower_seconds <= upper_seconds"):
        SecondsLimits(lower_seconds=np.ones((1, 7)), upper_seconds=np.zeros((1, 7)))
