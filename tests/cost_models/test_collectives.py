"""Collectives by hand: curves, latency, hosts, and shares that add up."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models.collectives import Network, bus_bytes_per_second
from cost_models.errors import MissingHardwareNumber
from cost_models.hardware import Curve, Hardware
from cost_models.profiles_loader import load_profile
from cost_models.vocabulary import Evidence
from tests.cost_models.builders import hardware, plain_hardware

MIB = 2.0**20
CURVE = Curve(
    message_bytes=(1e3, 1e6),
    bus_bytes_per_second=(1e8, 1e10),  # 10 us, then 100 us
    num_ranks=8,
    evidence=Evidence.MEASURED,
    source="a test bench",
)


def network(machine: Hardware, num_ranks: int = 8, ranks_per_host: int = 8) -> Network:
    return Network(hardware=machine, num_ranks=num_ranks, ranks_per_host=ranks_per_host)


def one(value: float) -> np.ndarray:
    return np.array([value])


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        (1e3, 10e-6),  # a measured point
        (1e6, 100e-6),  # the other
        (1e3 * 1e3**0.5, 10e-6 * 10**0.5),  # half way in both logarithms
        (10.0, 10e-6),  # shorter than measured: the latency stays
        (3e6, 300e-6),  # longer than measured: the bandwidth stays
    ],
)
def test_curves_are_read_in_logarithms(message: float, seconds: float) -> None:
    assert message / bus_bytes_per_second(CURVE, one(message))[0] == pytest.approx(seconds)


def test_an_empty_message_is_read_at_the_largest_size() -> None:
    assert bus_bytes_per_second(CURVE, one(0.0))[0] == pytest.approx(1e10)


@pytest.mark.parametrize("profile", ["dgx-a100-80g", "dgx-h100-80g", "dgx-h200-141g", "dgx-b200-180g", "gb200-nvl72"])
def test_measured_points_are_met_and_time_never_falls_with_size(profile: str) -> None:
    for curve in load_profile(profile).intra_host_curves.values():
        sizes = np.array(curve.message_bytes)
        read, measured = bus_bytes_per_second(curve, sizes), np.array(curve.bus_bytes_per_second)
        # One point of all these curves is a dent (B200 reduce-scatter, 64 KiB slower than 1 MiB), read 6% lower.
        assert np.isclose(read, measured, rtol=1e-9).sum() >= len(sizes) - 1
        assert np.all((read > 0.94 * measured) & (read < measured * (1 + 1e-9)))
        many = np.geomspace(1.0, 2.0**36, 500)
        assert np.all(np.diff(many / bus_bytes_per_second(curve, many)) >= -1e-15)


def test_a_dent_in_a_measurement_does_not_make_larger_messages_cheaper() -> None:
    # 1 kB in 10 us, 2 kB in 5 us: the second is read as 10 us.
    dented = dataclasses.replace(CURVE, message_bytes=(1e3, 2e3), bus_bytes_per_second=(1e8, 4e8))
    assert 2e3 / bus_bytes_per_second(dented, one(2e3))[0] == pytest.approx(10e-6)


def test_all_to_all_inside_a_host_reads_the_curve_at_the_whole_message() -> None:
    machine = hardware(curves={"alltoall": CURVE})
    # A shard of 1 kB in a message of 1 MB: 1e3 x 7/8 / 1e10, not the 10 us of a message of 1 kB.
    time = network(machine).all_to_all(one(1e3), 1e6)
    assert time.seconds[0] == pytest.approx(1e3 * 7 / 8 / 1e10)
    assert time.evidence is Evidence.MEASURED


def test_a_curve_of_another_group_size_is_an_estimate() -> None:
    machine = hardware(curves={"alltoall": CURVE})
    time = network(machine, 4, 4).all_to_all(one(1e3), 1e6)
    assert time.seconds[0] == pytest.approx(1e3 * 3 / 4 / 1e10)
    assert time.evidence is Evidence.ESTIMATED


def test_without_a_curve_the_whole_message_shares_the_latency() -> None:
    machine = hardware(intra_host_bytes_per_second=1e11, intra_host_latency_seconds=1e-5)
    # 1 MB of 10 MB pay a tenth of 10 us, and 1e6 x 7/8 / 1e11 = 8.75 us
    time = network(machine).all_to_all(one(1e6), 1e7)
    assert time.seconds[0] == pytest.approx(1e-6 + 8.75e-6)
    assert time.evidence is Evidence.GIVEN


def test_an_unknown_latency_is_zero_and_an_estimate() -> None:
    time = network(hardware(intra_host_bytes_per_second=1e11)).all_to_all(one(1e6), 1e7)
    assert time.seconds[0] == pytest.approx(8.75e-6)
    assert time.evidence is Evidence.ESTIMATED


def test_all_to_all_over_hosts_takes_the_slower_of_network_and_host() -> None:
    # 4 hosts x 8. Of 32 MB, 24 MB leave at 10 GB/s: 2.4 ms. 7 MB stay at 100 GB/s: 70 us.
    slow_network = network(plain_hardware(), 32, 8).all_to_all(one(32e6), 1e9)
    assert slow_network.seconds[0] == pytest.approx(2.4e-3)
    # A network of 1 TB/s takes 24 us, so the links of the host decide.
    fast = hardware(intra_host_bytes_per_second=1e11, inter_host_bytes_per_second=1e12)
    assert network(fast, 32, 8).all_to_all(one(32e6), 1e9).seconds[0] == pytest.approx(70e-6)


def test_all_to_all_over_hosts_reads_the_curve_at_the_part_that_stays() -> None:
    # 2 hosts x 8, message 2 MB: 1 MB stays in the host, read at 1 MB: 1e10 B/s.
    machine = hardware(curves={"alltoall": CURVE}, inter_host_bytes_per_second=1e15)
    seconds = network(machine, 16, 8).all_to_all(one(2e6), 2e6).seconds[0]
    assert seconds == pytest.approx(1e6 * 7 / 8 / 1e10)


def test_rings_over_hosts() -> None:
    # 2 hosts x 8, 16 MB: each link in a host carries 16 MB x 15/16 at 100 GB/s = 150 us,
    # each network card an eighth of it at 10 GB/s = 187.5 us. All-reduce: twice.
    machine = network(plain_hardware(), 16, 8)
    assert machine.reduce_scatter(one(16e6), 1e9).seconds[0] == pytest.approx(187.5e-6)
    assert machine.all_gather(one(16e6), 1e9).seconds[0] == pytest.approx(187.5e-6)
    assert machine.all_reduce(one(16e6), one(1e9)).seconds[0] == pytest.approx(375e-6)
    one_host = network(plain_hardware())
    assert one_host.reduce_scatter(one(16e6), 1e9).seconds[0] == pytest.approx(16e6 * 7 / 8 / 1e11)


def test_two_level_collectives() -> None:
    machine = network(plain_hardware(), 16, 8)
    assert machine.reduce_scatter_inside_host(one(8e6), 1e9).seconds[0] == pytest.approx(7e6 / 1e11)
    assert machine.all_gather_inside_host(one(8e6), 1e9).seconds[0] == pytest.approx(7e6 / 1e11)
    assert machine.all_to_all_across_hosts(one(8e6), 1e9).seconds[0] == pytest.approx(4e6 / 1e10)


def test_one_rank_and_empty_messages_need_no_hardware() -> None:
    nothing = hardware()
    alone = network(nothing, 1, 1)
    for time in (
        alone.all_to_all(one(1e6), 1e6),
        alone.reduce_scatter(one(1e6), 1e6),
        alone.all_gather(one(1e6), 1e6),
        alone.all_reduce(one(1e6), one(1e6)),
        alone.reduce_scatter_inside_host(one(1e6), 1e6),
        alone.all_gather_inside_host(one(1e6), 1e6),
        alone.all_to_all_across_hosts(one(1e6), 1e6),
        network(nothing).all_to_all(one(0.0), 0.0),
    ):
        assert time.seconds[0] == 0
        assert time.evidence is Evidence.MEASURED


def test_one_host_needs_no_network_and_one_rank_per_host_no_links() -> None:
    inside = hardware(intra_host_bytes_per_second=1e11)
    assert network(inside).all_to_all(one(1e6), 1e6).seconds[0] > 0
    with pytest.raises(MissingHardwareNumber, match="inter_host_bytes_per_second, needed for an all-to-all"):
        network(inside, 16, 8).all_to_all(one(1e6), 1e6)
    across = hardware(inter_host_bytes_per_second=1e10)
    # 4 hosts of one rank: 3/4 of 4 MB at 10 GB/s
    assert network(across, 4, 1).all_to_all(one(4e6), 4e6).seconds[0] == pytest.approx(3e-4)
    assert network(across, 4, 1).reduce_scatter(one(4e6), 4e6).seconds[0] == pytest.approx(3e-4)
    with pytest.raises(MissingHardwareNumber, match="intra_host_bytes_per_second, needed for a reduce-scatter"):
        network(across, 4, 2).reduce_scatter(one(1e6), 1e6)


@given(
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda shares: sum(shares) > 0),
    message=st.floats(1.0, 1e10),
    cluster=st.sampled_from([(8, 8), (4, 4), (16, 8), (32, 8), (4, 1)]),
    collective=st.sampled_from(["all_to_all", "reduce_scatter", "all_gather", "all_to_all_across_hosts"]),
)
def test_shares_of_a_message_add_up_to_it(
    shares: list[float], message: float, cluster: tuple[int, int], collective: str
) -> None:
    send = getattr(network(load_profile("dgx-h100-80g"), *cluster), collective)
    parts = np.array(shares) / sum(shares) * message
    assert send(parts, message).seconds.sum() == pytest.approx(send(one(message), message).seconds[0])


def test_h100_all_to_all_takes_what_was_measured() -> None:
    # 256 MiB per rank, 307.5 GB/s bus bandwidth: 268,435,456 x 7/8 / 307.5e9 = 763.8 us
    time = network(load_profile("dgx-h100-80g")).all_to_all(one(256 * MIB), 256 * MIB)
    assert time.seconds[0] == pytest.approx(763.8e-6, rel=1e-3)
    assert time.evidence is Evidence.MEASURED
