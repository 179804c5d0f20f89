"""Starts of measured collectives are those of their curves, and ranks that are priced as a whole hold one of each."""

import numpy as np
import pytest

from cost_models.analytic.additive import Additive
from cost_models.analytic.serving import ServingModel
from cost_models.analytic.torchrec import TorchRecModel
from cost_models.collectives.collectives import Network
from cost_models.collectives.starts import Kind, PricesStarts, kind_starts, starts_in_ranks
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.learned.exchange.curve import CollectiveKind
from cost_models.learned.exchange.exchange import LearnedExchange
from cost_models.learned.exchange.starts import LearnedStarts
from cost_models.vocabulary import Evidence, Phase, Scheme
from tests.cost_models.learned.exchange.test_exchange import curve
from tests.support.planning.launching_model import LaunchingModel

MICRO = 1e-6
COMM = [Phase.INPUT_COMM, Phase.FORWARD_COMM, Phase.BACKWARD_COMM]


def network(**seconds: float) -> Network:
    numbers = {
        name: Quantity(value=value, unit="seconds", evidence=Evidence.GIVEN, source="a test")
        for name, value in seconds.items()
    }
    hardware = Hardware(profile="test", family="cpu", ranks_per_host=4, numbers=numbers)
    return Network(hardware=hardware, num_ranks=4, ranks_per_host=4)


def kind(scheme: Scheme) -> Kind:
    return Kind(scheme=scheme, is_pooled=True, is_weighted=False, is_pipelined=True)


def starts(*, has_launches: bool = False) -> LearnedStarts:
    """All-to-alls were measured: a start of 20 us, and 1 us for each of three peers."""
    measured = curve(start_seconds=20 * MICRO, peer_seconds=MICRO)
    exchange = LearnedExchange(curves={CollectiveKind("all_to_all"): measured}, coverage=0.9)
    return LearnedStarts(exchange=exchange, has_launches=has_launches)


def test_what_was_measured_starts_as_the_curve_says_and_the_rest_as_the_profile() -> None:
    where = network(intra_host_latency_seconds=5 * MICRO)
    found = kind_starts([kind(Scheme.TABLE_WISE), kind(Scheme.ROW_WISE), kind(Scheme.DATA_PARALLEL)], starts(), where)
    expected = np.array([[46.0, 23.0, 23.0], [46.0, 5.0, 5.0], [0.0, 0.0, 5.0]])
    np.testing.assert_allclose(found.seconds[:, COMM], expected * MICRO)
    assert found.evidence[:, Phase.INPUT_COMM].tolist() == [Evidence.MEASURED] * 3
    assert found.evidence[1, Phase.FORWARD_COMM] == Evidence.GIVEN


def test_only_further_kinds_add_what_ranks_hold() -> None:
    """Lengths of ids, rows forward and back of the first kind are in the seconds of ranks."""
    where, kinds = network(intra_host_latency_seconds=5 * MICRO), [kind(Scheme.TABLE_WISE), kind(Scheme.COLUMN_WISE)]
    held = [starts_in_ranks(kinds[:number], starts(), where)[COMM].sum() for number in (0, 1, 2)]
    assert held == pytest.approx([0.0, 69 * MICRO, 69 * MICRO])


def test_measured_lookups_hold_their_launches() -> None:
    where = network(kernel_launch_seconds=2 * MICRO)
    one, other = (
        kind_starts([kind(Scheme.TABLE_WISE)], starts(has_launches=has), where).seconds[0] for has in (False, True)
    )
    compute = [Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE]
    assert one[compute] == pytest.approx([4 * MICRO, 18 * MICRO])
    assert other[compute].tolist() == [0.0, 0.0]
    assert one[Phase.INPUT_COMM] == other[Phase.INPUT_COMM]


def test_who_prices_starts() -> None:
    assert not isinstance(TorchRecModel(), PricesStarts)
    assert not isinstance(ServingModel(), PricesStarts)
    assert Additive(model=LaunchingModel(1e-6)).starts is None
