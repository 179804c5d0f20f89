"""Pods of hosts: which sizes a cluster can have, and what is refused with its number and the way out."""

import json
from typing import Any

import pytest

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from planner.errors import InvalidProblem, Issue
from tests.support.paths import ROOT
from tests.support.service.specs import raw, tiny

RACK = {"profile": "gb200-nvl72", "num_hosts": 4}


def request_of(pod_size: int | None, runtime: str = "torchrec", **hardware: object) -> SolveRequest:
    return parse_spec(raw(tiny(hardware={**RACK, "pod_size": pod_size, **hardware}, runtime=runtime)))


def issue_of(pod_size: int, **changes: object) -> Issue:
    with pytest.raises(InvalidProblem) as caught:
        request_of(pod_size, **changes)  # type: ignore[arg-type]
    (issue,) = [issue for issue in caught.value.issues if issue.pointer == "/hardware/pod_size"]
    return issue


@pytest.mark.parametrize("pod_size", [4, 8, 16])
@pytest.mark.parametrize("runtime", ["torchrec", "generic"])
def test_whole_hosts_that_divide_the_ranks(pod_size: int, runtime: str) -> None:
    cluster = request_of(pod_size, runtime).problem.cluster
    assert (cluster.ranks_per_group, cluster.num_groups) == (pod_size, 16 // pod_size)
    assert (cluster.num_hosts, cluster.host_of(7), cluster.group_of(7)) == (4, 1, 7 // pod_size)


def test_without_pods_groups_are_hosts_also_in_a_rack() -> None:
    request = request_of(None)
    assert (request.problem.cluster.pod_size, request.problem.cluster.ranks_per_group) == (None, 4)
    assert parse_spec(raw(tiny(hardware=RACK))).spec_digest == request.spec_digest


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        ({"pod_size": 6}, "pods of 6 ranks are no whole hosts of 4 ranks", "use a multiple of 4"),
        ({"pod_size": 12}, "16 ranks are no whole pods of 12", "use 4 or 8 or 16, or another num_hosts"),
        (
            {"pod_size": 76, "num_hosts": 19},
            "pods of 76 ranks, and an NVLink domain of gb200-nvl72 has 72",
            "use at most 72, or say how fast links inside such a pod are: overrides.intra_host_bytes_per_second",
        ),
        (
            {"pod_size": 16, "profile": "dgx-a100-80g"},
            "pods of 16 ranks, and an NVLink domain of dgx-a100-80g has 8",
            "use at most 8, or say how fast links inside such a pod are",
        ),
        (
            {"pod_size": 8, "runtime": "hugectr"},
            "pods of 8 ranks, and the runtime hugectr takes no several hosts for one",
            "leave pod_size out, or use a runtime that has pods: torchrec, generic",
        ),
        (
            {"pod_size": 8, "runtime": "torcheasyrec"},
            "the runtime torcheasyrec takes no several hosts for one",
            "or use",
        ),
        ({"pod_size": 0}, "0 is below the least value", "use at least 1"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str, hint: str) -> None:
    issue = issue_of(**changes)
    assert message in issue.message
    assert hint in issue.hint


def test_links_of_a_larger_pod_may_be_stated() -> None:
    for given in ({"overrides": {"intra_host_bytes_per_second": 25e9}}, {"collective_laws": laws()}):
        request = request_of(16, profile="dgx-a100-80g", **given)
        assert request.problem.cluster.num_groups == 2
    custom = {"hbm_bytes": 8e10, "hbm_bytes_per_second": 1e12, "intra_host_bytes_per_second": 1e11}
    custom |= {"inter_host_bytes_per_second": 1e10}
    assert request_of(16, profile="custom", overrides=custom).problem.cluster.num_groups == 2


def laws() -> Any:
    """Laws of another machine, as a user has them."""
    return json.loads((ROOT / "cost_models/hardware/laws/sets/h100-nvswitch.json").read_text())


def test_too_many_ranks_per_host_name_pods_as_the_way_out() -> None:
    with pytest.raises(InvalidProblem) as caught:
        request_of(None, ranks_per_host=8)
    (issue,) = caught.value.issues
    assert issue.pointer == "/hardware/ranks_per_host"
    assert "use at most 4 and more hosts, which pod_size joins (up to 72 ranks share NVLink)" in issue.hint
