"""Collectives of groups that are a part of a job: what they share with the others, and what all ranks do together."""

import numpy as np
import pytest

from cost_models.collectives.collectives import Network
from cost_models.collectives.whole_job import WholeJob
from cost_models.hardware.profiles_loader import load_profile
from tests.support.cost_models.laws import domain_law, hosts_law, laws
from tests.support.cost_models.shard_work import hardware, plain_hardware


def one(value: float) -> np.ndarray:
    return np.array([value])


def test_gradients_are_added_up_over_all_ranks_of_the_job() -> None:
    machine = plain_hardware()
    job = WholeJob(num_ranks=32, ranks_per_host=8, stride=4)
    group = Network(hardware=machine, num_ranks=8, ranks_per_host=2, job=job)
    whole = Network(hardware=machine, num_ranks=32, ranks_per_host=8)
    assert group.all_reduce_in_job(one(1e6), one(1e6)).seconds == whole.all_reduce(one(1e6), one(1e6)).seconds
    assert group.start_seconds("all_reduce", "job") == whole.start_seconds("all_reduce", "all")
    assert whole.all_reduce_in_job(one(1e6), one(1e6)).seconds == whole.all_reduce(one(1e6), one(1e6)).seconds


def test_groups_share_what_a_host_lets_through() -> None:
    """A host of 8 ranks lets 100 GB/s through. Of a group with 2 ranks there, 25 GB/s are left, whatever its cards."""
    law = hosts_law("all_to_all")
    limited = law.__class__(**{name: getattr(law, name) for name in law.__slots__} | {"host_bytes_per_second": 1e11})
    assert limited.of_part_of_hosts(0.25).host_bytes_per_second == 2.5e10
    machine = hardware(laws=laws(limited))
    job = WholeJob(num_ranks=32, ranks_per_host=8, stride=4)
    alone = Network(hardware=machine, num_ranks=8, ranks_per_host=2)
    shared = Network(hardware=machine, num_ranks=8, ranks_per_host=2, job=job)
    size = 1e9
    slower = shared.all_to_all(one(size), size).seconds - alone.all_to_all(one(size), size).seconds
    rate = min(2 * limited.nic_bytes_per_second, 1e11)
    expected = size * 2 * 3 / 4 * (1 / min(2 * limited.nic_bytes_per_second, 2.5e10) - 1 / rate)
    assert slower[0] == pytest.approx(expected)


def test_a_domain_has_as_many_ranks_of_a_group_as_lie_in_it() -> None:
    """An NVL72 rack is 18 hosts of 4: of a group with every second rank 36 are in it, and nothing crosses racks."""
    rack = load_profile("gb200-nvl72")
    job = WholeJob(num_ranks=72, ranks_per_host=4, stride=2)
    inside = Network(hardware=rack, num_ranks=36, ranks_per_host=2, job=job)
    alike = Network(hardware=rack, num_ranks=36, ranks_per_host=4)  # 36 ranks on 9 hosts of the rack
    assert inside.all_to_all(one(1e8), 1e8).seconds == alike.all_to_all(one(1e8), 1e8).seconds


def test_gradients_cross_the_pods_of_the_job() -> None:
    """Two pods of 16: of a group with every fourth rank 4 are in each, and copies are added up over all 32."""
    machine = hardware(laws=laws(domain_law("all_reduce"), hosts_law("all_reduce")))
    job = WholeJob(num_ranks=32, ranks_per_host=4, stride=4, pod_size=16)
    group = Network(hardware=machine, num_ranks=8, ranks_per_host=1, pod_size=4, job=job)
    whole = Network(hardware=machine, num_ranks=32, ranks_per_host=4, pod_size=16)
    assert group.all_reduce_in_job(one(1e6), one(1e6)).seconds == whole.all_reduce(one(1e6), one(1e6)).seconds
    assert group.start_seconds("all_reduce", "job") == whole.start_seconds("all_reduce", "all")


def test_a_group_of_all_ranks_is_the_job() -> None:
    machine = hardware(laws=laws(domain_law(), hosts_law()))
    job = WholeJob(num_ranks=16, ranks_per_host=8)
    part = Network(hardware=machine, num_ranks=16, ranks_per_host=8, job=job)
    whole = Network(hardware=machine, num_ranks=16, ranks_per_host=8)
    assert part.all_to_all(one(1e6), 1e7).seconds == whole.all_to_all(one(1e6), 1e7).seconds


def test_a_job_has_whole_hosts() -> None:
    with pytest.raises(ValueError, match="Expected num_ranks to be a multiple"):
        WholeJob(num_ranks=12, ranks_per_host=8)
    with pytest.raises(ValueError, match="Expected stride"):
        WholeJob(num_ranks=8, ranks_per_host=8, stride=9)
