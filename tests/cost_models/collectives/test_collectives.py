"""Collectives by hand: laws and their starts, hosts, domains of several hosts, and shares that add up."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_models.collectives.collectives import Network
from cost_models.errors import MissingHardwareNumber
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Evidence
from tests.support.cost_models.laws import domain_law, hosts_law, laws
from tests.support.cost_models.shard_work import hardware, plain_hardware

MIB = 2.0**20


def network(machine: Hardware, num_ranks: int = 8, ranks_per_host: int = 8) -> Network:
    return Network(hardware=machine, num_ranks=num_ranks, ranks_per_host=ranks_per_host)


def one(value: float) -> np.ndarray:
    return np.array([value])


def test_a_shard_pays_for_its_bytes_at_the_pace_of_the_message() -> None:
    # 100 kB: 20 us for the first 100 kB, 100 kB x 7/8 at 100 GB/s = 0.875 us. A shard of 1 kB is a hundredth.
    time = network(hardware(laws=laws(domain_law()))).all_to_all(one(1e3), 1e5)
    assert time.seconds[0] == pytest.approx(20.875e-6 / 100)
    assert time.evidence is Evidence.MEASURED


@pytest.mark.parametrize(("ranks", "message"), [(16, 1e5), (8, 2e9)])
def test_beyond_what_was_measured_a_law_is_an_estimate(ranks: int, message: float) -> None:
    machine = network(hardware(laws=laws(domain_law())), ranks, ranks)
    assert machine.all_to_all(one(1e3), message).evidence is Evidence.ESTIMATED
    assert network(hardware(laws=laws(domain_law())), 4, 4).all_to_all(one(1e3), 1e5).evidence is Evidence.MEASURED


def test_a_whole_collective_is_its_start_and_the_pace_of_its_message() -> None:
    machine = network(hardware(laws=laws(domain_law())))
    start = machine.start_seconds("all_to_all", "all")
    assert (start.value, start.unit, start.evidence) == (pytest.approx(17e-6), "seconds", Evidence.MEASURED)
    whole = machine.whole_seconds("all_to_all", "all", np.array([0.0, 1e5, 1e8]))
    assert whole.seconds == pytest.approx([17e-6, 37.875e-6, 17e-6 + 20e-6 + 875e-6])
    assert machine.whole_interval("all_to_all", "all", 1e8) == (0.9, 1.1)
    assert machine.whole_interval("all_gather", "all", 1e8) is None


def test_intervals_widen_by_every_doubling_beyond_the_largest_group() -> None:
    beyond = network(hardware(laws=laws(domain_law(), hosts_law())), 32, 32)
    assert beyond.whole_interval("all_to_all", "all", 1e8) == pytest.approx((0.9 / 4, 1.1 * 4))
    many_hosts = network(hardware(laws=laws(hosts_law())), 64, 8)
    assert many_hosts.whole_interval("all_to_all", "all", 1e3) == pytest.approx((0.8 / 2, 1.25 * 2))


def test_intervals_widen_between_measured_groups_as_well() -> None:
    """Groups of 2, 4 and 8 were measured: 3 lies 0.415 of a doubling from 4."""
    between = network(hardware(laws=laws(domain_law())), 3, 3)
    wider = 2 ** math.log2(4 / 3)
    assert between.whole_interval("all_to_all", "all", 1e8) == pytest.approx((0.9 / wider, 1.1 * wider))


def test_another_ring_over_hosts_has_a_wider_interval() -> None:
    known = hosts_law("all_reduce")
    other = known.of_other_ring("all_gather")
    assert other.basis.evidence is Evidence.ESTIMATED
    assert other.intervals.at(1e8, 0.0)[1] == pytest.approx(2 * known.intervals.at(1e8, 0.0)[1])


def test_starts_without_a_law_are_those_of_the_profile() -> None:
    numbers = {"intra_host_latency_seconds": 1e-5, "inter_host_latency_seconds": 3e-5}
    machine = network(hardware(**numbers), 16, 8)
    assert machine.start_seconds("all_to_all", "inside").value == 1e-5
    assert machine.start_seconds("all_to_all", "across").value == 3e-5
    assert machine.start_seconds("all_reduce", "all").value == 3e-5
    assert machine.start_seconds("all_reduce", "all").evidence is Evidence.GIVEN
    assert network(hardware(**numbers), 1, 1).start_seconds("all_to_all", "all").value == 0
    unknown = network(hardware(), 8, 8).start_seconds("all_to_all", "all")
    assert (unknown.value, unknown.evidence) == (0.0, Evidence.ESTIMATED)


def test_an_all_to_all_over_hosts_starts_for_every_remote_peer_and_leaves_through_its_card() -> None:
    # 4 hosts x 8: 24 remote peers x 4 us + 20 us; 1e8 x 3/4 at 10 GB/s = 7.5 ms; the ramp of 10 MB 1 ms.
    machine = network(hardware(laws=laws(hosts_law())), 32, 8)
    assert machine.start_seconds("all_to_all", "all").value == pytest.approx(116e-6)
    whole = machine.whole_seconds("all_to_all", "all", one(1e8))
    assert whole.seconds[0] == pytest.approx(116e-6 + 1e-3 + 7.5e-3)
    assert whole.evidence is Evidence.MEASURED
    # Among the ranks of equal position: 3 remote peers.
    assert machine.start_seconds("all_to_all", "across").value == pytest.approx(32e-6)


def test_rings_over_hosts_are_bound_by_cards_or_by_what_a_host_lets_through() -> None:
    # 2 hosts x 8, 8e8: 16 hops; 8e8 x 15/16 at 8 x 10 GB/s = 9.375 ms, and at 50 GB/s 15 ms.
    free = network(hardware(laws=laws(hosts_law("all_gather"))), 16, 8)
    bound = network(hardware(laws=laws(hosts_law("all_gather", cap=5e10))), 16, 8)
    assert free.whole_seconds("all_gather", "all", one(8e8)).seconds[0] == pytest.approx(84e-6 + 1e-3 + 9.375e-3)
    assert bound.whole_seconds("all_gather", "all", one(8e8)).seconds[0] == pytest.approx(84e-6 + 1e-3 + 15e-3)


def test_a_ring_without_a_law_takes_that_of_another_ring_as_an_estimate() -> None:
    machine = network(hardware(laws=laws(hosts_law("all_reduce"))), 16, 8)
    reduced = machine.whole_seconds("all_reduce", "all", one(8e8))
    gathered = machine.whole_seconds("all_gather", "all", one(8e8))
    assert gathered.seconds[0] == pytest.approx(reduced.seconds[0] / 2)
    assert (reduced.evidence, gathered.evidence) == (Evidence.MEASURED, Evidence.ESTIMATED)


def test_hosts_of_a_rack_are_one_domain() -> None:
    """16 trays of 4 share links: all groups are inside; the seventeenth tray of 68 is in another rack of 64."""
    rack = hardware(laws=laws(domain_law(ranks=(4, 64)), hosts_law()), domain_ranks=64)
    inside = network(rack, 64, 4)
    assert inside.start_seconds("all_to_all", "all").value == pytest.approx(73e-6)
    assert inside.start_seconds("all_to_all", "across").value == pytest.approx(25e-6)
    assert inside.all_to_all(one(1e3), 1e5).seconds[0] == pytest.approx((20e-6 + 1e5 * 63 / 64 * 1e-11) / 100)
    two = network(rack, 128, 4)
    assert two.start_seconds("all_to_all", "all").value == pytest.approx(20e-6 + 64 * 4e-6)
    assert two.start_seconds("all_to_all", "across").value == pytest.approx(20e-6 + 16 * 4e-6)


@pytest.mark.parametrize("ranks", [8, 16, 32, 64])
def test_nvl72_prices_the_groups_of_a_rack_by_its_links(ranks: int) -> None:
    """Measured all-to-alls of 17 GB among 8 to 64 ranks of a rack move 633 to 673 GB/s."""
    machine = network(load_profile("gb200-nvl72"), ranks, 4)
    whole = machine.whole_seconds("all_to_all", "all", one(2.0**34)).seconds[0]
    assert 600e9 < 2.0**34 * (ranks - 1) / ranks / whole < 720e9


@pytest.mark.parametrize("profile", ["dgx-a100-80g", "dgx-h100-80g", "dgx-h200-141g", "dgx-b200-180g", "gb200-nvl72"])
@pytest.mark.parametrize("cluster", [(8, 4), (8, 8), (64, 8), (144, 4)])
def test_time_never_falls_with_size_nor_does_a_byte_of_a_larger_message_cost_more(
    profile: str, cluster: tuple[int, int]
) -> None:
    machine = network(load_profile(profile), *cluster)
    sizes = np.geomspace(1.0, 2.0**36, 300)
    for operation in ("all_to_all", "reduce_scatter", "all_gather", "all_reduce"):
        whole = machine.whole_seconds(operation, "all", sizes).seconds
        assert np.all(np.diff(whole) >= 0)
        pace = (whole - machine.start_seconds(operation, "all").value) / sizes
        assert np.all(np.diff(pace) <= 1e-4 * pace[:-1])  # less the start loses digits


def test_without_a_law_one_rate_serves_every_size() -> None:
    machine = hardware(intra_host_bytes_per_second=1e11)
    for message in (1e6, 1e7):
        time = network(machine).all_to_all(one(1e6), message)
        assert time.seconds[0] == pytest.approx(8.75e-6)  # 1e6 x 7/8 / 1e11
        assert time.evidence is Evidence.GIVEN


@pytest.mark.parametrize("collective", ["all_to_all", "reduce_scatter", "all_gather", "all_to_all_across_groups"])
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
    # The 17 us of the start: 400 kB in messages of 100 kB take 4 x 20.875 us.
    time = network(hardware(laws=laws(domain_law()))).all_to_all(one(4e5), 1e5)
    assert time.seconds[0] == pytest.approx(83.5e-6)


def test_all_to_all_over_hosts_takes_the_slower_of_network_and_host() -> None:
    # 4 hosts x 8. Of 32 MB, 24 MB leave at 10 GB/s: 2.4 ms. 7 MB stay at 100 GB/s: 70 us.
    slow_network = network(plain_hardware(), 32, 8).all_to_all(one(32e6), 1e9)
    assert slow_network.seconds[0] == pytest.approx(2.4e-3)
    # A network of 1 TB/s takes 24 us, so the links of the host decide.
    fast = hardware(intra_host_bytes_per_second=1e11, inter_host_bytes_per_second=1e12)
    assert network(fast, 32, 8).all_to_all(one(32e6), 1e9).seconds[0] == pytest.approx(70e-6)


def test_all_to_all_over_hosts_reads_the_law_at_the_part_that_stays() -> None:
    # 2 hosts x 8, message 200 kB: 100 kB stay in the host and take 20.875 us once started.
    machine = hardware(laws=laws(domain_law()), inter_host_bytes_per_second=1e15)
    seconds = network(machine, 16, 8).all_to_all(one(2e5), 2e5).seconds[0]
    assert seconds == pytest.approx(20.875e-6)


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
    assert machine.reduce_scatter_inside_group(one(8e6), 1e9).seconds[0] == pytest.approx(7e6 / 1e11)
    assert machine.all_gather_inside_group(one(8e6), 1e9).seconds[0] == pytest.approx(7e6 / 1e11)
    assert machine.all_to_all_across_groups(one(8e6), 1e9).seconds[0] == pytest.approx(4e6 / 1e10)


def test_one_rank_and_empty_messages_need_no_hardware() -> None:
    nothing = hardware()
    alone = network(nothing, 1, 1)
    for time in (
        alone.all_to_all(one(1e6), 1e6),
        alone.reduce_scatter(one(1e6), 1e6),
        alone.all_gather(one(1e6), 1e6),
        alone.all_reduce(one(1e6), one(1e6)),
        alone.reduce_scatter_inside_group(one(1e6), 1e6),
        alone.all_gather_inside_group(one(1e6), 1e6),
        alone.all_to_all_across_groups(one(1e6), 1e6),
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
    collective=st.sampled_from(["all_to_all", "reduce_scatter", "all_gather", "all_to_all_across_groups"]),
)
def test_shares_of_a_message_add_up_to_it(
    shares: list[float], message: float, cluster: tuple[int, int], collective: str
) -> None:
    send = getattr(network(load_profile("dgx-h100-80g"), *cluster), collective)
    parts = np.array(shares) / sum(shares) * message
    assert send(parts, message).seconds.sum() == pytest.approx(send(one(message), message).seconds[0])


def test_h100_all_to_all_takes_what_was_measured() -> None:
    # 256 MiB per rank: 307.5 GB/s bus bandwidth, so 763.8 us.
    machine = network(load_profile("dgx-h100-80g"))
    whole = machine.whole_seconds("all_to_all", "all", one(256 * MIB))
    assert whole.seconds[0] == pytest.approx(763.8e-6, rel=0.05)
    assert whole.evidence is Evidence.MEASURED
