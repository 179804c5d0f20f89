"""Several jobs on one fleet: allocations against brute force, places that do not overlap, what is refused."""

import itertools
import json
import random
from typing import Any

import pytest

from api.services.studies.kinds.packing import Candidate, allocated, places_of
from api.services.studies.kinds.registry import parse_study, study_of
from api.services.studies.rules.base import FAILED, INFEASIBLE, NO_PLAN, PLANNED, Point, PointOutcome
from api.services.studies.rules.figures import machine_figures, with_step
from planner.errors import InvalidProblem
from tests.support.service.specs import tiny


def job(label: str, **fields: object) -> dict[str, Any]:
    return {"label": label, "spec": tiny(hardware__ranks_per_host=8), "hosts": [1, 2, 4], **fields}


def jobs(*given: object, **fields: object) -> dict[str, Any]:
    return {"kind": "jobs", "num_hosts": 4, "ranks_per_host": 8, "jobs": list(given), **fields}


def study(document: object) -> Any:
    return study_of(parse_study(json.dumps(document).encode()))


def outcome(point: Point, rate: float, possible: float) -> PointOutcome:
    assert point.machines is not None
    batch = point.machines.num_ranks * (point.machines.batch_size_per_rank or 1)
    base = machine_figures(point.machines)
    found, best = (with_step(base, batch / one, is_whole_step=False) for one in (rate, possible))
    return PointOutcome(state=PLANNED, plan_digest=f"sha256:{point.key}", figures=found, at_best=best)


def answered(document: object, rates: dict[str, float], *, slack: float = 1.0) -> dict[str, Any]:
    one, ended = study(document), {}
    while points := one.next_points(ended):
        ended |= {point.key: outcome(point, rates[point.key], slack * rates[point.key]) for point in points}
    return one.answer(ended)


def packable(chosen: tuple[Candidate[Any] | None, ...], num_hosts: int, parts: int) -> bool:
    """Whether hosts can be found one after the other, by trying all ways."""
    taken = [one for one in chosen if one is not None]
    left = [parts] * num_hosts

    def place(index: int) -> bool:
        if index == len(taken):
            return True
        one = taken[index]
        width = parts if one.is_whole else 1
        for hosts in itertools.combinations(range(num_hosts), one.num_hosts):
            if all(left[host] >= width for host in hosts):
                for host in hosts:
                    left[host] -= width
                if place(index + 1):
                    return True
                for host in hosts:
                    left[host] += width
        return False

    return place(0)


@pytest.mark.parametrize("seed", range(60))
def test_an_allocation_is_that_of_brute_force(seed: int) -> None:
    chance = random.Random(seed)
    num_hosts, parts = chance.randrange(1, 5), chance.choice([1, 2, 3])
    candidates = [
        [
            Candidate(
                num_hosts=chance.randrange(1, num_hosts + 1),
                is_whole=parts == 1 or chance.random() < 0.5,
                met=tuple(int(chance.random() < 0.5) if tier == number % 2 else 0 for tier in range(2)),
                rate=chance.choice([0.25, 0.5, 1.0]),
                value=number,
            )
            for _ in range(chance.randrange(0, 4))
        ]
        for number in range(chance.randrange(1, 5))
    ]
    found, worth = allocated(candidates, num_hosts=num_hosts, parts_per_host=parts, num_priorities=2)

    def worth_of(chosen: tuple[Candidate[int] | None, ...]) -> tuple[tuple[int, ...], float]:
        taken = [one for one in chosen if one is not None]
        return tuple(sum(one.met[tier] for one in taken) for tier in range(2)), sum(one.rate for one in taken)

    all_ways = itertools.product(*([None, *of_job] for of_job in candidates))
    best = max(worth_of(chosen) for chosen in all_ways if packable(chosen, num_hosts, parts))
    assert worth == worth_of(tuple(found)) == best
    places = places_of(found, num_hosts=num_hosts, ranks_per_part=2, ranks_per_host=2 * parts)
    taken_ranks = set()
    for candidate, of_job in zip(found, places, strict=True):
        hosts = [host for one in of_job for host in range(one["first_host"], one["last_host"] + 1)]
        assert len(hosts) == len(set(hosts)) == (0 if candidate is None else candidate.num_hosts)
        for one in of_job:
            for host in range(one["first_host"], one["last_host"] + 1):
                ranks = {(host, rank) for rank in range(one["first_rank"], one["first_rank"] + one["num_ranks"])}
                assert not ranks & taken_ranks
                assert max(rank for _, rank in ranks) < 2 * parts
                assert host < num_hosts
                taken_ranks |= ranks


def test_targets_of_higher_priority_are_met_first() -> None:
    rates = {f"a/{n}": 100.0 * n for n in (1, 2, 4)} | {f"b/{n}": 100.0 * n for n in (1, 2, 4)}
    both = jobs(job("a", samples_per_second=400.0), job("b", samples_per_second=200.0, priority=5))
    answer = answered(both, rates)
    assert [(one["job"], one["key"], one["meets_target"]) for one in answer["jobs"]] == [
        ("a", "a/2", False),
        ("b", "b/2", True),
    ]
    assert (answer["num_targets_met"], answer["most_targets_met"]) == (1, 1)
    assert answer["free_ranks"] == 0


def test_a_target_that_no_plan_can_reach_is_known_as_such() -> None:
    rates = {f"a/{n}": 100.0 * n for n in (1, 2, 4)}
    far = answered(jobs(job("a", samples_per_second=500.0)), rates, slack=1.1)
    assert (far["jobs"][0]["meets_target"], far["jobs"][0]["can_meet_target"]) == (False, False)
    near = answered(jobs(job("a", samples_per_second=420.0)), rates, slack=1.1)
    assert (near["jobs"][0]["meets_target"], near["jobs"][0]["can_meet_target"]) == (False, True)
    assert (near["num_targets_met"], near["most_targets_met"]) == (0, 1)


def test_a_deadline_is_a_rate() -> None:
    rates = {f"a/{n}": 100.0 * n for n in (1, 2, 4)}
    answer = answered(jobs(job("a", samples=1000.0, deadline_seconds=5.0)), rates)
    (one,) = answer["jobs"]
    assert (one["key"], one["needed_samples_per_second"], one["seconds_to_end"]) == ("a/2", 200.0, 5.0)


def test_two_jobs_share_hosts() -> None:
    half = {"label": "half of 4", "set": {"hardware.num_hosts": 4, "hardware.ranks_per_host": 4}}
    shared = [job(label) | {"shapes": [half]} for label in ("a", "b")]
    for one in shared:
        del one["hosts"]
    answer = answered(jobs(*shared), {"a/half of 4": 1.0, "b/half of 4": 1.0})
    assert [one["places"] for one in answer["jobs"]] == [
        [{"first_host": 0, "last_host": 3, "first_rank": first, "num_ranks": 4}] for first in (0, 4)
    ]


def test_clusters_of_one_job_are_planned_one_from_the_other() -> None:
    one = study(jobs(job("a"), job("b")))
    first = one.next_points({})
    assert [point.key for point in first] == ["a/1", "b/1"]
    second = one.next_points({point.key: outcome(point, 1.0, 1.0) for point in first})
    assert [point.key for point in second] == ["a/2", "b/2"]
    assert second[0].spec["solver"]["warm_start"] == {"digest": "sha256:a/1"}


def test_what_is_no_part_of_the_fleet_is_refused_all_at_once() -> None:
    odd = {"label": "odd", "set": {"hardware.num_hosts": 8, "hardware.ranks_per_host": 3}}
    two = {"label": "two", "set": {"hardware.ranks_per_host": 2}}
    four = {"label": "four", "set": {"hardware.ranks_per_host": 4}}
    wrong = job("a", shapes=[odd, two, four])
    del wrong["hosts"]
    with pytest.raises(InvalidProblem) as caught:
        study(jobs(wrong, job("a", hosts=[1, 1])))
    assert sorted((issue.pointer, issue.message) for issue in caught.value.issues) == [
        ("/jobs", "parts of hosts with 2, 3, 4 ranks"),
        ("/jobs/0/label", "another job has this label"),
        ("/jobs/0/shapes/0", "3 ranks of a host with 8"),
        ("/jobs/0/shapes/0", "8 hosts of a fleet of 4"),
        ("/jobs/1/hosts", "1 of 2 clusters stand more than once"),
        ("/jobs/1/label", "another job has this label"),
    ]


@pytest.mark.parametrize("state", [PLANNED, NO_PLAN, FAILED, INFEASIBLE])
def test_a_target_is_out_of_reach_only_if_bounds_say_so(state: str) -> None:
    one, ended = study(jobs(job("a", samples_per_second=1e9))), {}
    while points := one.next_points(ended):
        for point in points:
            base = machine_figures(point.machines) if state == PLANNED else None
            found = None if base is None else with_step(base, 1.0, is_whole_step=False)
            ended[point.key] = PointOutcome(state=state, figures=found, at_best=base)
    answer = one.answer(ended)
    assert answer["most_targets_met"] == (state != INFEASIBLE)
    assert answer["jobs"][0]["can_meet_target"] == (state != INFEASIBLE)
    json.dumps(answer, allow_nan=False)


def test_a_rate_without_a_bound_bounds_no_allocation() -> None:
    one, ended = study(jobs(job("a"))), {}
    while points := one.next_points(ended):
        ended |= {point.key: PointOutcome(state=NO_PLAN) for point in points}
    assert one.answer(ended)["at_most_weighted_rate"] is None


def test_clusters_of_jobs_with_slashes_in_their_labels_are_points_apart() -> None:
    shapes = [{"label": one, "set": {"name": "x"}} for one in ("b/c", "c")]
    given = jobs(job("a", hosts=None, shapes=shapes[:1]), job("a/b", hosts=None, shapes=shapes[1:]))
    for one in given["jobs"]:
        del one["hosts"]
    assert len({point.key for point in study(given).next_points({})}) == 2
