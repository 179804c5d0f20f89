"""The reshard map of two plans: which rank of the new plan reads which bytes of which shard of the old one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.formats.compact_form import rank_ranges
from planner.domain.formats.compaction import grouped_shards
from planner.domain.formats.reshard_bands import Read, bands_between, reads_on
from planner.domain.plan.shards import Shards
from planner.domain.problem.data_type import DATA_TYPES, DataType
from planner.domain.problem.optimizer import Optimizer
from planner.errors import Issue, SolverDefect, UnsupportedRequest
from planner.output.documents.compact_plan import CompactPlanDocument, CompactTableDocument
from planner.output.reshard.document import (
    BandDocument,
    RankReadsDocument,
    ReshardDocument,
    StateOfTable,
    TableReadsDocument,
    TableReshardDocument,
)
from planner.output.reshard.totals import Totals
from planner.verification.reshard_cover import cover_issue
from planner.verification.stored_state import StoredState, form_of, state_loss

#: Optimizers by the names of tables, which plans do not state.
Optimizers = Mapping[str, Optimizer]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTable:
    """A table that both plans have, with the rows and columns of both."""

    name: str
    bands: list[BandDocument]
    weight_cell_bytes: int
    state: StateOfTable
    state_loss: str  # why, in words
    state_cell_bytes: int  # 0 unless the state is read
    state_row_bytes: int  # of each row of a column piece


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshardMap:
    """All reads between two plans; bytes are those of the checkpoint, which has its weights in the old type."""

    old: CompactPlanDocument
    new: CompactPlanDocument
    tables: tuple[ReadTable, ...]  # in the order of the new plan
    new_tables: tuple[str, ...]  # the old plan lacks them, or has them with other rows or columns
    gone_tables: tuple[str, ...]
    totals: Totals

    def to_document(self) -> ReshardDocument:
        """Return the map as JSON."""
        return {
            "schema_version": 1,
            "old_plan_digest": self.old["plan_digest"],
            "new_plan_digest": self.new["plan_digest"],
            "old_world_size": self.old["world_size"],
            "new_world_size": self.new["world_size"],
            "num_reads": int(self.totals.num_reads.sum()),
            "weight_bytes": int(self.totals.weight_bytes.sum()),
            "state_bytes": None if self.state_is_unknown else int(self.totals.state_bytes.sum()),
            "tables": [_table_document(table) for table in self.tables],
            "new_tables": list(self.new_tables),
            "gone_tables": list(self.gone_tables),
            "num_reads_by_rank": self.totals.num_reads.tolist(),
            "read_bytes_by_rank": (self.totals.weight_bytes + self.totals.state_bytes).tolist(),
            "stored_bytes_by_old_rank": self.totals.stored_bytes.tolist(),
        }

    @property
    def state_is_unknown(self) -> bool:
        """Whether optimizers are not known."""
        return any(table.state == "unknown" for table in self.tables)


def reshard_map(old: CompactPlanDocument, new: CompactPlanDocument, optimizers: Optimizers) -> ReshardMap:
    """Return the map from a checkpoint under one plan to a job under another; without optimizers, of weights alone.

    Raises
    ------
    SolverDefect
        The independent check of what covers the new shards rejects a table.
    UnsupportedRequest
        The old plan does not say of which type the weights of a table are, or they are of a type that is not trained.
    """
    tables = []
    totals = Totals.zeros(old_world_size=old["world_size"], new_world_size=new["world_size"])
    for index, stored, table in _common_tables(old, new):
        one = _read_table(index, stored, table, optimizers)
        if issue := cover_issue(one.bands, _shards(stored), _shards(table)):
            raise SolverDefect(f'reshard map of table "{one.name}": {issue}')
        totals.add(one.bands, one.weight_cell_bytes, one.state_cell_bytes, one.state_row_bytes)
        tables.append(one)
    names = {table.name for table in tables}
    return ReshardMap(
        old=old,
        new=new,
        tables=tuple(tables),
        new_tables=tuple(table["name"] for table in new["tables"] if table["name"] not in names),
        gone_tables=tuple(table["name"] for table in old["tables"] if table["name"] not in names),
        totals=totals,
    )


def reads_of_rank(
    old: CompactPlanDocument, new: CompactPlanDocument, optimizers: Optimizers, rank: int
) -> RankReadsDocument:
    """Return what one rank of the new plan reads, as JSON: of other ranks nothing is worked out.

    Raises ``UnsupportedRequest`` as :func:`reshard_map`.
    """
    tables = []
    for index, stored, table in _common_tables(old, new):
        if any(rank in one for group in table["shards"] for one in rank_ranges(group["ranks"])):
            read = _read_table(index, stored, table, optimizers)
            tables.append(_reads_document(read, list(reads_on(rank, read.bands))))
    return {
        "schema_version": 1,
        "old_plan_digest": old["plan_digest"],
        "new_plan_digest": new["plan_digest"],
        "rank": rank,
        "tables": tables,
    }


def _common_tables(
    old: CompactPlanDocument, new: CompactPlanDocument
) -> Iterator[tuple[int, CompactTableDocument, CompactTableDocument]]:
    """Yield tables that both plans have in the same shape: the place in the old plan, and both."""
    before = {table["name"]: (index, table) for index, table in enumerate(old["tables"])}
    for table in new["tables"]:
        index, stored = before.get(table["name"], (0, None))
        if stored is not None and shape_of(table) == shape_of(stored):
            yield index, stored, table


def _read_table(
    index: int, stored: CompactTableDocument, table: CompactTableDocument, optimizers: Optimizers
) -> ReadTable:
    """Return what is read of a table; ``index`` is its place in the old plan."""
    data_type = _stored_type(index, stored)
    optimizer = optimizers.get(table["name"])
    state: StateOfTable = "unknown"
    loss, cell_bytes, row_bytes = "", 0, 0
    if optimizer is not None:
        state = "read" if optimizer.element_bytes or optimizer.row_bytes else "none"
        loss = state_loss(optimizer, _stored_state(stored), _stored_state(table))
        if loss:
            state = "lost"
        elif state == "read":
            cell_bytes, row_bytes = optimizer.element_bytes, optimizer.row_bytes
    return ReadTable(
        name=table["name"],
        bands=cast("list[BandDocument]", bands_between(stored["shards"], table["shards"])),
        weight_cell_bytes=int(data_type.element_bytes),
        state=state,
        state_loss=loss,
        state_cell_bytes=cell_bytes,
        state_row_bytes=row_bytes,
    )


def _stored_type(index: int, stored: CompactTableDocument) -> DataType:
    """Return the type of the weights in the checkpoint; raises ``UnsupportedRequest`` where rectangles say nothing."""
    table_name, name = stored["name"], stored.get("data_type", "")
    data_type = DATA_TYPES.get(name)
    if Kernel.from_label(stored["compute_kernel"]).facts.is_hashed:
        where, says = "compute_kernel", "its rows are found by key, and a checkpoint has keys and no rows of a place"
    elif data_type is None:
        where, says = "data_type", "the plan does not say of which type weights are"
    elif not data_type.trainable:
        where, says = "data_type", f"{name} weights are not trained, and no checkpoint has them"
    else:
        return data_type
    raise UnsupportedRequest(
        Issue(
            code="no-checkpoint",
            pointer=f"/tables/{index}/{where}",
            message=f'table "{table_name}": {says}',
            hint="give the plan of a job that TorchRec trains and saves, as shardplan wrote it",
        )
    )


def _shards(table: CompactTableDocument) -> Shards:
    groups = table["shards"]
    return grouped_shards([dict(group) for group in groups], [Tier.HBM] * len(groups))  # tiers do not count here


def _stored_state(table: CompactTableDocument) -> StoredState:
    kernel, scheme = Kernel.from_label(table["compute_kernel"]), Scheme.from_label(table["sharding_type"])
    pieces = {
        (group["column_offset"] + place * group["num_columns"], group["num_columns"])
        for group in table["shards"]
        for place in range(sum(map(len, rank_ranges(group["ranks"]))) if group["cut"] == "columns" else 1)
    }
    return StoredState(form=form_of(scheme, kernel), column_pieces=tuple(sorted(pieces)))


def shape_of(table: CompactTableDocument) -> tuple[int, int]:
    """Return rows and columns of a table: where the last of its shards ends."""
    rows = columns = 0
    for group in table["shards"]:
        times = sum(map(len, rank_ranges(group["ranks"])))
        rows = max(rows, group["row_offset"] + group["num_rows"] * (times if group["cut"] == "rows" else 1))
        columns = max(
            columns, group["column_offset"] + group["num_columns"] * (times if group["cut"] == "columns" else 1)
        )
    return rows, columns


def _table_document(table: ReadTable) -> TableReshardDocument:
    return {
        "name": table.name,
        "state": table.state,
        "state_loss": table.state_loss,
        "weight_cell_bytes": table.weight_cell_bytes,
        "state_cell_bytes": table.state_cell_bytes,
        "state_row_bytes": table.state_row_bytes,
        "bands": table.bands,
    }


def _reads_document(table: ReadTable, reads: list[Read]) -> TableReadsDocument:
    return {
        "name": table.name,
        "state": table.state,
        "reads": [
            {
                "old_rank": one.old_rank,
                "row_offset": one.row_offset,
                "num_rows": one.num_rows,
                "column_offset": one.column_offset,
                "num_columns": one.num_columns,
                "shard_row_offset": one.shard_row_offset,
                "shard_column_offset": one.shard_column_offset,
                "old_row_offset": one.old_row_offset,
                "old_column_offset": one.old_column_offset,
                "weight_bytes": one.num_rows * one.num_columns * table.weight_cell_bytes,
                "state_bytes": one.num_rows * (one.num_columns * table.state_cell_bytes + table.state_row_bytes),
            }
            for one in reads
        ],
    }
