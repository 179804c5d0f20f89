"""Whole collectives and starts of every profile against a second reading of docs/cost-models.md."""

import itertools

import numpy as np
import pytest

from cost_models.collectives.collectives import Network
from cost_models.hardware.laws.domain_law import OPERATIONS
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from tests.support.oracle.machine import Machine

LAWFUL = [name for name in profile_ids() if load_profile(name).domain_laws or load_profile(name).hosts_laws]
MESSAGES = (10.0, 1e5, 3e7, 1e10)


@pytest.mark.parametrize("profile", LAWFUL)
@pytest.mark.parametrize("hosts", [1, 3, 18, 40])
@pytest.mark.parametrize("per_host", [1, 2, None])
def test_laws_are_what_the_page_says(profile: str, hosts: int, per_host: int | None) -> None:
    hardware = load_profile(profile)
    ranks = per_host or hardware.ranks_per_host
    if hosts > 1 and not (hardware.hosts_laws or hardware.domain_ranks or hardware.has("inter_host_bytes_per_second")):
        pytest.skip(f"{profile} says nothing of links between hosts")
    network = Network(hardware=hardware, num_ranks=hosts * ranks, ranks_per_host=ranks)
    machine = Machine.of({"profile": profile, "num_hosts": hosts, "ranks_per_host": ranks})
    assert_alike(network, machine)


@pytest.mark.parametrize("profile", ["gb200-nvl72", "gb300-nvl72", "dgx-h100-80g"])
@pytest.mark.parametrize(("hosts", "hosts_of_pod"), [(2, 2), (4, 2), (18, 9), (36, 18), (6, 1)])
def test_pods_are_domains(profile: str, hosts: int, hosts_of_pod: int) -> None:
    hardware = load_profile(profile)
    ranks, pod_size = hardware.ranks_per_host, hosts_of_pod * hardware.ranks_per_host
    network = Network(hardware=hardware, num_ranks=hosts * ranks, ranks_per_host=ranks, pod_size=pod_size)
    machine = Machine.of({"profile": profile, "num_hosts": hosts, "ranks_per_host": ranks, "pod_size": pod_size})
    assert_alike(network, machine)


def assert_alike(network: Network, machine: Machine) -> None:
    """Every operation in every group takes what the page says."""
    for operation, group in itertools.product(OPERATIONS, ("all", "inside", "across")):
        start = machine.start(operation, group)
        assert network.start_seconds(operation, group).value == pytest.approx(start, rel=1e-12)  # type: ignore[arg-type]
        expected = [start + size * machine.pace(operation, group, size) for size in MESSAGES]
        whole = network.whole_seconds(operation, group, np.array(MESSAGES))  # type: ignore[arg-type]
        assert whole.seconds == pytest.approx(expected, rel=1e-9)
