"""What kinds of sharding start, as TorchRec runs them, and what each start takes by the numbers of hardware."""

from collections import Counter

import numpy as np
import pytest

from cost_models.collectives.collectives import Network
from cost_models.collectives.starts import (
    AnalyticStarts,
    Collective,
    Kind,
    collectives_of,
    kind_starts,
    launches_of,
    starts_in_ranks,
)
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import NUM_PHASES, Evidence, Phase, Scheme

MICRO = 1e-6


def hardware(**seconds: float) -> Hardware:
    numbers = {
        name: Quantity(value=value, unit="seconds", evidence=Evidence.GIVEN, source="a test")
        for name, value in seconds.items()
    }
    return Hardware(profile="test", family="gpu", ranks_per_host=8, numbers=numbers)


def network(hosts: int = 1, ranks: int = 8, **seconds: float) -> Network:
    return Network(hardware=hardware(**seconds), num_ranks=hosts * ranks, ranks_per_host=ranks)


def kind(scheme: Scheme, *, pooled: bool = True, weighted: bool = False, pipelined: bool = True) -> Kind:
    return Kind(scheme=scheme, is_pooled=pooled, is_weighted=weighted, is_pipelined=pipelined)


def counted(one: Kind, where: Network) -> Counter[tuple[str, str, str]]:
    return Counter((found.phase.label, found.operation, found.group) for found in collectives_of(one, where))


IDS = {("input_comm", "all_to_all", "all"): 2}
BOTH_WAYS = {("forward_comm", "all_to_all", "all"): 1, ("backward_comm", "all_to_all", "all"): 1}
RING = {("forward_comm", "reduce_scatter", "all"): 1, ("backward_comm", "all_gather", "all"): 1}
INSIDE = {("forward_comm", "reduce_scatter", "inside"): 1, ("backward_comm", "all_gather", "inside"): 1}
ACROSS = {("forward_comm", "all_to_all", "across"): 1, ("backward_comm", "all_to_all", "across"): 1}


@pytest.mark.parametrize(
    ("scheme", "hosts", "expected"),
    [
        (Scheme.TABLE_WISE, 1, IDS | BOTH_WAYS),
        (Scheme.COLUMN_WISE, 2, IDS | BOTH_WAYS),
        (Scheme.TABLE_COLUMN_WISE, 2, IDS | BOTH_WAYS),
        (Scheme.ROW_WISE, 2, IDS | RING),
        (Scheme.TABLE_ROW_WISE, 1, IDS | INSIDE),
        (Scheme.TABLE_ROW_WISE, 2, IDS | INSIDE | ACROSS),
        (Scheme.GRID_SHARD, 2, IDS | INSIDE | ACROSS),
        (Scheme.DATA_PARALLEL, 2, {("backward_comm", "all_reduce", "all"): 1}),
    ],
)
def test_collectives_of_a_kind(scheme: Scheme, hosts: int, expected: dict[tuple[str, str, str], int]) -> None:
    assert counted(kind(scheme), network(hosts)) == Counter(expected)


def test_every_scheme_starts_something() -> None:
    assert all(counted(kind(scheme), network(2)) for scheme in Scheme)


def test_one_rank_starts_no_collective_and_one_rank_per_host_none_inside() -> None:
    assert not any(counted(kind(scheme), network(1, 1)) for scheme in Scheme)
    assert counted(kind(Scheme.TABLE_ROW_WISE), network(4, 1)) == Counter(IDS | ACROSS)


def test_weights_and_unfused_sizes_are_exchanges_of_their_own() -> None:
    more = counted(kind(Scheme.TABLE_WISE, weighted=True, pipelined=False), network())
    assert more["input_comm", "all_to_all", "all"] == 4
    copied = counted(kind(Scheme.DATA_PARALLEL, weighted=True, pipelined=False), network())
    assert set(copied) == {("backward_comm", "all_reduce", "all")}


def test_rows_of_a_sequence_are_never_added_up() -> None:
    assert counted(kind(Scheme.ROW_WISE, pooled=False), network()) == Counter(IDS | BOTH_WAYS)


def test_launches_follow_what_a_kind_does() -> None:
    whole, cut, in_host, grid, copied = (
        Counter(dict(launches_of(kind(one))))
        for one in (
            *(Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE, Scheme.GRID_SHARD),
            Scheme.DATA_PARALLEL,
        )
    )
    assert sum(whole.values()) == 14
    assert cut - whole == Counter({Phase.INPUT_COMM: 2})
    assert in_host - cut == grid - cut == Counter({Phase.INPUT_COMM: 2})
    assert set(copied) == {Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE}
    assert all(copied[phase] == whole[phase] for phase in copied)


def test_a_start_over_hosts_is_the_longer_one() -> None:
    numbers = {"intra_host_latency_seconds": 10 * MICRO, "inter_host_latency_seconds": 30 * MICRO}
    assert network(2, **numbers).start_seconds("all_to_all", "all").value == 30 * MICRO
    assert network(2, **numbers).start_seconds("reduce_scatter", "inside").value == 10 * MICRO
    numbers["inter_host_latency_seconds"] = MICRO
    assert network(2, **numbers).start_seconds("all_to_all", "all").value == 10 * MICRO
    assert network(2, **numbers).start_seconds("all_to_all", "across").value == MICRO


def test_numbers_that_hardware_lacks_add_nothing() -> None:
    found = kind_starts([kind(scheme) for scheme in Scheme], AnalyticStarts(), network(2))
    assert not found.seconds.any()
    assert np.all(found.evidence == Evidence.MEASURED)


def test_seconds_add_up_by_phase_with_the_weakest_evidence() -> None:
    where = network(1, intra_host_latency_seconds=10 * MICRO, kernel_launch_seconds=2 * MICRO)
    found = kind_starts([kind(Scheme.ROW_WISE), kind(Scheme.DATA_PARALLEL)], AnalyticStarts(), where)
    expected = np.zeros((2, NUM_PHASES))
    expected[0, [Phase.INPUT_COMM, Phase.FORWARD_COMPUTE, Phase.FORWARD_COMM]] = 28, 4, 12
    expected[0, [Phase.BACKWARD_COMM, Phase.BACKWARD_COMPUTE]] = 10, 18
    expected[1, [Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMM, Phase.BACKWARD_COMPUTE]] = 4, 10, 18
    np.testing.assert_allclose(found.seconds, expected * MICRO)
    assert np.array_equal(found.evidence == Evidence.GIVEN, expected > 0)


def test_a_second_kind_costs_what_was_measured_on_one_host() -> None:
    """Of a second kind on eight H100s, 120 us are starts of the kernels of lookups, the others mostly collectives."""
    profile = load_profile("dgx-h100-80g")
    where = Network(hardware=profile, num_ranks=8, ranks_per_host=8)
    kinds = [kind(Scheme.TABLE_WISE), kind(Scheme.ROW_WISE)]
    found = kind_starts(kinds, AnalyticStarts(), where).seconds
    [whole, rows] = found.sum(axis=1)
    assert 155 * MICRO < whole < 165 * MICRO
    assert whole < rows < whole + 20 * MICRO
    lookups = found[:, [Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE]]
    np.testing.assert_allclose(lookups, [[15.6 * MICRO, 104 * MICRO]] * 2)


def test_all_kernels_of_a_pass_have_one_start_where_it_was_measured() -> None:
    where = network(1, kernel_launch_seconds=2 * MICRO, backward_start_seconds=50 * MICRO)
    found = kind_starts([kind(Scheme.DATA_PARALLEL)], AnalyticStarts(), where).seconds[0]
    assert found[Phase.FORWARD_COMPUTE] == pytest.approx(4 * MICRO)
    assert found[Phase.BACKWARD_COMPUTE] == pytest.approx(50 * MICRO)


class _Once(AnalyticStarts):
    """All all-to-alls are in the seconds of ranks already."""

    def is_priced_once(self, collective: Collective, network: Network) -> bool:
        return collective.operation == "all_to_all"


def test_ranks_hold_one_start_of_what_is_priced_in_them() -> None:
    where = network(1, intra_host_latency_seconds=10 * MICRO)
    kinds = [kind(Scheme.TABLE_WISE), kind(Scheme.COLUMN_WISE), kind(Scheme.ROW_WISE)]
    held = starts_in_ranks(kinds, _Once(), where)
    assert held[[Phase.INPUT_COMM, Phase.FORWARD_COMM, Phase.BACKWARD_COMM]] == pytest.approx([10 * MICRO] * 3)
    assert not starts_in_ranks(kinds, AnalyticStarts(), where).any()
