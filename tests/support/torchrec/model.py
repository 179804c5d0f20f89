"""The model that the tests train, and its data: the same on every rank and in the reference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: The training that every case runs.
NUM_STEPS = 4
BATCH_SIZE_PER_RANK = 8
MAX_IDS_PER_BAG = 5
#: Large enough that every table moves visibly, small enough that the loss falls.
LEARNING_RATES = {"sgd": 0.2, "rowwise_adagrad": 0.02}
DENSE_LEARNING_RATE = 0.002
ADAGRAD_EPSILON = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """A table of the tested model; ``scheme`` is the one that the case forces on it."""

    name: str
    rows: int
    columns: int
    features: tuple[str, ...]
    scheme: str
    pooling: str = "sum"
    module_path: str = "sparse_arch.plain"
    kernel: str = "fused"
    #: slots of a table with managed collisions, whose ``rows`` are those of the ids that come; 0 without them
    slots: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bags:
    """One feature's ids for a batch: ``lengths[b]`` ids of sample b, one after another."""

    lengths: NDArray[np.int64]  # (batch,)
    ids: NDArray[np.int64]  # (sum of lengths,)
    weights: NDArray[np.float32]  # (sum of lengths,)

    def part(self, rank: int) -> "Bags":
        """The bags of one rank's samples."""
        samples = slice(rank * BATCH_SIZE_PER_RANK, (rank + 1) * BATCH_SIZE_PER_RANK)
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        ids = slice(ends[samples.start], ends[samples.stop])
        return Bags(lengths=self.lengths[samples], ids=self.ids[ids], weights=self.weights[ids])


def is_sequence(module_path: str) -> bool:
    """Whether the module returns every row, and not one per bag."""
    return module_path.endswith(("sequence", "sequence_of_slots"))


def is_weighted(module_path: str) -> bool:
    """Whether the module's ids carry weights."""
    return module_path.endswith(".weighted")


def is_processed(module_path: str) -> bool:
    """Whether the module gives each id of a bag a weight of its position, which is trained."""
    return module_path.endswith(".processed")


def is_of_slots(module_path: str) -> bool:
    """Whether the module gives ids slots as they come."""
    return module_path.endswith("of_slots")


def raw_ids(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ids that are spread over a wide range, one for each row of a table."""
    return ids * 7_919 + 104_729


def lookups(tables: Sequence[TableSpec]) -> Iterator[tuple[TableSpec, str, str]]:
    """(table, feature, TorchRec's key of the pooled output), in the order that the dense layer reads them.

    TorchRec names the output ``feature@table`` where several tables of one module look a feature up.
    """
    for table in tables:
        for feature in table.features:
            users = [t for t in tables if t.module_path == table.module_path and feature in t.features]
            yield table, feature, f"{feature}@{table.name}" if len(users) > 1 else feature


def initial_weights(tables: Sequence[TableSpec]) -> dict[str, NDArray[np.float32]]:
    """Every table's weights before training; all rows of a table with slots are alike, since any id may get any."""
    found = {}
    for index, table in enumerate(tables):
        rows = 1 if is_of_slots(table.module_path) else table.rows
        drawn = np.random.default_rng([7, index]).normal(0, 0.3, (rows, table.columns)).astype(np.float32)
        found[table.name] = np.array(np.broadcast_to(drawn, (table.rows, table.columns)))
    return found


def dense_weights(tables: Sequence[TableSpec]) -> NDArray[np.float32]:
    """The dense layer's weights before training: one output."""
    width = sum(table.columns for table, _, _ in lookups(tables))
    return (np.random.default_rng(11).standard_normal((1, width)) / np.sqrt(width)).astype(np.float32)


def batches(
    tables: Sequence[TableSpec], world_size: int
) -> Iterator[tuple[Mapping[tuple[str, str], Bags], NDArray[np.float32]]]:
    """Global batches: bags by (module path, feature), and labels.

    Bags of zero ids are common, and ids are skewed towards row 0, so that rows repeat within
    a bag, within a batch and over ranks.
    """
    batch = world_size * BATCH_SIZE_PER_RANK
    for step in range(NUM_STEPS):
        random = np.random.default_rng([13, step])
        bags = {}
        for table, feature, _ in lookups(tables):
            rows = min(t.rows for t in tables if t.module_path == table.module_path and feature in t.features)
            lengths = random.integers(0, MAX_IDS_PER_BAG + 1, batch)
            ids = (rows * random.random(int(lengths.sum())) ** 3).astype(np.int64)
            weights = random.random(len(ids)).astype(np.float32)
            bags[table.module_path, feature] = Bags(lengths=lengths, ids=ids, weights=weights)
        yield bags, random.standard_normal(batch).astype(np.float32)
