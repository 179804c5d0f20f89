r"""Widths of intervals and their quantiles, from deviations on launches that the fit has not seen.

The validation launches are few, and their quantile hangs on luck. Each network leaves out a part of the training
launches, and is assessed on that part, so that all of them give a deviation. A single network is a little worse than
the mean of all that is served: by how much, the validation launches show, which were seen by none.

.. math:: q = q_{training}(one) \, \frac{q_{validation}(all)}{q_{validation}(one)}

References
----------
Vovk, "Cross-conformal predictors", 2015. Without networks (physics has hardly any freedom to fit noise), and where too
little was measured, the quantile is that of the validation launches (split conformal).
"""

from dataclasses import replace

import numpy as np

from cost_models.arrays import Floats
from cost_models.fitting.launches import Launches
from cost_models.fitting.predicting import contentions, held_from, launch_seconds
from cost_models.learned.lookups.compute import LearnedCompute
from cost_models.learned.lookups.contention import Contention
from cost_models.learned.reach.intervals import Interval, width_inputs, widths

COVERAGE = 0.9
#: Relative deviations below this count as this: the logarithm of none would decide the fit of widths.
LEAST_DEVIATION = 0.002
#: Fewer scores than this have no quantile of their own.
LEAST_SCORES = 100


def calibrate(
    compute: LearnedCompute, contention: Contention, training: Launches, validation: Launches
) -> tuple[Interval, ...]:
    """Return the interval of each target; ``training`` is in the order that the networks were trained in."""
    apart = _one_at_a_time(compute, contention, training)
    served = launch_seconds(compute, contention, validation)
    singles = [launch_seconds(one, contention, validation) for one in _members(compute)]
    intervals = []
    for target in range(len(compute.targets)):
        inputs = _inputs(apart, training, contention, target)
        log_deviation = np.log(np.maximum(_deviations(apart, training, target), LEAST_DEVIATION))
        log_width: Floats = np.linalg.lstsq(inputs, log_deviation, rcond=None)[0].astype(np.float64)

        def scores(predicted: Floats, of: Launches, at: int = target, log_width: Floats = log_width) -> Floats:
            found: Floats = _deviations(predicted, of, at) / widths(_inputs(predicted, of, contention, at), log_width)
            return found

        held_out, crowd, better = scores(served, validation), contentions(contention, validation), 1.0
        if len(compute.networks) > 1:
            better = _quantile(held_out) / _quantile(np.concatenate([scores(one, validation) for one in singles]))
            held_out, crowd = scores(apart, training), contentions(contention, training)
        values, counts = np.unique(crowd, return_counts=True)
        if np.any(counts < LEAST_SCORES):  # one quantile for all
            values, crowd = np.zeros(1), np.zeros(len(crowd))
        found = [_quantile(held_out[crowd == value]) * better for value in values]
        intervals.append(
            Interval(
                coverage=COVERAGE,
                contentions=tuple(values.tolist()),
                quantiles=tuple(found),
                log_width=tuple(log_width.tolist()),
            )
        )
    return tuple(intervals)


def _members(compute: LearnedCompute) -> list[LearnedCompute]:
    """Return a model of each network alone."""
    targets = len(compute.targets)
    return [
        replace(compute, networks=(network,), typical=np.zeros((network.num_parts + targets, targets)))
        for network in compute.networks
    ]


def _one_at_a_time(compute: LearnedCompute, contention: Contention, training: Launches) -> Floats:
    """Return what is predicted of each launch by the network that did not learn from it."""
    seconds = launch_seconds(compute, contention, training)
    left_out = held_from(training.num_launches, len(compute.networks))
    for member, one in enumerate(_members(compute)):
        places = np.flatnonzero(left_out == member)
        seconds[places] = launch_seconds(one, contention, training.take(places))
    return seconds


def _inputs(predicted: Floats, launches: Launches, contention: Contention, target: int) -> Floats:
    return width_inputs(predicted[:, target], launches.num_shards, contentions(contention, launches))


def _deviations(predicted: Floats, launches: Launches, target: int) -> Floats:
    deviations: Floats = np.abs(np.log(launches.seconds[:, target] / predicted[:, target]))
    return deviations


def _quantile(scores: Floats) -> float:
    """The quantile of n scores that holds for one more score from the same source."""
    level = min(COVERAGE * (1 + 1 / len(scores)), 1.0)
    return float(np.quantile(scores, level, method="higher"))
