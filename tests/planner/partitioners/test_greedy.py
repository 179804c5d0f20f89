from planner.partitioners.greedy import Greedy
from tests.contracts.partitioner import PartitionerContract


class TestGreedy(PartitionerContract):
    partitioner = Greedy()
