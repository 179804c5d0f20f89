from planner.evaluate import objective_seconds, rank_loads
from planner.partitioners.greedy import Greedy
from planner.partitioners.portfolio import Portfolio
from tests.contracts.partitioner import LIMITS, PartitionerContract
from tests.planner.builders import random_priced


class TestPortfolio(PartitionerContract):
    partitioner = Portfolio()
    exact = True


def test_never_worse_than_greedy() -> None:
    for seed in range(5):
        priced = random_priced(seed, num_tables=5)
        values = []
        for partitioner in (Greedy(), Portfolio()):
            outcome = partitioner.solve(priced, LIMITS)
            assert outcome.assignment is not None
            values.append(objective_seconds(priced, rank_loads(priced, outcome.assignment).seconds))
        assert values[1] <= values[0] * (1 + 1e-12)
