"""The same training without shards, in float64 and plain torch: what a plan must not change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tests.support.torchrec.model import (
    ADAGRAD_EPSILON,
    DENSE_LEARNING_RATE,
    LEARNING_RATES,
    MAX_IDS_PER_BAG,
    Bags,
    TableSpec,
    batches,
    dense_weights,
    initial_weights,
    is_processed,
    is_sequence,
    is_weighted,
    lookups,
)

Pieces = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a training ends with."""

    losses: NDArray[np.float64]  # (num_steps,) mean over the global batch
    tables: Mapping[str, NDArray[np.float64]]
    dense: NDArray[np.float64]


def train_unsharded(tables: Sequence[TableSpec], world_size: int, optimizer: str, column_pieces: Pieces) -> Trained:
    """Train with whole tables on the global batch.

    Parameters
    ----------
    column_pieces
        (offset, width) of every table's column pieces: row-wise AdaGrad keeps one accumulator
        per row *of each piece*, which is the one way in which a cut changes the arithmetic.
    """
    weights = {
        name: torch.tensor(w, dtype=torch.float64, requires_grad=True) for name, w in initial_weights(tables).items()
    }
    dense = torch.tensor(dense_weights(tables), dtype=torch.float64, requires_grad=True)
    sums = {name: torch.zeros(len(w), len(column_pieces[name]), dtype=torch.float64) for name, w in weights.items()}
    losses = []
    positions = {
        feature: torch.ones(MAX_IDS_PER_BAG, dtype=torch.float64, requires_grad=True)
        for t, feature, _ in lookups(tables)
        if is_processed(t.module_path)
    }
    for bags, labels in batches(tables, world_size):
        pooled = [
            _pool(weights[t.name], t, bags[t.module_path, feature], positions.get(feature))
            for t, feature, _ in lookups(tables)
        ]
        loss = (
            ((torch.cat(pooled, dim=1) @ dense.T).squeeze(1) - torch.tensor(labels, dtype=torch.float64))
            .square()
            .mean()
        )
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            for name, weight in weights.items():
                _step(weight, sums[name], column_pieces[name], optimizer)
            dense -= DENSE_LEARNING_RATE * dense.grad
            for of_feature in positions.values():
                of_feature -= LEARNING_RATES["sgd"] * of_feature.grad
        for parameter in (*weights.values(), *positions.values(), dense):
            parameter.grad = None
    return Trained(
        losses=np.array(losses),
        tables={name: weight.detach().numpy() for name, weight in weights.items()},
        dense=dense.detach().numpy(),
    )


def _pool(weight: torch.Tensor, table: TableSpec, bags: Bags, positions: torch.Tensor | None) -> torch.Tensor:
    batch = len(bags.lengths)
    rows = weight[torch.tensor(bags.ids)]
    if is_weighted(table.module_path):
        rows = rows * torch.tensor(bags.weights, dtype=torch.float64).unsqueeze(1)
    lengths = torch.tensor(bags.lengths)
    sample = torch.repeat_interleave(torch.arange(batch), lengths)
    position = torch.arange(len(rows)) - (lengths.cumsum(0) - lengths)[sample]
    if positions is not None:
        rows = rows * positions[position].unsqueeze(1)
    if is_sequence(table.module_path):
        rows = rows / (1 + position).unsqueeze(1)
    total = torch.zeros(batch, table.columns, dtype=torch.float64).index_add(0, sample, rows)
    if table.pooling == "mean":
        total = total / torch.tensor(np.maximum(bags.lengths, 1), dtype=torch.float64).unsqueeze(1)
    return total


def _step(weight: torch.Tensor, sums: torch.Tensor, pieces: Sequence[tuple[int, int]], optimizer: str) -> None:
    gradient = weight.grad
    for index, (offset, width) in enumerate(pieces):
        columns = slice(offset, offset + width)
        update = gradient[:, columns]
        if optimizer == "rowwise_adagrad":
            sums[:, index] += update.square().mean(dim=1)
            update = update / (sums[:, index].sqrt() + ADAGRAD_EPSILON).unsqueeze(1)
        weight[:, columns] -= LEARNING_RATES[optimizer] * update
