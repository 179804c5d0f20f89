"""HugeCTR: what its embedding collection trains of a table.

Read from its source (NVIDIA-Merlin/HugeCTR, where ``shard`` takes ``compression_strategy``), not tried on GPUs:

1. Tables of a fixed size keep their weights as fp32, and train with SGD, element-wise AdaGrad or FTRL
   (``embedding_storage/ragged_static_embedding.cu``); row-wise AdaGrad, which needs far less memory, is not among them.
2. Gradients of rows wider than 256 columns are rejected (``embedding/operators/multi_to_one_reduce_v2.cuh``).
3. ``embedding_lookup`` takes no weights of ids, and without pooling a fixed number of ids per sample.
4. All rows lie in the memory of the GPU.
5. A table stores the id of every row, 8 bytes with int64 keys (``embedding_storage/ragged_static_embedding.cu``),
   and counts its rows in 32-bit integers (``EmbeddingTableConfig``).
6. A dynamic table (``max_vocabulary_size`` -1, :mod:`planner.pricing.hash_tables.hugectr`) trains with Adam as well
   (``embedding_storage/dynamic_embedding.cu``). It is not copied to all GPUs, nor is any table next to it: their
   gradients are added in a buffer of all rows (``init_wgrad``). Keys of all tables then differ by their table
   alone (``KeysPreprocessStrategy::None``), and the tables of a group have one optimizer.
7. Pools of several GPUs are added, then divided by the length of the whole bag: means are right however tables are cut.

Where rows and columns go stands in :mod:`planner.options.runtimes.hugectr.geometry`. Column pieces must be equally
wide and on as many GPUs; the search does not ensure that, and no scheme that cuts columns is an option. Plans that have
such pieces can still be exported.
"""

from collections.abc import Iterator, Mapping

from cost_models.vocabulary import Scheme
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.table import Table
from planner.options.runtimes.base import OperatorIssue, TableIssue
from planner.options.runtimes.hugectr.geometry import MAX_PIECE_COLUMNS, MAX_TABLE_ROWS, layout_of
from planner.options.runtimes.on_device import OnDeviceRuntime

#: Schemes whose shards an embedding collection can always hold.
SCHEMES = frozenset({Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE})


class HugeCTR(OnDeviceRuntime):
    """Rules of ``hugectr.EmbeddingCollectionConfig`` with tables of a fixed size."""

    name = "hugectr"
    has_modulo_rows = True
    max_columns = MAX_PIECE_COLUMNS
    optimizers = ("sgd", "adagrad")
    row_key_bytes = 8.0
    hash_table_modes = frozenset({"hugectr"})
    pooling_reason = "it looks up a fixed number of ids per sample without pooling"

    def untrained(self, table: Table) -> str | None:
        """Return why a table is not trained, wherever its shards are."""
        if table.num_embeddings > MAX_TABLE_ROWS and table.hash_table is None:
            return (
                f"its {table.num_embeddings} rows are more than {MAX_TABLE_ROWS}, the most that 32-bit vocabulary sizes"
                " count: divide it into several tables"
            )
        return super().untrained(table)

    def trains_with(self, table: Table) -> tuple[str, ...]:
        """Return the optimizers of a table: dynamic ones have Adam as well."""
        return self.optimizers if table.hash_table is None else (*self.optimizers, "adam")

    def operator_issues(self, tables: Mapping[str, Table]) -> Iterator[OperatorIssue]:
        """Yield tables that cannot be in one embedding collection with the first dynamic one."""
        first = next((table for table in tables.values() if table.hash_table is not None), None)
        for where, table in tables.items():
            if first is None or table is first:
                continue
            if table.hash_table is None:
                yield OperatorIssue(
                    where,
                    table.name,
                    "hash_table",
                    f'has a fixed size next to "{first.name}", which has none: a collection keeps ids of dynamic tables'
                    " apart by their table, and those of others not",
                    'use {"mode": "hugectr"} for all tables, or for none',
                )
            elif table.optimizer.name != first.optimizer.name:
                yield OperatorIssue(
                    where,
                    table.name,
                    "optimizer",
                    f'trains with {table.optimizer.name}, and "{first.name}" of the same group with'
                    f" {first.optimizer.name}: HugeCTR refuses such groups",
                    f"use {first.optimizer.name}",
                )

    def cut_issue(self, table: Table, scheme: Scheme) -> str | None:
        """Return why HugeCTR does not run a scheme of a table, or why the scheme is not an option."""
        if scheme.is_replicated and table.hash_table is not None:
            return f"{scheme.label} needs a vocabulary size, which a dynamic table has not"
        if scheme not in SCHEMES:
            return f"{scheme.label} must cut into equal pieces, which is not searched for"
        if table.embedding_dim > MAX_PIECE_COLUMNS:
            return f"its gradients are {MAX_PIECE_COLUMNS} columns wide at most: make narrower tables of this one"
        return None

    def geometry_issue(self, table: Table, placed: TablePlacement, num_ranks: int) -> TableIssue | None:
        """Check that an embedding collection can hold the shards."""
        if placed.sharding_type.is_replicated and table.hash_table is not None:
            return "hash-table", "a dynamic table is not copied to all GPUs"
        layout_of(placed, (table.num_embeddings, table.embedding_dim), num_ranks)
        return None
