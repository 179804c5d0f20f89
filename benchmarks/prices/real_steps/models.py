"""Five made-up models, small enough that 31 plans of one fit into memory at once, and their batches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODULE_PATH = "tables"
_MAX_TABLE_BYTES = 48 * 2**20
_MIX = 2_654_435_761  # odd and prime (Knuth): rows in no relation to how often they are looked up


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """A table with one feature, as it is looked up."""

    name: str
    rows: int
    columns: int
    pooling_factor: float  # mean ids per sample
    zipf_alpha: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepModel:
    """Tables of one module, and the samples of one rank in a step."""

    name: str
    batch_size_per_rank: int
    tables: tuple[TableShape, ...]

    def spec(self, hardware: Mapping[str, Any]) -> dict[str, Any]:
        """Return the spec of the model on a cluster, the ``hardware`` object of a spec."""
        return {
            "schema_version": 1,
            "name": f"real-steps-{self.name}",
            "model": {
                "batch_size_per_rank": self.batch_size_per_rank,
                "pipeline": "none",
                "tables": [
                    {
                        "name": table.name,
                        "num_embeddings": table.rows,
                        "embedding_dim": table.columns,
                        "pooling_factor": table.pooling_factor,
                        "module_path": MODULE_PATH,
                        "optimizer": "rowwise_adagrad",
                        "access": {"zipf_alpha": table.zipf_alpha, "ids": "hashed"},
                    }
                    for table in self.tables
                ],
            },
            "hardware": hardware,
            "objective": "step_time",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The ids of one rank in one step, as a ``KeyedJaggedTensor`` takes them."""

    ids: NDArray[np.int64]  # of all features, one after another
    lengths: NDArray[np.int32]  # (features x samples,)


def step_models() -> dict[str, StepModel]:
    """Return the models by name. They differ in what bounds them: starts, lookups, widths, one table, many tables."""
    rng = np.random.default_rng(2024)
    return {
        model.name: model
        for model in (
            # Criteo's mix of long and short tables, one id of each: little work, so that starts count.
            _model("one_hot", 512, _drawn(rng, 26, rows=(20, 300_000), columns=[32], pooling=(1, 1))),
            # Few tables with long bags: bound by lookups.
            _model("long_bags", 512, _drawn(rng, 8, rows=(20_000, 200_000), columns=[64], pooling=(10, 60))),
            # Wide rows: bound by the exchange of pooled rows.
            _model("wide", 512, _drawn(rng, 6, rows=(5_000, 50_000), columns=[128, 256], pooling=(2, 12))),
            # One table has most of the lookups: whole tables cannot be balanced.
            _model(
                "one_heavy",
                512,
                (
                    TableShape(name="heavy", rows=80_000, columns=128, pooling_factor=80.0, zipf_alpha=0.8),
                    *_drawn(rng, 9, rows=(1_000, 100_000), columns=[32, 64], pooling=(1, 10)),
                ),
            ),
            # Many small tables of many widths: bound by what is done per table.
            _model("many", 256, _drawn(rng, 60, rows=(100, 60_000), columns=[8, 16, 32, 64], pooling=(1, 12))),
        )
    }


def bare_model() -> StepModel:
    """Return a model with next to nothing to look up and to send: its steps are starts alone."""
    tables = [
        TableShape(name=f"t{index}", rows=256, columns=64, pooling_factor=1.0, zipf_alpha=0.0) for index in range(6)
    ]
    return _model("bare", 4, tables)


def batches(tables: Sequence[TableShape], samples: int, rank: int, count: int) -> Iterator[Batch]:
    """Yield batches of a rank: Poisson lengths, rows by Zipf's law, spread over the table by a hash."""
    laws = [_cumulative(table) for table in tables]
    for index in range(count):
        rng = np.random.default_rng([31, rank, index])
        lengths, ids = [], []
        for table, law in zip(tables, laws, strict=True):
            of_table = (
                np.full(samples, 1) if table.pooling_factor == 1 else rng.poisson(table.pooling_factor, samples)
            ).astype(np.int32)
            place = np.searchsorted(law, rng.random(int(of_table.sum())) * law[-1]).astype(np.uint64)
            lengths.append(of_table)
            ids.append(((place * np.uint64(_MIX)) % np.uint64(table.rows)).astype(np.int64))
        yield Batch(ids=np.concatenate(ids), lengths=np.concatenate(lengths))


def _cumulative(table: TableShape) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.cumsum(np.arange(1, table.rows + 1, dtype=np.float64) ** -table.zipf_alpha)
    return found


def _model(name: str, batch: int, tables: Sequence[TableShape]) -> StepModel:
    return StepModel(name=name, batch_size_per_rank=batch, tables=tuple(tables))


def _drawn(
    rng: np.random.Generator,
    count: int,
    *,
    rows: tuple[int, int],
    columns: Sequence[int],
    pooling: tuple[float, float],
) -> tuple[TableShape, ...]:
    """Draw tables: rows and ids per sample evenly on a logarithmic scale, within a limit of bytes."""
    found = []
    for index in range(count):
        width = int(rng.choice(columns))
        most = min(rows[1], _MAX_TABLE_BYTES // (4 * width))
        found.append(
            TableShape(
                name=f"t{index}",
                rows=int(np.exp(rng.uniform(np.log(rows[0]), np.log(most)))),
                columns=width,
                pooling_factor=round(float(np.exp(rng.uniform(np.log(pooling[0]), np.log(pooling[1])))), 1),
                zipf_alpha=round(float(rng.uniform(0.6, 1.2)), 2),
            )
        )
    return tuple(found)
