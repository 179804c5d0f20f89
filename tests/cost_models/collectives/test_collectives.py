"""Collectives by hand: curves without their start, hosts, and shares that add up."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models.collectives.collectives import Network, sustained_bytes_per_second
from cost_models.errors import MissingHardwareNumber
from cost_models.hardware.hardware import Curve, Hardware
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Evidence
from tests.support.cost_models.shard_work import hardware, plain_hardware

MIB = 2.0**20
CURVE = Curve(
    # In 10, 30 and 1,000 us. The fastest rate is 1e10, at which 1 kB takes 0.1 us: 9.9 us are the start.
    message_bytes=(1e3, 1e5, 1e7),
    bus_bytes_per_second=(1e8, 1e5 / 30e-6, 1e10),
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
        (1e3, 0.1e-6),  # 10 us less the start
        (1e5, 20.1e-6),  # 30 us less the start
        (1e7, 1000e-6),  # not 990.1 us: never faster than the fastest rate
        (1e6, (20.1e-6 * 1000e-6) ** 0.5),  # half way in both logarithms
        (10.0, 1e-9),  # shorter than measured: all of it was the start but for the fastest rate
        (3e7, 3000e-6),  # longer than measured: the bandwidth stays
    ],
)
def test_curves_are_read_in_logarithms_and_without_their_start(message: float, seconds: float) -> None:
    assert message / sustained_bytes_per_second(CURVE, one(message))[0] == pytest.approx(seconds)


def test_an_empty_message_has_a_rate() -> None:
    assert sustained_bytes_per_second(CURVE, one(0.0))[0] == pytest.approx(1e10)


def test_a_curve_of_one_point_is_its_rate() -> None:
    point = dataclasses.replace(CURVE, message_bytes=(1e6,), bus_bytes_per_second=(1e10,))
    assert sustained_bytes_per_second(point, np.array([1.0, 1e6, 1e9])) == pytest.approx([1e10] * 3)


@pytest.mark.parametrize("profile", ["dgx-a100-80g", "dgx-h100-80g", "dgx-h200-141g", "dgx-b200-180g", "gb200-nvl72"])
def test_measured_points_are_met_but_for_their_start_and_time_never_falls_with_size(profile: str) -> None:
    for curve in load_profile(profile).intra_host_curves.values():
        sizes, measured = np.array(curve.message_bytes), np.array(curve.bus_bytes_per_second)
        seconds, read = sizes / measured, sizes / sustained_bytes_per_second(curve, sizes)
        # The start is at most the time of the smallest message, 64 KiB, of which its bytes are at most 2.1%.
        assert np.all((read >= seconds - seconds[0]) & (read <= seconds * (1 + 1e-9)))
        assert 0 < read[0] < 0.022 * seconds[0]
        many = np.geomspace(1.0, 2.0**36, 500)
        rates = sustained_bytes_per_second(curve, many)
        assert np.all(np.diff(many / rates) >= -1e-15)
        assert np.all(rates <= measured.max() * (1 + 1e-9))


def test_a_dent_in_a_measurement_does_not_make_larger_messages_cheaper() -> None:
    # 1 kB in 10 us, 2 kB in 5 us: the second is read as 10 us, of which 5 us are the start.
    dented = dataclasses.replace(CURVE, message_bytes=(1e3, 2e3), bus_bytes_per_second=(1e8, 4e8))
    read = np.array([1e3, 2e3]) / sustained_bytes_per_second(dented, np.array([1e3, 2e3]))
    assert read == pytest.approx([5e-6, 10e-6])


def test_all_to_all_inside_a_host_reads_the_curve_at_the_whole_message() -> None:
    machine = hardware(curves={"alltoall": CURVE})
    # A shard of 1 kB is a hundredth of a message of 100 kB, which takes 20.1 us x 7/8 once started.
    time = network(machine).all_to_all(one(1e3), 1e5)
    assert time.seconds[0] == pytest.approx(20.1e-6 * 7 / 8 / 100)
    assert time.evidence is Evidence.MEASURED


def test_a_curve_of_another_group_size_is_an_estimate() -> None:
    machine = hardware(curves={"alltoall": CURVE})
    time = network(machine, 4, 4).all_to_all(one(1e3), 1e5)
    assert time.seconds[0] == pytest.approx(20.1e-6 * 3 / 4 / 100)
    assert time.evidence is Evidence.ESTIMATED


def test_without_a_curve_one_rate_serves_every_size() -> None:
    machine = hardware(intra_host_bytes_per_second=1e11)
    for message in (1e6, 1e7):
        time = network(machine).all_to_all(one(1e6), message)
        assert time.seconds[0] == pytest.approx(8.75e-6)  # 1e6 x 7/8 / 1e11
        assert time.evidence is Evidence.GIVEN


@pytest.mark.parametrize("collective", ["all_to_all", "reduce_scatter", "all_gather", "all_to_all_across_hosts"])
@pytest.mark.parametrize("cluster", [(4, 4), (16, 8)])
def test_no_rank_pays_more_starts_for_holding_more(collective: str, cluster: tuple[int, int]) -> None:
    """A start of a whole second shows in nobody's share, however much of the message a rank holds."""
    rates = {"intra_host_bytes_per_second": 1e11, "inter_host_bytes_per_second": 1e10}
    quick = network(hardware(**rates), *cluster)
    slow = network(
        hardware(**rates, intra_host_latency_seconds=1.0, inter_host_latency_seconds=1.0),
        *cluster,
    )
    held = np.array([2.5e5, 1e6, 4e6])  # a quarter, all and four times the average of 1 MB
    quickly, slowly = getattr(quick, collective)(held, 1e6), getattr(slow, collective)(held, 1e6)
    np.testing.assert_array_equal(quickly.seconds, slowly.seconds)


def test_a_rank_that_holds_four_times_the_average_pays_no_four_starts() -> None:
    # The 9.9 us of CURVE's start: 4 kB in messages of 1 kB take 4 x 0.1 us x 7/8, not 4 x 10 us x 7/8.
    time = network(hardware(curves={"alltoall": CURVE})).all_to_all(one(4e3), 1e3)
    assert time.seconds[0] == pytest.approx(0.35e-6)


def test_all_to_all_over_hosts_takes_the_slower_of_network_and_host() -> None:
    # 4 hosts x 8. Of 32 MB, 24 MB leave at 10 GB/s: 2.4 ms. 7 MB stay at 100 GB/s: 70 us.
    slow_network = network(plain_hardware(), 32, 8).all_to_all(one(32e6), 1e9)
    assert slow_network.seconds[0] == pytest.approx(2.4e-3)
    # A network of 1 TB/s takes 24 us, so the links of the host decide.
    fast = hardware(intra_host_bytes_per_second=1e11, inter_host_bytes_per_second=1e12)
    assert network(fast, 32, 8).all_to_all(one(32e6), 1e9).seconds[0] == pytest.approx(70e-6)


def test_all_to_all_over_hosts_reads_the_curve_at_the_part_that_stays() -> None:
    # 2 hosts x 8, message 200 kB: 100 kB stay in the host and take 20.1 us once started.
    machine = hardware(curves={"alltoall": CURVE}, inter_host_bytes_per_second=1e15)
    seconds = network(machine, 16, 8).all_to_all(one(2e5), 2e5).seconds[0]
    assert seconds == pytest.approx(20.1e-6 * 7 / 8)


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


def test_h100_all_to_all_takes_what_was_measured_less_its_start() -> None:
    # 256 MiB per rank, 307.5 GB/s bus bandwidth: 268,435,456 x 7/8 / 307.5e9 = 763.8 us. Start: 64 KiB take
    # 65,536 x 7/8 / 6.6e9 = 8.69 us, 0.18 us at the fastest 315.2 GB/s. 763.8 - 8.5 = 755.3 us.
    time = network(load_profile("dgx-h100-80g")).all_to_all(one(256 * MIB), 256 * MIB)
    assert time.seconds[0] == pytest.approx(755.3e-6, rel=1e-3)
    assert time.evidence is Evidence.MEASURED
