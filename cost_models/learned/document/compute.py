"""A compute model as a JSON document, and back; what does not belong is rejected with its place and the reason."""

from dataclasses import fields
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, arrays_of
from cost_models.errors import InvalidModelFile
from cost_models.learned.document.fields import LARGEST_NUMBER, items, members, number
from cost_models.learned.lookups.compute import LearnedCompute, Physics
from cost_models.learned.lookups.contention import Contention
from cost_models.learned.lookups.fitted import FittedCompute
from cost_models.learned.lookups.network import MonotoneNetwork
from cost_models.learned.reach.intervals import Interval
from cost_models.learned.reach.ranges import Range

Part = TypeVar("Part")

MOST_NETWORKS = 16
_COMPUTE = ("targets", "physics", "features", "feature_mean", "feature_scale", "networks", "typical")
_FITTED = ("contention", "ranges", "rank_ranges", "intervals")


def fitted_document(fitted: FittedCompute) -> dict[str, object]:
    """Return the JSON values of a compute model."""
    compute = fitted.compute
    return {
        "targets": list(compute.targets),
        "physics": {
            "terms": list(compute.physics.terms),
            **{name: seconds.tolist() for name, seconds in arrays_of(compute.physics)},
        },
        "features": list(compute.features),
        "feature_mean": compute.feature_mean.tolist(),
        "feature_scale": compute.feature_scale.tolist(),
        "networks": [{name: _short(weights) for name, weights in arrays_of(network)} for network in compute.networks],
        "typical": compute.typical.tolist(),
        "contention": [fitted.contention.fewest, fitted.contention.most],
        "ranges": {name: [one.low, one.high] for name, one in fitted.ranges.items()},
        "rank_ranges": {name: [one.low, one.high] for name, one in fitted.rank_ranges.items()},
        "intervals": [
            {
                "coverage": one.coverage,
                "contentions": list(one.contentions),
                "quantiles": list(one.quantiles),
                "log_width": list(one.log_width),
            }
            for one in fitted.intervals
        ],
    }


def parse_fitted(document: object) -> FittedCompute:
    """Return the compute model of :func:`fitted_document`'s form; raises ``InvalidModelFile``."""
    top = members(document, (*_COMPUTE, *_FITTED), "compute")
    physics = members(top["physics"], tuple(field.name for field in fields(Physics)), "compute.physics")
    networks = top["networks"]
    if not isinstance(networks, list) or len(networks) > MOST_NETWORKS:
        raise InvalidModelFile("compute.networks", f"expected a list of at most {MOST_NETWORKS} networks")
    try:
        compute = LearnedCompute(
            targets=_names(top["targets"], "compute.targets"),
            physics=Physics(
                terms=_names(physics["terms"], "compute.physics.terms"),
                **{
                    name: _array(seconds, 1 if name.startswith("launch") else 2, f"compute.physics.{name}")
                    for name, seconds in physics.items()
                    if name != "terms"
                },
            ),
            features=_names(top["features"], "compute.features"),
            feature_mean=_array(top["feature_mean"], 1, "compute.feature_mean"),
            feature_scale=_array(top["feature_scale"], 1, "compute.feature_scale"),
            networks=tuple(_network(one, f"compute.networks[{i}]") for i, one in enumerate(networks)),
            typical=_array(top["typical"], 2, "compute.typical"),
        )
        return FittedCompute(
            compute=compute,
            contention=Contention(*_whole_pair(top["contention"], "compute.contention")),
            ranges=_ranges(top["ranges"], "compute.ranges"),
            rank_ranges=_ranges(top["rank_ranges"], "compute.rank_ranges"),
            intervals=tuple(
                _interval(one, f"compute.intervals[{i}]")
                for i, one in enumerate(items(top["intervals"], "compute.intervals"))
            ),
        )
    except ValueError as error:
        raise InvalidModelFile("compute", str(error)) from error


def _network(document: object, place: str) -> MonotoneNetwork:
    names = tuple(field.name for field in fields(MonotoneNetwork))
    found = members(document, names, place)
    arrays = {
        name: _array(found[name], 1 if name.endswith("bias") else 2, f"{place}.{name}").astype(np.float32)
        for name in names
    }
    try:
        return MonotoneNetwork(**arrays)
    except ValueError as error:
        raise InvalidModelFile(place, str(error)) from error


def _interval(document: object, place: str) -> Interval:
    found = members(document, ("coverage", "contentions", "quantiles", "log_width"), place)
    return Interval(
        coverage=number(found["coverage"], f"{place}.coverage"),
        contentions=tuple(_array(found["contentions"], 1, f"{place}.contentions").tolist()),
        quantiles=tuple(_array(found["quantiles"], 1, f"{place}.quantiles").tolist()),
        log_width=tuple(_array(found["log_width"], 1, f"{place}.log_width").tolist()),
    )


def _ranges(document: object, place: str) -> dict[str, Range]:
    if not isinstance(document, dict):
        raise InvalidModelFile(place, "expected an object")
    found = {}
    for name, pair in document.items():
        low, high = _pair(pair, f"{place}.{name[:40]}")
        found[name] = Range(low, high)
    return found


def _array(value: object, dimensions: int, place: str) -> Floats:
    """Return numbers of so many axes, all finite."""
    try:
        found = np.array(items(value, place))
    except ValueError as error:
        raise InvalidModelFile(place, "expected rows of equal length") from error
    if found.ndim != dimensions:
        raise InvalidModelFile(place, f"expected numbers along {dimensions} axes, not {found.ndim}")
    if found.size and found.dtype.kind not in "if":
        raise InvalidModelFile(place, "expected numbers")
    numbers = found.astype(np.float64)
    if not np.all(np.abs(numbers) <= LARGEST_NUMBER):  # false for NaN
        raise InvalidModelFile(place, f"expected finite numbers of at most {LARGEST_NUMBER:g}")
    return numbers


def _names(value: object, place: str) -> tuple[str, ...]:
    found = items(value, place)
    names = [name for name in found if isinstance(name, str)]
    if len(names) != len(found):
        raise InvalidModelFile(place, "expected a list of names")
    return tuple(names)


def _pair(value: object, place: str) -> tuple[float, float]:
    found = _array(value, 1, place)
    if len(found) != 2:
        raise InvalidModelFile(place, "expected two numbers")
    return float(found[0]), float(found[1])


def _whole_pair(value: object, place: str) -> tuple[int, int]:
    low, high = _pair(value, place)
    if low != int(low) or high != int(high):
        raise InvalidModelFile(place, "expected whole numbers")
    return int(low), int(high)


def _short(values: NDArray[np.float32]) -> object:
    """Return float32 numbers as the shortest decimals that name them, nested as the array is."""
    if values.ndim > 1:
        return [_short(row) for row in values]
    return [float(str(value)) for value in values]
