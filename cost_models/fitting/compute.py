"""Fits the compute model: physics by non-negative coefficients, networks on what physics leaves, then intervals."""

from dataclasses import replace

import numpy as np

from cost_models.arrays import Floats
from cost_models.fitting.calibration import calibrate
from cost_models.fitting.launches import Launches
from cost_models.fitting.non_negative import fit_non_negative
from cost_models.fitting.predicting import contentions, held_from, launch_sums
from cost_models.fitting.split import Split
from cost_models.fitting.training import Effort, TrainingSet, train
from cost_models.learned.lookups.compute import TINY_SECONDS, LearnedCompute, Physics
from cost_models.learned.lookups.contention import Contention
from cost_models.learned.lookups.features import FEATURES, FREE_FEATURES, TERMS, feature_matrix, term_matrix
from cost_models.learned.lookups.fitted import FittedCompute
from cost_models.learned.lookups.network import MonotoneNetwork
from cost_models.learned.reach.ranges import measured_ranges, measured_rank_ranges, rank_sums

#: Fewer launches than this to learn from, and physics alone does better (measured on CPU: 20 to 320 launches).
LEAST_LAUNCHES_FOR_NETWORKS = 320
#: Terms that make less of the seconds of a typical launch are left out: each of them takes its time to be priced.
LEAST_PART = 0.005
#: Features whose logarithms vary less, or follow another feature as closely, add nothing.
LEAST_SPREAD = 1e-6
SAME_FEATURE = 1 - 1e-6


def fit_compute(launches: Launches, split: Split, *, seed: int, effort: Effort | None = None) -> FittedCompute:
    """Fit on the training launches, calibrate on those for validation; the test launches are not looked at.

    Raises
    ------
    ValueError
        There is nothing to learn from, or nothing to calibrate on.
    """
    if len(split.training) < 1 or len(split.validation) < 1:
        raise ValueError("Expected launches to learn from and to calibrate on; measure more.")
    training = launches.take(split.training)
    contention = Contention(int(training.ranks_per_host.min()), int(training.ranks_per_host.max()))
    compute = _fit_physics(training, contention)
    if training.num_launches >= LEAST_LAUNCHES_FOR_NETWORKS:
        compute = _fit_networks(training, contention, compute.physics, seed, effort or Effort())
    return FittedCompute(
        compute=compute,
        contention=contention,
        ranges=measured_ranges(training.columns),
        rank_ranges=measured_rank_ranges(rank_sums(training.columns, training.launch, training.num_launches)),
        intervals=calibrate(compute, contention, training, launches.take(split.validation)),
    )


def _fit_physics(launches: Launches, contention: Contention) -> LearnedCompute:
    """Fit physics twice, the second time without the terms that turned out to cost next to nothing."""
    names, num_targets = TERMS, len(launches.targets)
    terms = term_matrix(launches.columns, names)
    sums = np.stack([np.bincount(launches.launch, term, launches.num_launches) for term in terms.T], axis=1)
    design = np.concatenate([sums, np.ones((len(sums), 1))], axis=1)
    # Where one number of ranks was measured all are zero, and so are their coefficients.
    crowded = design * contentions(contention, launches)[:, None]
    found = _non_negative(np.concatenate([design, crowded], axis=1), launches.seconds)
    parts = _parts(np.concatenate([design, crowded], axis=1), found, launches.seconds)
    used = np.flatnonzero(np.max(np.split(parts, 2), axis=0)[:-1] >= LEAST_PART)
    used = used if len(used) else np.array([0])
    used_columns = np.append(used, len(names))
    found = _non_negative(np.concatenate([design[:, used_columns], crowded[:, used_columns]], axis=1), launches.seconds)
    alone, more = np.split(found, 2)
    physics = Physics(
        terms=tuple(names[i] for i in used),
        seconds=alone[:-1],
        contention_seconds=more[:-1],
        launch_seconds=alone[-1],
        launch_contention_seconds=more[-1],
    )
    return LearnedCompute(
        targets=launches.targets,
        physics=physics,
        features=(),
        feature_mean=np.zeros(0),
        feature_scale=np.ones(0),
        networks=(),
        typical=np.eye(num_targets),
    )


def _non_negative(design: Floats, seconds: Floats) -> Floats:
    """Return the coefficients of each target, (num_columns, num_targets)."""
    return np.stack([fit_non_negative(design, of_target) for of_target in seconds.T], axis=1)


def _parts(design: Floats, found: Floats, seconds: Floats) -> Floats:
    """Return which part of the seconds each column makes, (num_columns,), for the target that it matters most to.

    The mean is over the launches that have something of it: narrow weights may be few.
    """
    there = np.maximum(np.count_nonzero(design, axis=0), 1)
    of_targets = [np.sum(design * found[:, t] / seconds[:, t, None], axis=0) / there for t in range(seconds.shape[1])]
    largest: Floats = np.max(of_targets, axis=0)
    return largest


def _fit_networks(
    launches: Launches, contention: Contention, physics: Physics, seed: int, effort: Effort
) -> LearnedCompute:
    """Train networks on top of the physics, then fit the additive prices to what they read of launches."""
    names = _varying_features(launches)
    features = feature_matrix(launches.columns, names).astype(np.float64)
    mean, scale = features.mean(axis=0), features.std(axis=0)
    crowd = contentions(contention, launches)
    of_shards = np.empty((len(features), len(launches.targets)))
    of_launch = np.empty((launches.num_launches, len(launches.targets)))
    for value in np.unique(crowd):
        shards = crowd[launches.launch] == value
        of_shards[shards] = physics.of_shards(launches.columns.take(shards), float(value))
        of_launch[crowd == value] = physics.of_launch(float(value))
    sums = [np.bincount(launches.launch, of_target, launches.num_launches) for of_target in of_shards.T]
    seconds = of_launch + np.stack(sums, axis=1)
    networks = train(
        TrainingSet(
            features=(features - mean) / scale,
            launch=launches.launch,
            contention=crowd,
            log_physics=np.log(seconds + TINY_SECONDS),
            log_seconds=np.log(launches.seconds),
            free=np.array([name in FREE_FEATURES for name in names], dtype=np.bool_),
            held_from=held_from(launches.num_launches, effort.members),
        ),
        effort,
        seed,
    )
    return _with_typical_prices(
        LearnedCompute(
            targets=launches.targets,
            physics=physics,
            features=names,
            feature_mean=mean,
            feature_scale=scale,
            networks=networks,
            typical=_no_prices(networks, len(launches.targets)),
        ),
        contention,
        launches,
    )


def _no_prices(networks: tuple[MonotoneNetwork, ...], num_targets: int) -> Floats:
    return np.zeros((sum(network.num_parts for network in networks) + num_targets, num_targets))


def _with_typical_prices(compute: LearnedCompute, contention: Contention, launches: Launches) -> LearnedCompute:
    """Return the model with the non-negative price of each part that fits launches best without a constant.

    Only the first network's parts and the physics get a price: more would hardly be better, and cost their time.
    """
    sums = launch_sums(compute, contention, launches)
    num_targets = len(compute.targets)
    sums[:, compute.networks[0].num_parts : -num_targets] = 0.0
    typical = np.stack([fit_non_negative(sums, launches.seconds[:, t]) for t in range(num_targets)], axis=1)
    return replace(compute, typical=typical)


def _varying_features(launches: Launches) -> tuple[str, ...]:
    """Return the features that vary, each but once where several say the same."""
    chosen: list[str] = []
    taken: list[Floats] = []
    for name in FEATURES:
        values = feature_matrix(launches.columns, (name,))[:, 0].astype(np.float64)
        values -= values.mean()
        if np.std(values) < LEAST_SPREAD:
            continue
        values /= np.linalg.norm(values)
        if all(abs(float(values @ other)) < SAME_FEATURE for other in taken):
            chosen.append(name)
            taken.append(values)
    return tuple(chosen)
