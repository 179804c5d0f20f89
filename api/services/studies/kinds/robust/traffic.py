r"""The specs of scenarios: as they are given, drawn around the spec, and mixed into one.

A drawn scenario multiplies the pooling factor of every feature by

.. math:: f^u, \quad u \sim U(-1, 1)

with the factor ``f`` of the spread, independently of all others: half of the features have more ids than the spec says,
half have fewer, and as many have twice as many as have half.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from api.schemas.studies.scenarios import ScenariosSpec, SpreadSpec
from api.services.studies.rules.specs import Impossible, changed
from planner.errors import InvalidProblem, Issue

_DIGITS = 6  # of drawn pooling factors, after the point


@dataclass(frozen=True, slots=True)
class Scenario:
    """Traffic with its spec."""

    label: str
    weight: float
    spec: Mapping[str, Any]


def scenarios_of(request: ScenariosSpec) -> list[Scenario]:
    """Return the scenarios of a request; raises ``InvalidProblem`` with everything that is wrong with them."""
    issues: list[Issue] = []
    found: list[Scenario] = []
    base = _base(request)
    for number, one in enumerate(request.scenarios):
        where = f"/scenarios/{number}"
        try:
            spec = changed(request, one.set)
        except Impossible as error:
            issues.append(_issue(f"{where}/set", str(error), "name a field that the spec has"))
            continue
        for field, ours, theirs in _fixed(base, spec):
            message = f"the scenario changes {field} from {ours} to {theirs}"
            issues.append(_issue(f"{where}/set", message, "scenarios change traffic alone: sweep over shapes instead"))
        found.append(Scenario(one.label, one.weight, spec))
    if request.spread is not None:
        found += _drawn(base, request.spread)
    labels = [one.label for one in request.scenarios]
    issues += [
        _issue(f"/scenarios/{number}/label", f"{label!r} is the label of an earlier scenario, too", "name each once")
        for number, label in enumerate(labels)
        if label in labels[:number]
    ]
    if request.spread is not None:
        issues += [
            _issue(f"/scenarios/{number}/label", f"{label!r} is the label of a drawn scenario", "take another label")
            for number, label in enumerate(labels)
            if label in {_drawn_label(index) for index in range(request.spread.number)}
        ]
    if issues:
        raise InvalidProblem(tuple(issues))
    return found


def mixed(
    scenarios: Sequence[Scenario], base: Mapping[str, Any], mix: Callable[[Sequence[float]], float]
) -> dict[str, Any]:
    """Return the spec with every number that scenarios do not agree in mixed; what is no number is as in ``base``."""
    result: dict[str, Any] = _mixed([one.spec for one in scenarios], base, mix)
    return result


def weighted_mean(scenarios: Sequence[Scenario]) -> Callable[[Sequence[float]], float]:
    """Return what makes the mean of the scenarios' numbers."""
    weights = [one.weight for one in scenarios]
    return lambda values: sum(map(float.__mul__, map(float, values), weights)) / sum(weights)


def _mixed(specs: Sequence[Any], base: Any, mix: Callable[[Sequence[float]], float]) -> Any:
    if isinstance(base, Mapping) and all(isinstance(one, Mapping) for one in specs):
        names = dict.fromkeys([*base, *(name for one in specs for name in one)])
        inside = {name: _mixed([one.get(name) for one in specs], base.get(name), mix) for name in names}
        return {name: value for name, value in inside.items() if name in base or value is not None}
    if isinstance(base, list) and all(isinstance(one, list) and len(one) == len(base) for one in specs):
        return [_mixed([one[index] for one in specs], value, mix) for index, value in enumerate(base)]
    if all(one == specs[0] for one in specs):
        return specs[0]
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in specs):
        value = float(mix(specs))
        return round(value) if all(isinstance(one, int) for one in specs) else value
    return base


def _base(request: ScenariosSpec) -> dict[str, Any]:
    try:
        return changed(request, {})
    except Impossible as error:
        raise InvalidProblem((_issue("/spec", str(error), ""),)) from None


def _fixed(base: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what a scenario must not change and does: the field, and both values."""
    for part in ("hardware", "runtime", "objective", "cost_model", "objectives"):
        if base.get(part) != spec.get(part):
            yield part, _shown(base.get(part)), _shown(spec.get(part))
    ours, theirs = (_tables(one) for one in (base, spec))
    if len(ours) != len(theirs):
        yield "the number of tables", str(len(ours)), str(len(theirs))
    for name in ("name", "num_embeddings", "embedding_dim", "optimizer", "data_type", "constraints"):
        for one, other in zip(ours, theirs, strict=False):
            if one.get(name) != other.get(name):
                yield f"{name} of table {one.get('name')}", _shown(one.get(name)), _shown(other.get(name))
                break


def _tables(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    model = spec.get("model")
    tables = model.get("tables") if isinstance(model, Mapping) else None
    return [table for table in tables if isinstance(table, Mapping)] if isinstance(tables, list) else []


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _drawn(base: Mapping[str, Any], spread: SpreadSpec) -> Iterator[Scenario]:
    for index in range(spread.number):
        generator = np.random.default_rng((spread.seed, index))
        spec = copy.deepcopy(dict(base))
        for stream in _streams(spec):
            pooling, factor = stream["pooling_factor"], spread.factor ** generator.uniform(-1.0, 1.0)
            if isinstance(pooling, int | float) and not isinstance(pooling, bool):
                stream["pooling_factor"] = round(float(pooling * factor), _DIGITS)
        yield Scenario(_drawn_label(index), spread.weight, spec)


def _streams(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what has a pooling factor: features, and tables that stand for their only feature."""
    for table in _tables(spec):
        features = table.get("features")
        listed = features if isinstance(features, list) else []
        yield from (one for one in (table, *listed) if isinstance(one, dict) and "pooling_factor" in one)


def _drawn_label(index: int) -> str:
    return f"drawn {index + 1}"


def _issue(pointer: str, message: str, hint: str) -> Issue:
    return Issue(code="invalid-value", pointer=pointer, message=message, hint=hint)
