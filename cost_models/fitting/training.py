"""Trains monotone networks with torch: several at once, each from its own start, on launches of any number of shards.

Each member leaves out a part of the launches, so that its error there shows how wide intervals must be.

Weights that must not be negative are the softplus of what the optimiser moves. The loss is the mean relative error of
the seconds, rounded off near zero, so that a launch of a millisecond counts as much as one of a second.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Ints
from cost_models.learned.lookups.network import EXPONENTS, NOTHING, MonotoneNetwork

#: What the softplus makes 1 of: ln T begins as ln p.
PHYSICS_ALONE = math.log(math.e - 1)
#: Deviations below this are squared, above absolute.
SMALL_DEVIATION = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How large the networks are and how long they learn."""

    members: int = 4
    hidden: int = 48
    parts: int = 16
    rank_hidden: int = 32
    #: at least, of few launches as many as make ``least_steps``: they need as long to be learned
    epochs: int = 480
    least_steps: int = 15_000
    batch_launches: int = 256
    learning_rate: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """Launches and their shards; ``launch`` is sorted, so that the shards of a launch lie together."""

    features: Floats  # (num_shards, num_features), scaled
    launch: Ints  # (num_shards,)
    contention: Floats  # (num_launches,)
    log_physics: Floats  # (num_launches, num_targets)
    log_seconds: Floats  # (num_launches, num_targets)
    free: NDArray[np.bool_]  # (num_features,): features that may lower the seconds
    #: (num_launches,): the member that must not learn from the launch, so that it can be assessed on it
    held_from: Ints


def train(rows: TrainingSet, effort: Effort, seed: int) -> tuple[MonotoneNetwork, ...]:
    """Return ``effort.members`` networks; the same for the same rows, effort and seed on the same machine.

    They do not depend on how many cores it has.
    """
    import torch  # the extra "train"; nothing that serves a model needs it

    torch.use_deterministic_algorithms(True, warn_only=False)
    # Matrices are so small that threads mostly wait for each other, on a busy machine four times as long; and how sums
    # are divided among them would show in the weights.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _trained(rows, effort, seed, torch)
    finally:
        torch.set_num_threads(threads)


def _trained(rows: TrainingSet, effort: Effort, seed: int, torch: Any) -> tuple[MonotoneNetwork, ...]:
    random = torch.Generator().manual_seed(seed)
    weights = _start(rows, effort, random, torch)
    order = np.random.default_rng(seed)
    features = torch.as_tensor(rows.features, dtype=torch.float32)
    contention = torch.as_tensor(rows.contention, dtype=torch.float32)
    log_physics = torch.as_tensor(rows.log_physics, dtype=torch.float32)
    log_seconds = torch.as_tensor(rows.log_seconds, dtype=torch.float32)
    num_launches = len(rows.contention)
    learns = torch.as_tensor(np.arange(effort.members)[:, None] != rows.held_from, dtype=torch.float32)
    counts = np.bincount(rows.launch, minlength=num_launches)
    starts = np.cumsum(counts) - counts
    batches = math.ceil(num_launches / effort.batch_launches)
    epochs = max(effort.epochs, math.ceil(effort.least_steps / batches))
    steps = epochs * batches
    optimiser = torch.optim.Adam(list(weights.values()), lr=effort.learning_rate, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, effort.learning_rate, total_steps=steps, pct_start=0.1)
    for _ in range(epochs):
        shuffled = order.permutation(num_launches)
        for first in range(0, num_launches, effort.batch_launches):
            batch = shuffled[first : first + effort.batch_launches]
            of_batch = np.repeat(np.arange(len(batch)), counts[batch])
            within = np.arange(len(of_batch)) - np.repeat(np.cumsum(counts[batch]) - counts[batch], counts[batch])
            shards = torch.from_numpy(np.repeat(starts[batch], counts[batch]) + within)
            chosen = torch.from_numpy(batch)
            optimiser.zero_grad()
            predicted = _forward(
                _signed(weights, rows.free, torch),
                features[shards],
                torch.from_numpy(of_batch),
                contention[chosen],
                log_physics[chosen],
                torch,
            )
            deviation = (predicted - log_seconds[chosen]) * learns[:, chosen, None]
            torch.sqrt(deviation * deviation + SMALL_DEVIATION**2).mean().backward()
            optimiser.step()
            schedule.step()
    with torch.no_grad():
        signed = {name: value.numpy() for name, value in _signed(weights, rows.free, torch).items()}
    return tuple(
        MonotoneNetwork(**{name: value[member].astype(np.float32) for name, value in signed.items()})
        for member in range(effort.members)
    )


def _start(rows: TrainingSet, effort: Effort, random: Any, torch: Any) -> dict[str, Any]:
    """Return random weights before the softplus, (members, ...): networks that say what physics says, and little more.

    Weights are small, since many of them add up and none is negative.
    """
    inputs, targets = rows.features.shape[1] + 1, rows.log_seconds.shape[1]
    hidden, parts, rank_hidden = effort.hidden, effort.parts, effort.rank_hidden

    def normal(*shape: int, mean: float, spread: float) -> Any:
        value = torch.randn(effort.members, *shape, generator=random) * spread + mean
        return value.requires_grad_()

    rank_past = normal(parts + 1 + targets, targets, mean=-6.0, spread=0.0)
    with torch.no_grad():
        for target in range(targets):
            rank_past[:, parts + 1 + target, target] = PHYSICS_ALONE
    return {
        "shard_hidden": normal(inputs, hidden, mean=-1.0, spread=0.7),
        "shard_hidden_bias": normal(hidden, mean=0.0, spread=1.0),
        "shard_out": normal(hidden, parts, mean=-2.0, spread=0.7),
        "shard_past": normal(inputs, parts, mean=-1.0, spread=0.3),
        "shard_bias": normal(parts, mean=0.0, spread=0.0),
        "rank_hidden": normal(parts + 1 + targets, rank_hidden, mean=-2.0, spread=0.7),
        "rank_hidden_bias": normal(rank_hidden, mean=0.0, spread=1.0),
        "rank_out": normal(rank_hidden, targets, mean=-5.0, spread=0.7),
        "rank_past": rank_past,
        "rank_bias": normal(targets, mean=0.0, spread=0.0),
    }


def _signed(weights: dict[str, Any], free: NDArray[np.bool_], torch: Any) -> dict[str, Any]:
    """Return the weights that the network has: non-negative where seconds must not fall."""
    positive = torch.nn.functional.softplus
    is_free = torch.from_numpy(np.append(free, False))[:, None]
    signed = {}
    for name, value in weights.items():
        if name.endswith("bias"):
            signed[name] = value
        elif name in ("shard_hidden", "shard_past"):
            # Free weights start near zero: theirs is the mean of the starts.
            signed[name] = torch.where(is_free, value + 1.0, positive(value))
        else:
            signed[name] = positive(value)
    return signed


def _forward(w: dict[str, Any], features: Any, launch: Any, contention: Any, log_physics: Any, torch: Any) -> Any:
    """Return ln T of every member, (members, num_launches, num_targets); the formula of ``MonotoneNetwork``."""
    members, parts = w["shard_bias"].shape
    inputs = torch.cat([features, contention[launch][:, None]], dim=1)
    hidden = _bend(inputs @ w["shard_hidden"] + w["shard_hidden_bias"][:, None], torch)
    exponents = hidden @ w["shard_out"] + inputs @ w["shard_past"] + w["shard_bias"][:, None]
    shard_parts = torch.exp(torch.clamp(exponents, *EXPONENTS))
    sums = torch.zeros(members, len(contention), parts).index_add(1, launch, shard_parts)
    around = torch.cat([contention[:, None], log_physics], dim=1).expand(members, -1, -1)
    of_rank = torch.cat([torch.log(sums + NOTHING), around], dim=2)
    bent = _bend(of_rank @ w["rank_hidden"] + w["rank_hidden_bias"][:, None], torch)
    return bent @ w["rank_out"] + of_rank @ w["rank_past"] + w["rank_bias"][:, None]


def _bend(values: Any, torch: Any) -> Any:
    half = values.shape[-1] // 2
    return torch.cat([values[..., :half].clamp(min=0), values[..., half:].clamp(max=0)], dim=-1)
