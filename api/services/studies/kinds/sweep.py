"""Sweeps: a spec over every combination of values, and the Pareto front of the plans.

Points along the last axis are planned in rounds, each from the plan of the point before it: neighbours have similar
plans, and a search that begins with one needs little time. A round looks at the rounds before it and at nothing else,
so that a sweep ends alike however fast its points are.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.schemas.studies.base import MAX_POINTS
from api.schemas.studies.sweep import AxisSpec, SweepSpec
from api.services.studies.rules.base import CANCELLED, FAILED, NO_PLAN, Outcomes, Point
from api.services.studies.rules.figures import machine_figures
from api.services.studies.rules.front import longest_useful_step, standings
from api.services.studies.rules.keys import key_of
from api.services.studies.rules.specs import Impossible, changed, machines_of, steps_of, with_cutoff, with_warm_start
from planner.errors import InvalidProblem, Issue


@dataclass(frozen=True, slots=True)
class Value:
    """A value of an axis: what it sets, and its name."""

    label: str
    changes: Mapping[str, Any]


class Sweep:
    """Fulfils ``api.services.studies.rules.base.Study``."""

    def __init__(self, request: SweepSpec) -> None:
        """Raises ``InvalidProblem`` if there are too many points, or two values of an axis have one name."""
        self._request = request
        self._axes = [_values(axis) for axis in request.axes]
        self._names = [axis.field or f"axis {number}" for number, axis in enumerate(request.axes, start=1)]
        _check(self._axes)
        _check_fields(self._axes)

    def next_points(self, ended: Outcomes) -> Sequence[Point]:
        """Return the points of the first round that has some left."""
        chains = list(itertools.product(*self._axes[:-1]))
        for index, last in enumerate(self._axes[-1]):
            in_round = [(*chain, last) for chain in chains]
            left = [one for one in in_round if _key(one) not in ended]
            if left:
                return [self._point_after(one, self._earlier(ended, index), index) for one in left]
        return ()

    def answer(self, ended: Outcomes) -> dict[str, Any]:
        """Return the front; points of which no plan is known, and that may have one, leave it unproven."""
        unknown = []
        for values in itertools.product(*self._axes):
            outcome = ended.get(_key(values))
            if outcome is None or outcome.state in (NO_PLAN, FAILED, CANCELLED):
                machines = self._point(values).machines
                if machines is not None:
                    unknown.append(machine_figures(machines))
        names = self._request.front
        return {"front": {"figures": list(names), "points": standings(ended, names, unknown)}}

    def _earlier(self, ended: Outcomes, index: int) -> Outcomes:
        """Return what became of the points of the rounds before."""
        chains = itertools.product(*self._axes[:-1])
        keys = [_key((*chain, last)) for chain in chains for last in self._axes[-1][:index]]
        return {key: ended[key] for key in keys}

    def _point_after(self, values: Sequence[Value], earlier: Outcomes, index: int) -> Point:
        """Return a point that begins with the plan of its neighbour, and ends as soon as it cannot be on the front."""
        point = self._point(values)
        if point.spec is None or point.machines is None:
            return point
        if self._request.prune:
            known = [one.figures for one in earlier.values() if one.figures is not None]
            step = longest_useful_step(machine_figures(point.machines), known, self._request.front)
            point = replace(point, spec=with_cutoff(point.spec, step))
        before = earlier[_key((*values[:-1], self._axes[-1][index - 1]))] if index else None
        return with_warm_start(point, before)

    def _point(self, values: Sequence[Value]) -> Point:
        labels = {name: value.label for name, value in zip(self._names, values, strict=True)}
        changes = {field: value for one in values for field, value in one.changes.items()}
        try:
            spec = changed(self._request, changes)
            machines = machines_of(spec, self._request.prices)
        except Impossible as error:
            return Point(key=_key(values), labels=labels, spec=None, machines=None, issue=str(error))
        return Point(key=_key(values), labels=labels, spec=spec, machines=machines)


def _key(values: Sequence[Value]) -> str:
    return key_of([value.label for value in values])


def _values(axis: AxisSpec) -> list[Value]:
    if axis.variants is not None:
        return [Value(one.label, one.set) for one in axis.variants]
    assert axis.field is not None
    if axis.range is not None:
        one = axis.range
        values: Sequence[Any] = steps_of(one.first, one.last, step=one.step, factor=one.factor, most=MAX_POINTS)
    else:
        values = axis.values or ()
    return [Value(_label(value), {axis.field: value}) for value in values]


def _label(value: object) -> str:
    """Return a value as the name of its points has it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _check_fields(axes: Sequence[Sequence[Value]]) -> None:
    """Refuse two axes that set one field, of which the second would hide the first."""
    seen: dict[str, int] = {}
    issues = []
    for number, axis in enumerate(axes):
        for field in sorted({field for value in axis for field in value.changes}):
            if field in seen:
                message = f"axis {seen[field]} sets {field}, too"
                hint = "name each field in one axis"
                issues.append(Issue(code="invalid-value", pointer=f"/axes/{number}", message=message, hint=hint))
            seen.setdefault(field, number)
    if issues:
        raise InvalidProblem(tuple(issues))


def _check(axes: Sequence[Sequence[Value]]) -> None:
    issues = []
    for number, axis in enumerate(axes):
        labels = [value.label for value in axis]
        twice = {label for label in labels if labels.count(label) > 1}
        if twice:
            message = f"{len(twice)} of {len(labels)} values stand more than once"
            issues.append(
                Issue(code="invalid-value", pointer=f"/axes/{number}", message=message, hint="name each once")
            )
    sizes = [len(axis) for axis in axes]
    total = 1
    for size in sizes:
        total *= size
    if total > MAX_POINTS:
        message = f"{' x '.join(map(str, sizes))} values are {total:,} points, {MAX_POINTS:,} at most"
        issues.append(Issue(code="invalid-value", pointer="/axes", message=message, hint="take fewer values"))
    if issues:
        raise InvalidProblem(tuple(issues))
