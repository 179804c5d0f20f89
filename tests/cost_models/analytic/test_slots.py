"""What finding slots costs: hand-computed."""

import numpy as np
import pytest

from cost_models.analytic.roofline import RooflineModel
from cost_models.analytic.slots import COUNTED_ERROR, add_slots
from cost_models.analytic.tally import Tally
from cost_models.hardware.hardware import Hardware, Limit
from cost_models.learned.ranks.analytic import analytic_seconds
from cost_models.protocol import ShardSeconds, ShardWork
from cost_models.vocabulary import Evidence, Phase, Scheme
from tests.support.cost_models.shard_work import gpu_hardware, hardware, shard_work

RATE = 1e10


def found(work: ShardWork, machine: Hardware) -> ShardSeconds:
    tally = Tally(work.num_shards)
    add_slots(tally, work, machine)
    return tally.result()


def slots(**columns: object) -> ShardWork:
    return shard_work(
        scheme=Scheme.ROW_WISE,
        row_shards=8,
        lookups=1000.0,
        shard_rows=5000,
        **{"slot_lookup_bytes": 200.0, "slot_upkeep_bytes": 3.0, "slot_launches": 10.0} | columns,
    )


def test_bytes_of_lookups_and_slots_move_at_the_rate_of_the_memory() -> None:
    processor = hardware(family="cpu", ddr_bytes_per_second=RATE)
    result = found(slots(), processor)
    assert result.seconds[0, Phase.FORWARD_COMPUTE] == pytest.approx((1000 * 200 + 5000 * 3) / RATE)
    assert result.evidence[0, Phase.FORWARD_COMPUTE] == Evidence.ESTIMATED
    assert np.count_nonzero(result.seconds) == 1


def test_kernels_are_launched_where_that_is_known_to_take_time() -> None:
    plain, launching = (
        hardware(family="cpu", ddr_bytes_per_second=RATE, **more) for more in ({}, {"kernel_launch_seconds": 4e-6})
    )
    more = found(slots(), launching).seconds - found(slots(), plain).seconds
    assert more[0, Phase.FORWARD_COMPUTE] == pytest.approx(10 * 4e-6)


def test_tables_of_numbered_rows_cost_nothing() -> None:
    none = slots(slot_lookup_bytes=0.0, slot_upkeep_bytes=0.0, slot_launches=0.0)
    assert not found(none, gpu_hardware()).seconds.any()


def test_both_models_price_slots() -> None:
    machine = gpu_hardware()
    with_slots, without = slots(), slots(slot_lookup_bytes=0.0, slot_upkeep_bytes=0.0, slot_launches=0.0)
    expected = found(with_slots, machine).seconds
    roofline = RooflineModel()
    difference = roofline.predict(with_slots, machine).seconds - roofline.predict(without, machine).seconds
    assert difference == pytest.approx(expected, abs=1e-15)
    measured = np.zeros(1, dtype=np.bool_)
    difference = (
        analytic_seconds(with_slots, machine, measured, ()).seconds
        - analytic_seconds(without, machine, measured, ()).seconds
    )
    assert difference == pytest.approx(expected, abs=1e-15)


def test_limits_are_wide() -> None:
    machine = hardware(family="cpu", ddr_bytes_per_second=RATE)
    stated = found(slots(), machine).seconds.sum()
    fastest, slowest = (found(slots(), machine.at_limit(one)).seconds.sum() for one in (Limit.FASTEST, Limit.SLOWEST))
    assert fastest < stated / (1 + COUNTED_ERROR) * 1.001
    assert slowest > stated * (1 + COUNTED_ERROR) * 0.999
