"""The smallest fleet: the fewest hosts that reach a target, found by bisection and proven host by host.

Bisection takes it that more hosts reach what fewer do. That holds of most models and is no law: the network may cost
more than a host brings. So the answer rests on bounds alone. After the bisection every smaller number of hosts is
planned, too; its solve ends as soon as its bound shows that the target is out of reach, or that it has no plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.schemas.studies.base import MAX_POINTS, VariantSpec
from api.schemas.studies.fleet import SmallestFleetSpec, TargetSpec
from api.services.studies.rules.base import INFEASIBLE, INVALID, Outcomes, Point, PointOutcome
from api.services.studies.rules.figures import MORE_IS_BETTER, Figures, Machines
from api.services.studies.rules.specs import Impossible, changed, machines_of, steps_of, with_cutoff
from planner.errors import InvalidProblem, Issue

MEETS, SHORT, OPEN = "meets", "short", "open"
_HOSTS = "hardware.num_hosts"
_OWN = "own"


@dataclass(frozen=True, slots=True)
class Machine:
    """A kind of machine."""

    label: str
    changes: Mapping[str, Any]


class SmallestFleet:
    """Fulfils ``api.services.studies.rules.base.Study``."""

    def __init__(self, request: SmallestFleetSpec) -> None:
        """Raises ``InvalidProblem`` if numbers of hosts or labels of machines stand twice, or there are too many."""
        self._request = request
        self._hosts = _hosts(request)
        self._machines = [Machine(one.label, one.set) for one in request.machines] or [Machine(_OWN, {})]
        _check(self._hosts, request.machines)

    def next_points(self, ended: Outcomes) -> Sequence[Point]:
        """Return for each machine the numbers of hosts that bisection or the proof asks for next."""
        points = []
        for machine in self._machines:
            known = [self._status(ended.get(self._key(machine, hosts))) for hosts in self._hosts]
            points += [self._point(machine, self._hosts[index]) for index in next_indices(known)]
        return points

    def answer(self, ended: Outcomes) -> dict[str, Any]:
        """Return the fewest hosts of each machine, what is proven of fewer, and which machine is the cheapest."""
        found = [self._of_machine(machine, ended) for machine in self._machines]
        return {"machines": found, "cheapest": _cheapest(found)}

    def _of_machine(self, machine: Machine, ended: Outcomes) -> dict[str, Any]:
        outcomes = [ended.get(self._key(machine, hosts)) for hosts in self._hosts]
        known = [self._status(outcome) for outcome in outcomes]
        first = next((index for index, status in enumerate(known) if status == MEETS), None)
        below = known if first is None else known[:first]
        least = next((index for index, status in enumerate(below) if status != SHORT), first)
        best = None if first is None else outcomes[first]
        return {
            "machine": machine.label,
            "fewest_hosts": None if first is None else self._hosts[first],
            "at_least_hosts": None if least is None else self._hosts[least],
            "is_proven": all(status == SHORT for status in below),
            "key": None if first is None else self._key(machine, self._hosts[first]),
            "plan_digest": None if best is None else best.plan_digest,
            "price_per_hour": None if best is None or best.figures is None else best.figures.price_per_hour,
            "at_least_price_per_hour": None if least is None else self._price(machine, self._hosts[least]),
            "undecided_hosts": [self._hosts[index] for index, status in enumerate(below) if status == OPEN],
        }

    def _price(self, machine: Machine, num_hosts: int) -> float | None:
        point = self._point(machine, num_hosts)
        price = None if point.machines is None else point.machines.price_per_host_hour
        return None if price is None else price * num_hosts

    def _status(self, outcome: PointOutcome | None) -> str | None:
        """Say whether a number of hosts reaches the target; ``None`` if that was not asked yet."""
        if outcome is None:
            return None
        if outcome.figures is not None and reaches(outcome.figures, self._request.target):
            return MEETS
        if outcome.state in (INFEASIBLE, INVALID):
            return SHORT
        is_short = outcome.at_best is not None and cannot_reach(outcome.at_best, self._request.target)
        return SHORT if is_short else OPEN

    def _key(self, machine: Machine, num_hosts: int) -> str:
        return f"{machine.label}/{num_hosts}"

    def _point(self, machine: Machine, num_hosts: int) -> Point:
        key, labels = self._key(machine, num_hosts), {"machine": machine.label, _HOSTS: str(num_hosts)}
        try:
            spec = changed(self._request, {**machine.changes, _HOSTS: num_hosts})
            machines = machines_of(spec, self._request.prices)
        except Impossible as error:
            return Point(key=key, labels=labels, spec=None, machines=None, issue=str(error))
        step = longest_step(self._request.target, machines)
        return Point(key=key, labels=labels, spec=with_cutoff(spec, step), machines=machines)


def reaches(figures: Figures, target: TargetSpec) -> bool:
    """Whether a plan, or the best that a bound allows, is known to reach a target."""
    return _compared(figures, target) is True


def cannot_reach(at_best: Figures, target: TargetSpec) -> bool:
    """Whether the best that a bound allows is known to miss a target."""
    return _compared(at_best, target) is False


def _compared(figures: Figures, target: TargetSpec) -> bool | None:
    """Say whether figures reach a target; ``None`` if they do not say."""
    ((name, wanted),) = target.model_dump(exclude_none=True).items()
    value = figures.value(name)
    if value is None:
        return None
    return bool(value >= wanted if name in MORE_IS_BETTER else value <= wanted)


def longest_step(target: TargetSpec, machines: Machines) -> float | None:
    """Return the seconds above which no step reaches a target; ``None`` if a step does not decide."""
    if target.step_seconds is not None:
        return target.step_seconds
    if target.samples_per_second is None or machines.batch_size_per_rank is None:
        return None
    return machines.batch_size_per_rank * machines.num_ranks / target.samples_per_second


def next_indices(known: Sequence[str | None]) -> list[int]:
    """Return which numbers to ask for next: at most two of the search, and then all that the proof needs."""
    meets = [index for index, status in enumerate(known) if status == MEETS]
    asked = [index for index, status in enumerate(known) if status is not None]
    if not meets:
        last = len(known) - 1
        farthest = asked[-1] if asked else -1
        if farthest == last:  # none is known: the proof is of all
            return [index for index, status in enumerate(known) if status is None]
        return sorted({min(2 * farthest + 2, last), min(4 * farthest + 6, last)})
    high = meets[0]
    low = max((index for index in asked if index < high), default=-1)
    if high - low > 1:
        third = (high - low) / 3
        return sorted({low + max(1, round(third)), low + max(1, min(high - low - 1, round(2 * third)))})
    return [index for index in range(high) if known[index] is None]


def _cheapest(found: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the machine whose fewest hosts cost least, and whether none of the others can cost less."""
    priced = [one for one in found if one["price_per_hour"] is not None]
    if not priced:
        return None
    best = min(priced, key=lambda one: one["price_per_hour"])
    others = [one["at_least_price_per_hour"] for one in found if one is not best and one["at_least_hosts"] is not None]
    unpriced = any(price is None for price in others)
    own = best["at_least_price_per_hour"]
    is_proven = not unpriced and min([*others, own]) >= best["price_per_hour"]
    return {"machine": best["machine"], "price_per_hour": best["price_per_hour"], "is_proven": is_proven}


def _hosts(request: SmallestFleetSpec) -> list[int]:
    if request.hosts is not None:
        return sorted(request.hosts)
    assert request.host_range is not None
    one = request.host_range
    values = steps_of(one.first, one.last, step=one.step, factor=one.factor, most=MAX_POINTS)
    if any(type(value) is not int or value < 1 for value in values):
        message = "a range of hosts has values that are no whole numbers above 0"
        raise InvalidProblem((Issue(code="invalid-value", pointer="/host_range", message=message),))
    return [int(value) for value in values]


def _check(hosts: Sequence[int], machines: Sequence[VariantSpec]) -> None:
    issues = []
    if len(set(hosts)) < len(hosts):
        message = f"{len(hosts) - len(set(hosts))} numbers of hosts stand more than once"
        issues.append(Issue(code="invalid-value", pointer="/hosts", message=message, hint="name each once"))
    labels = [one.label for one in machines]
    if len(set(labels)) < len(labels):
        message = f"{len(labels) - len(set(labels))} labels of machines stand more than once"
        issues.append(Issue(code="invalid-value", pointer="/machines", message=message, hint="name each once"))
    if not hosts or len(hosts) * max(len(machines), 1) > MAX_POINTS:
        message = f"{len(hosts)} numbers of hosts for {max(len(machines), 1)} machines; 1 to {MAX_POINTS:,} points"
        issues.append(Issue(code="invalid-value", pointer="/host_range", message=message, hint="take other hosts"))
    if issues:
        raise InvalidProblem(tuple(issues))
