"""Several jobs on one fleet: each job is planned on every cluster that it may have, and a knapsack deals out the hosts.

The allocation is exact for the plans that were found. The same knapsack over bounds says what no plans could better, so
that a target that no allocation reaches is known as such.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from api.schemas.studies.base import MAX_POINTS
from api.schemas.studies.jobs import JobSpec, JobsSpec
from api.services.studies.kinds.packing import Candidate, allocated, places_of
from api.services.studies.rules.base import INFEASIBLE, INVALID, Outcomes, Point, PointOutcome
from api.services.studies.rules.keys import key_of
from api.services.studies.rules.specs import Impossible, changed, machines_of, with_warm_start
from planner.errors import InvalidProblem, Issue


class Jobs:
    """Fulfils ``api.services.studies.rules.base.Study``."""

    def __init__(self, request: JobsSpec) -> None:
        """Raises ``InvalidProblem`` if labels stand twice, or a cluster is no part of the fleet."""
        self._request = request
        self._points = [[self._point(job, label, changes) for label, changes in _shapes(job)] for job in request.jobs]
        self._priorities = sorted({job.priority for job in request.jobs}, reverse=True)
        self._ranks_per_part = self._checked()

    def next_points(self, ended: Outcomes) -> Sequence[Point]:
        """Return the first cluster of every job that is not planned yet, each from the plan of the one before."""
        points = []
        for of_job in self._points:
            index = next((index for index, point in enumerate(of_job) if point.key not in ended), None)
            if index is not None:
                points.append(with_warm_start(of_job[index], ended[of_job[index - 1].key] if index else None))
        return points

    def answer(self, ended: Outcomes) -> dict[str, Any]:
        """Return which job has which hosts, what each reaches, and what no allocation can better."""
        request = self._request
        found, possible = (self._candidates(ended, at_best=at_best) for at_best in (False, True))
        fleet = {"num_hosts": request.num_hosts, "parts_per_host": request.ranks_per_host // self._ranks_per_part}
        chosen, worth = allocated(found, num_priorities=len(self._priorities), **fleet)
        _, bound = allocated(possible, num_priorities=len(self._priorities), **fleet)
        places = places_of(
            chosen,
            num_hosts=request.num_hosts,
            ranks_per_part=self._ranks_per_part,
            ranks_per_host=request.ranks_per_host,
        )
        jobs = [
            _job_answer(job, None if candidate is None else candidate.value, possible[index], places[index], ended)
            for index, (job, candidate) in enumerate(zip(request.jobs, chosen, strict=True))
        ]
        used = sum(job["num_ranks"] for job in jobs)
        return {
            "jobs": jobs,
            "num_targets_met": sum(worth[0]),
            "most_targets_met": sum(bound[0]),
            "weighted_rate": worth[1],
            "at_most_weighted_rate": bound[1] if bound[0] == worth[0] and math.isfinite(bound[1]) else None,
            "used_ranks": used,
            "free_ranks": request.num_hosts * request.ranks_per_host - used,
        }

    def _candidates(self, ended: Outcomes, *, at_best: bool) -> list[list[Candidate[Point]]]:
        """Return the clusters on which jobs have rates: those of their plans, or the best that their bounds allow."""
        return [
            self._candidates_of(job, points, ended, at_best=at_best)
            for job, points in zip(self._request.jobs, self._points, strict=True)
        ]

    def _candidates_of(
        self, job: JobSpec, points: Sequence[Point], ended: Outcomes, *, at_best: bool
    ) -> list[Candidate[Point]]:
        needed, rates = job.needed_samples_per_second, {point.key: rate_of(ended.get(point.key)) for point in points}
        most = needed or max((rate for rate in rates.values() if rate is not None), default=0.0)
        candidates = []
        for point in points:
            rate = rate_of(ended.get(point.key), at_best=at_best)
            if point.machines is None or rate is None:
                continue
            is_met = needed is not None and rate >= needed
            candidates.append(
                Candidate(
                    num_hosts=point.machines.num_hosts,
                    is_whole=point.machines.num_ranks == point.machines.num_hosts * self._request.ranks_per_host,
                    met=tuple(int(is_met and job.priority == priority) for priority in self._priorities),
                    # What is beyond a target is worth no more than the target.
                    rate=_counted_rate(job, rate, most),
                    value=point,
                )
            )
        return candidates

    def _point(self, job: JobSpec, label: str, changes: Mapping[str, Any]) -> Point:
        key, labels = key_of([job.label, label]), {"job": job.label, "cluster": label}
        try:
            spec = changed(job, changes)
            machines = machines_of(spec, self._request.prices)
        except Impossible as error:
            return Point(key=key, labels=labels, spec=None, machines=None, issue=str(error))
        return Point(key=key, labels=labels, spec=spec, machines=machines)

    def _checked(self) -> int:
        """Return how many ranks of a host a part has; raises ``InvalidProblem``."""
        request, parts = self._request, set[int]()
        issues = _repeated(request.jobs)
        for number, (job, points) in enumerate(zip(request.jobs, self._points, strict=True)):
            field = "hosts" if job.shapes is None else "shapes"
            for index, point in enumerate(points):
                if point.machines is None:
                    continue
                hosts, ranks = point.machines.num_hosts, point.machines.num_ranks // point.machines.num_hosts
                parts |= {ranks} - {request.ranks_per_host}
                pointer = f"/jobs/{number}/{field}/{index}"
                if hosts > request.num_hosts:
                    issues.append(_refused(pointer, f"{hosts} hosts of a fleet of {request.num_hosts}"))
                if request.ranks_per_host % ranks:
                    issues.append(_refused(pointer, f"{ranks} ranks of a host with {request.ranks_per_host}", _EQUAL))
        if len(parts) > 1:
            shown = ", ".join(str(one) for one in sorted(parts))
            issues.append(_refused("/jobs", f"parts of hosts with {shown} ranks", "give all parts as many ranks"))
        num_points = sum(len(points) for points in self._points)
        if num_points > MAX_POINTS:
            issues.append(_refused("/jobs", f"{num_points:,} points, {MAX_POINTS:,} at most", "list fewer clusters"))
        if issues:
            raise InvalidProblem(tuple(issues))
        return parts.pop() if parts else request.ranks_per_host


def _counted_rate(job: JobSpec, rate: float, most: float) -> float:
    """Return what a rate counts; of a job without any known rate, one that may be had counts without end."""
    needed = job.needed_samples_per_second
    if most > 0:
        return job.weight * (rate if needed is None else min(rate, needed)) / most
    return math.inf if math.isinf(rate) else 0.0


_EQUAL = "hosts are shared in equal parts: take ranks that divide those of the host"


def rate_of(outcome: PointOutcome | None, *, at_best: bool = False) -> float | None:
    """Return the samples per second of a point's plan, ``None`` if it has none; or of the best that is possible.

    At best they are infinite where no bound is known, and ``None`` where there is no plan.
    """
    found = None if outcome is None or outcome.figures is None else outcome.figures.samples_per_second
    if not at_best:
        return found
    if outcome is not None and outcome.state in (INFEASIBLE, INVALID):
        return None
    bound = None if outcome is None or outcome.at_best is None else outcome.at_best.samples_per_second
    return math.inf if bound is None else max(found or 0.0, bound)


def _shapes(job: JobSpec) -> list[tuple[str, Mapping[str, Any]]]:
    if job.shapes is not None:
        return [(one.label, one.set) for one in job.shapes]
    return [(str(hosts), {"hardware.num_hosts": hosts}) for hosts in sorted(job.hosts or ())]


def _repeated(jobs: Sequence[JobSpec]) -> list[Issue]:
    labels, issues = [job.label for job in jobs], []
    for number, job in enumerate(jobs):
        if labels.count(job.label) > 1:
            issues.append(_refused(f"/jobs/{number}/label", "another job has this label"))
        names = [label for label, _ in _shapes(job)]
        if len(set(names)) < len(names):
            field = "hosts" if job.shapes is None else "shapes"
            message = f"{len(names) - len(set(names))} of {len(names)} clusters stand more than once"
            issues.append(_refused(f"/jobs/{number}/{field}", message))
    return issues


def _refused(pointer: str, message: str, hint: str = "") -> Issue:
    return Issue(code="invalid-value", pointer=pointer, message=message, hint=hint)


def _job_answer(
    job: JobSpec,
    point: Point | None,
    possible: Sequence[Candidate[Point]],
    places: Sequence[Mapping[str, Any]],
    ended: Outcomes,
) -> dict[str, Any]:
    needed = job.needed_samples_per_second
    outcome = None if point is None else ended[point.key]
    rate = rate_of(outcome)
    return {
        "job": job.label,
        "key": None if point is None else point.key,
        "plan_digest": None if outcome is None else outcome.plan_digest,
        "num_ranks": 0 if point is None or point.machines is None else point.machines.num_ranks,
        "places": list(places),
        "samples_per_second": rate,
        "needed_samples_per_second": needed,
        "meets_target": None if needed is None else rate is not None and rate >= needed,
        "can_meet_target": None if needed is None else any(any(candidate.met) for candidate in possible),
        "seconds_to_end": None if job.samples is None or not rate else job.samples / rate,
    }
