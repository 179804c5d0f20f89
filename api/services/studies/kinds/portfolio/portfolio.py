"""Portfolios: plans for several numbers of hosts, chosen together so that a job moves few bytes from one to the next.

Every number of hosts is planned by itself first: its own best. Then two chains are planned, link by link, and each link
tries moved bytes at several prices: one from the main plan outwards, and one from the fewest hosts upwards, so that the
main plan holds what the smaller ones need. A link takes the plan that moves the fewest bytes among those whose step is
near the best one. The answer is the chain that moves fewer bytes in total.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from api.schemas.studies.portfolio import PortfolioSpec
from api.services.studies.kinds.portfolio.library import PlannedMoves
from api.services.studies.kinds.portfolio.moves import Move
from api.services.studies.kinds.portfolio.restarts import restart_costs
from api.services.studies.rules.base import Outcomes, Point, PointOutcome
from api.services.studies.rules.specs import GLOBAL_BATCH_SIZE, Impossible, changed, machines_of
from api.specs.references.resolve import Library
from planner.errors import InvalidProblem, Issue

OWN, FROM_MAIN, FROM_FEWEST = "own", "from_main", "from_fewest"
_HOSTS, _PREVIOUS, _STEPS = "hardware.num_hosts", "previous_plan", "previous_plan.remaining_steps"
#: Fields that the members' own replace, or that leave no chain of plans.
_REFUSED = ("previous_plan", "objectives", "serving", "checkpoint_plan")


@dataclass(frozen=True, slots=True)
class Link:
    """A number of hosts that is planned from a neighbour's plan."""

    num_hosts: int
    neighbour: int


@dataclass(frozen=True, slots=True)
class Chain:
    """A plan for every number of hosts, by the key of its point, as far as the chain is known."""

    order: str
    keys: Mapping[int, str]
    waiting: tuple[tuple[int, Point], ...]  # with the number of the round that each belongs to


class Portfolio:
    """Fulfils ``api.services.studies.rules.base.Study``."""

    def __init__(self, request: PortfolioSpec, library: Library) -> None:
        """Raises ``InvalidProblem`` if the spec says what a portfolio decides."""
        self._request, self._plans = request, PlannedMoves(request, library)
        self._main = request.hosts[0]
        self._fewer = sorted((one for one in request.hosts if one < self._main), reverse=True)
        self._more = sorted(one for one in request.hosts if one > self._main)
        _check(request)

    def next_points(self, ended: Outcomes) -> Sequence[Point]:
        """Return the own best of every number of hosts, then the next link of each chain."""
        own = [self._own(one) for one in self._request.hosts]
        points = [point for point in own if point.key not in ended]
        if points or ended[own[0].key].plan_digest is None:
            return points
        waiting = [one for order in self._orders() for one in self._chain(order, ended).waiting]
        # A study that was cut off inside a round ends that round first: the next one is that of the others, too.
        number = min((round_number for round_number, _ in waiting), default=0)
        return [point for round_number, point in waiting if round_number == number]

    def answer(self, ended: Outcomes) -> dict[str, Any]:
        """Return the members, what moves between them and between independent plans, and what restarts cost."""
        independent = {one: self._own(one).key for one in self._request.hosts}
        chains = [self._chain(order, ended) for order in self._orders()]
        totals = [(self._total(chain.keys, ended), chain) for chain in chains]
        known = [one for one in totals if one[0] is not None and not one[1].waiting]
        best = min(known, key=lambda one: one[0] or 0.0)[1] if known else Chain(OWN, independent, ())
        members = [self._member(one, best.keys.get(one), ended) for one in self._request.hosts]
        transitions = [self._transition(old, new, best.keys, ended) for old, new in self._steps()]
        total, without = self._total(best.keys, ended), self._total(independent, ended)
        answer: dict[str, Any] = {
            "order": best.order,
            "members": members,
            "plan_digests": {str(one["num_ranks"]): one["plan_digest"] for one in members if one["plan_digest"]},
            "transitions": transitions,
            "total_bytes": total,
            "independent_bytes": without,
            "total_bytes_by_order": {chain.order: found for found, chain in totals},
        }
        if self._request.restart is not None:
            answer["restarts"] = self._restarts(best.keys, members, ended)
        return answer

    def _restarts(
        self, keys: Mapping[int, str], members: Sequence[Mapping[str, Any]], ended: Outcomes
    ) -> dict[str, Any] | None:
        """Return what failures of one host cost; ``None`` if no member has one host fewer, or a plan is missing."""
        fewer = self._main - 1
        down, up = self._of(self._main, fewer, keys, ended), self._of(fewer, self._main, keys, ended)
        spec, digest = self._own(self._main).spec, members[0]["plan_digest"]
        if down is None or up is None or spec is None:
            return None
        replaced = self._plans.replaced(digest, self._plans.problem(self._main, spec))
        member = next(one for one in members if one["num_hosts"] == fewer)
        return None if replaced is None else restart_costs(self._request, (members[0], member), down, up, replaced)

    def _orders(self) -> list[str]:
        return [FROM_MAIN, FROM_FEWEST] if self._fewer else [FROM_MAIN]

    def _steps(self) -> list[tuple[int, int]]:
        """Return the changes of hosts that bytes are counted for: fewer and fewer, and more and more."""
        down, up = [self._main, *self._fewer], [self._main, *self._more]
        return [*pairwise(down), *pairwise(up)]

    def _chain(self, order: str, ended: Outcomes) -> Chain:
        """Follow a chain as far as it has ended; decisions look at the rounds before a link and at its own."""
        if order == FROM_MAIN:
            begin, first = self._main, [self._main, *self._fewer]
        else:
            first = sorted([self._main, *self._fewer])
            begin = first[0]
        keys, rounds = {begin: self._own(begin).key}, {begin: 0}
        waiting: list[tuple[int, Point]] = []
        if any(self._own(one).key not in ended for one in self._request.hosts):
            return Chain(order, keys, ())
        for path in (first, [self._main, *self._more]):
            for neighbour, num_hosts in pairwise(path):
                if neighbour not in keys:
                    break
                points = self._candidates(order, Link(num_hosts, neighbour), ended[keys[neighbour]])
                rounds[num_hosts] = rounds[neighbour] + 1
                new = [(rounds[num_hosts], point) for point in points if point.key not in ended]
                waiting += new
                if new:
                    break
                tried = [self._own(num_hosts).key, *(point.key for point in points)]
                keys[num_hosts] = self._least_moved(tried, Link(num_hosts, neighbour), keys[neighbour], ended)
        return Chain(order, keys, tuple(waiting))

    def _candidates(self, order: str, link: Link, neighbour: PointOutcome) -> list[Point]:
        if neighbour.plan_digest is None:
            return []
        points = []
        for steps in self._request.remaining_steps:
            previous = {"digest": neighbour.plan_digest, "remaining_steps": steps}
            labels = {_HOSTS: str(link.num_hosts), _PREVIOUS: f"{order} {link.neighbour}", _STEPS: str(steps)}
            points.append(
                self._point(f"{order}/{link.num_hosts}/{steps}", link.num_hosts, labels, {_PREVIOUS: previous})
            )
        return points

    def _least_moved(self, keys: Sequence[str], link: Link, neighbour: str, ended: Outcomes) -> str:
        """Return which of some points moves the fewest bytes with a step near the best; the first if none has a plan.

        Bytes count in the direction in which hosts fail, or are added to the main plan.
        """
        steps = {key: _step(ended[key]) for key in keys}
        known = [one for one in steps.values() if one is not None]
        if not known:
            return keys[0]
        limit = min(known) * (1 + self._request.max_step_ratio)
        near = [key for key in keys if (steps[key] or limit) <= limit and steps[key] is not None]
        goes_down = max(link.num_hosts, link.neighbour) <= self._main

        def total(key: str) -> float:
            ends = (key, link.num_hosts), (neighbour, link.neighbour)
            is_first = (link.num_hosts > link.neighbour) == goes_down
            (before, _), (after, hosts) = ends if is_first else ends[::-1]
            move = self._move(before, after, hosts, ended)
            return float("inf") if move is None else move.total_bytes

        return min(near, key=total)

    def _total(self, keys: Mapping[int, str], ended: Outcomes) -> float | None:
        """Return the bytes of all changes of hosts; ``None`` if a plan is missing."""
        total = 0.0
        for before, after in self._steps():
            move = self._of(before, after, keys, ended)
            if move is None:
                return None
            total += move.total_bytes
        return total

    def _of(self, before: int, after: int, keys: Mapping[int, str], ended: Outcomes) -> Move | None:
        if before not in keys or after not in keys:
            return None
        return self._move(keys[before], keys[after], after, ended)

    def _move(self, before: str, after: str, num_hosts: int, ended: Outcomes) -> Move | None:
        old, new = (ended[key].plan_digest if key in ended else None for key in (before, after))
        spec = self._own(num_hosts).spec
        if old is None or new is None or spec is None:
            return None
        return self._plans.move(old, new, self._plans.problem(num_hosts, spec))

    def _member(self, num_hosts: int, key: str | None, ended: Outcomes) -> dict[str, Any]:
        outcome = ended.get(key or "")
        step = None if outcome is None else _step(outcome)
        same = [one for name, one in ended.items() if name.split("/")[1] == str(num_hosts)]
        best = min((found for one in same if (found := _step(one)) is not None), default=None)
        bounds = [one.at_best.step_seconds for one in same if one.at_best and one.at_best.step_seconds is not None]
        bound = max(bounds, default=None)
        machines = self._own(num_hosts).machines
        figures = None if outcome is None else outcome.figures
        return {
            "num_hosts": num_hosts,
            "num_ranks": None if machines is None else machines.num_ranks,
            "key": key,
            "plan_digest": None if outcome is None else outcome.plan_digest,
            "step_seconds": step,
            "best_step_seconds": best,
            "at_least_step_seconds": bound,
            "step_ratio": None if step is None or not best else step / best - 1,
            "step_ratio_at_most": None if step is None or not bound else step / bound - 1,
            "samples_per_second": None if figures is None else figures.samples_per_second,
            "price_per_hour": None if figures is None else figures.price_per_hour,
        }

    def _transition(self, before: int, after: int, keys: Mapping[int, str], ended: Outcomes) -> dict[str, Any]:
        own = {one: self._own(one).key for one in (before, after)}
        move, without = self._of(before, after, keys, ended), self._of(before, after, own, ended)
        return {
            "from_hosts": before,
            "to_hosts": after,
            "lost_host": None if move is None else move.lost_host,
            "moved_bytes": None if move is None else move.moved_bytes,
            "checkpoint_bytes": None if move is None else move.checkpoint_bytes,
            "kept_bytes": None if move is None else move.kept_bytes,
            "moved_seconds": None if move is None else move.seconds,
            "most_read_bytes": None if move is None else move.most_read_bytes,
            "independent_moved_bytes": None if without is None else without.moved_bytes,
            "independent_checkpoint_bytes": None if without is None else without.checkpoint_bytes,
            "independent_moved_seconds": None if without is None else without.seconds,
        }

    def _own(self, num_hosts: int) -> Point:
        labels = {_HOSTS: str(num_hosts), _PREVIOUS: OWN, _STEPS: ""}
        return self._point(f"{OWN}/{num_hosts}", num_hosts, labels, {})

    def _point(self, key: str, num_hosts: int, labels: Mapping[str, str], changes: Mapping[str, Any]) -> Point:
        try:
            spec = changed(self._request, {_HOSTS: num_hosts, **self._batch(), **changes})
            machines = machines_of(spec, self._request.prices)
        except Impossible as error:
            return Point(key=key, labels=labels, spec=None, machines=None, issue=str(error))
        return Point(key=key, labels=labels, spec=spec, machines=machines)

    def _batch(self) -> dict[str, Any]:
        """Return the batch of all ranks, if members share that: of the study, or else of the main plan."""
        if self._request.batch == "per_rank" or self._request.global_batch_size is not None:
            return {}
        machines = machines_of(changed(self._request, {_HOSTS: self._main}), {})
        if machines.batch_size_per_rank is None:
            return {}
        return {GLOBAL_BATCH_SIZE: machines.batch_size_per_rank * machines.num_ranks}


def _step(outcome: PointOutcome) -> float | None:
    return None if outcome.figures is None else outcome.figures.step_seconds


def _check(request: PortfolioSpec) -> None:
    given = [name for name in _REFUSED if request.spec.get(name)]
    message = "the members of a portfolio are plans of the shortest step, each from its neighbour's"
    issues = [
        Issue(code="invalid-value", pointer=f"/spec/{name}", message=message, hint=f"leave {name} out")
        for name in given
    ]
    if issues:
        raise InvalidProblem(tuple(issues))
