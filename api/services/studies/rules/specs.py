"""The specs of points: the study's spec with some fields set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from api.schemas.spec import MAX_CUTOFF_SECONDS
from api.schemas.studies.base import MachinePriceSpec, SpecOfPoints
from api.services.studies.rules.base import Point, PointOutcome
from api.services.studies.rules.figures import Machines
from api.specs.input.changes import UnknownPlace, with_field
from cost_models.errors import UnknownProfile
from cost_models.hardware.profiles_loader import load_profile
from planner.domain.problem.cluster import MAX_RANKS

GLOBAL_BATCH_SIZE = "global_batch_size"
_BATCH = ("model", "batch_size_per_rank")
_CUTOFF = ("solver", "cutoff_seconds")
_WARM_START = ("solver", "warm_start")
_OBJECTIVES_WITH_CUTOFF = (None, "step_time")
#: Fields that add to the objective what no step takes, or put others before it.
_NO_CUTOFF_WITH = ("objectives", "previous_plan", "serving")
_LEARNED = "learned"  # how names of cost models begin that have no bounds
_LEAST_SECONDS = 1e-9  # of a cutoff
_BEYOND = 1 + 1e-6  # what is as long as the limit is not beyond it


class Impossible(ValueError):
    """A point has no spec; the message is for people."""


def changed(given: SpecOfPoints, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of points with fields set, by dotted names; raises ``Impossible``."""
    spec: Any = given.spec
    batch = given.global_batch_size
    try:
        for field, value in changes.items():
            if field == GLOBAL_BATCH_SIZE:
                batch = value
            else:
                spec = with_field(spec, field.split("."), value)
        if batch is not None:
            spec = with_field(spec, _BATCH, _batch_per_rank(spec, batch))
    except UnknownPlace as error:
        raise Impossible(str(error)) from None
    if not isinstance(spec.get("solver"), dict | None):
        raise Impossible("the spec's solver is no object")
    return dict(spec)


def _batch_per_rank(spec: Mapping[str, Any], batch: Any) -> int:
    """Divide a batch of all ranks by the ranks of a spec."""
    if type(batch) is not int or batch < 1:
        raise Impossible(f"{GLOBAL_BATCH_SIZE} is a whole number above 0")
    hosts, per_host = _shape(spec)
    num_ranks = hosts * per_host
    if batch % num_ranks:
        down = batch // num_ranks * num_ranks
        up = down + num_ranks
        nearest = f"{down:,} or {up:,}" if down else f"{up:,}"
        raise Impossible(
            f"a batch of {batch:,} samples is no multiple of {num_ranks:,} ranks; the nearest are {nearest}"
        )
    return batch // num_ranks


def _shape(spec: Mapping[str, Any]) -> tuple[int, int]:
    """Return the hosts of a spec and the ranks of each, as the checks of specs would; raises ``Impossible``."""
    hardware = spec.get("hardware")
    if not isinstance(hardware, Mapping):
        raise Impossible("the spec has no hardware")
    hosts, per_host = hardware.get("num_hosts", 1), hardware.get("ranks_per_host")
    if per_host is None:
        try:
            per_host = load_profile(str(hardware.get("profile"))).ranks_per_host
        except UnknownProfile as error:
            raise Impossible(str(error)) from None
    if type(hosts) is not int or type(per_host) is not int or hosts < 1 or per_host < 1:
        raise Impossible("num_hosts and ranks_per_host are whole numbers above 0")
    if hosts * per_host > MAX_RANKS:
        raise Impossible(f"the cluster has more than {MAX_RANKS:,} ranks; take fewer hosts")
    return hosts, per_host


def machines_of(spec: Mapping[str, Any], prices: Mapping[str, MachinePriceSpec]) -> Machines:
    """Return the cluster of a spec, and what its hosts cost if the prices say so; raises ``Impossible``."""
    hosts, per_host = _shape(spec)
    price = prices.get(str(spec["hardware"].get("profile")))
    model = spec.get("model")
    batch = model.get("batch_size_per_rank") if isinstance(model, Mapping) else None
    return Machines(
        num_hosts=hosts,
        num_ranks=hosts * per_host,
        batch_size_per_rank=batch if type(batch) is int and batch > 0 else None,
        price_per_host_hour=None if price is None else price.price_per_host_hour,
        watts_per_host=None if price is None else price.watts_per_host,
    )


def dense_compute_seconds(spec: Mapping[str, Any]) -> float:
    """Return the dense compute of a step as far as a spec gives it in seconds; a whole step takes as much more."""
    model = spec.get("model")
    dense = model.get("dense") if isinstance(model, Mapping) else None
    if not isinstance(dense, Mapping):
        return 0.0
    given = (dense.get(f"{part}_seconds") for part in ("forward", "backward"))
    return sum(float(one) for one in given if isinstance(one, int | float) and one > 0)


def takes_cutoff(spec: Mapping[str, Any]) -> bool:
    """Whether the bound of a spec's objective is one of the step, so that a cutoff of the step may end its solve."""
    if spec.get("objective") not in _OBJECTIVES_WITH_CUTOFF or any(spec.get(name) for name in _NO_CUTOFF_WITH):
        return False
    return not str(spec.get("cost_model")).startswith(_LEARNED)


def with_cutoff(spec: Mapping[str, Any], step_seconds: float | None) -> Mapping[str, Any]:
    """Return a spec whose solve ends as soon as its bound shows that no whole step is shorter than that.

    A spec of which no bound of the step is known, or that has a cutoff of its own, stays as it is.
    """
    own = (spec.get("solver") or {}).get("cutoff_seconds")
    if step_seconds is not None and own is None and takes_cutoff(spec):
        embeddings = step_seconds * _BEYOND - dense_compute_seconds(spec)
        if embeddings <= MAX_CUTOFF_SECONDS:
            return dict(with_field(spec, _CUTOFF, max(embeddings, _LEAST_SECONDS)))
    return spec


def with_warm_start(point: Point, before: PointOutcome | None) -> Point:
    """Return a point whose search begins with the plan of another one."""
    if before is None or before.plan_digest is None or point.spec is None or point.spec.get("previous_plan"):
        return point  # a search begins at the previous plan if there is one
    return replace(point, spec=with_field(point.spec, _WARM_START, {"digest": before.plan_digest}))


def steps_of(
    first: float, last: float, *, step: float | None, factor: float | None, most: int
) -> Sequence[float | int]:
    """Return the values of a range, whole numbers as such; at most ``most + 1`` of them."""
    found: list[float | int] = []
    value = float(first)
    while value <= last * (1 + 1e-12) and len(found) <= most:
        found.append(int(value) if float(value).is_integer() else value)
        index = len(found)
        try:
            value = first + index * step if step is not None else first * (factor or 1.0) ** index
        except OverflowError:  # beyond any last value
            break
    return found
