"""A plan as jax-tpu-embedding takes it: tables, stacks, rotations, padded shapes, and room for the ids of a step.

A plan for SparseCores leaves nothing open of where rows are (:mod:`planner.options.runtimes.sparsecore.geometry`); what
a training script has to be told are stacks and limits. Both need more than a plan has: optimizers, the batch, and how
rows are looked up, which are in the spec that it was made for. Without the spec no tables are stacked, and limits are
``null`` with the reason; they are never guessed.

Row blocks of a plan are ranges of ids, here rows are dealt out by remainder: it says ``"rows": "modulo"``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from cost_models.vocabulary import Tier
from planner.domain.formats.canonical_json import digest
from planner.domain.plan.shards import Shards
from planner.domain.problem.table import Table
from planner.options.runtimes.sparsecore.geometry import (
    ALIGNMENT,
    MAX_ROW_NUMBER,
    Cores,
    UnheldTable,
    check_shards,
    cores_of,
    padded,
)
from planner.options.runtimes.sparsecore.id_limits import Lookups, limits_of
from planner.options.runtimes.sparsecore.row_rates import RowRateBins
from planner.options.runtimes.sparsecore.rules import OPTIMIZERS
from planner.options.runtimes.sparsecore.stacks import StackedTable, best_rotation, stacks_of, turned
from planner.output.exporters.context import (
    ExportFacts,
    UnexportablePlan,
    check_devices,
    checked_digest,
    hardware_profile_of,
    unexportable,
)
from planner.output.exporters.read_shards import shards_of
from planner.output.plan_document import PlanDocument, TableDocument

FORMAT_VERSION = 1
#: Of a drop of any id in a step, and, once for a run, of hashing that puts hot rows together so that limits fail.
DROP_PROBABILITY, PLACEMENT_PROBABILITY = 1e-6, 1e-3
COMBINERS = {"sum": "sum", "mean": "mean"}
_ASSUMES = (
    "lookups are independent, with the frequencies that the spec states",
    "ids of a table are hashed, or sorted by heat",
    "the number of ids of a sample is constant or Poisson",
    "samples of every feature are split evenly over SparseCores",
)
_NO_SPEC = "the spec of the plan is not at hand, which has optimizer, batch and accesses"


def to_sparsecore(
    document: PlanDocument,
    *,
    module_path: str | None = None,
    device: str = "cuda",
    facts: ExportFacts | None = None,
) -> dict[str, object]:
    """Write a plan document for jax-tpu-embedding.

    Parameters
    ----------
    document
        The plan document of the contract.
    module_path, device
        Ignored: tables are found by name, and are on TPUs.
    facts
        The problem that the plan was made for, and SparseCores of a chip that is no profile of ours.

    Returns
    -------
    dict
        ``stacks`` and ``tables`` for ``TableSpec`` and ``stack_tables``, with ``global_device_count``,
        ``num_sc_per_device``, ``rows``, what ``limits`` hold for, ``plan_digest``, and ``content_sha256``: the SHA-256
        of the canonical bytes of all other keys.

    Raises
    ------
    UnexportablePlan
        SparseCores cannot hold the plan, with the reason for each table; or the document is not the one its digest
        names.
    """
    del module_path, device
    facts = facts or ExportFacts()
    content_digest = checked_digest(document)
    check_devices(document, "sparsecore")
    profile = hardware_profile_of(document)
    try:
        cores = cores_of(document["world_size"], profile, facts.sparsecores_per_chip)
    except UnheldTable as error:
        raise UnexportablePlan(str(error)) from error
    planned = [_Planned.of(table) for table in document["tables"]]
    samples = None if facts.problem is None else facts.problem.samples_per_rank / cores.per_chip
    if samples is not None and not samples.is_integer():
        raise UnexportablePlan(
            f"{cores.per_chip} SparseCores of a chip share its {samples * cores.per_chip:g} samples evenly; plan for a"
            f" batch_size_per_rank that is a multiple of {cores.per_chip}."
        )
    known = {} if facts.problem is None else {table.name: table for table in facts.problem.tables}
    issues = []
    for one in planned:
        try:
            one.check(cores, known.get(one.name), facts.problem is not None)
        except UnheldTable as error:
            issues.append(f'Table "{one.name}": {error}.')
    if issues:
        raise unexportable("SparseCores cannot run this plan", issues, "sparsecore")
    candidates = [one.stacked(cores, known.get(one.name), samples) for one in planned]
    stacks = stacks_of(candidates) if known else [[one] for one in candidates]
    written = _stacks(stacks, cores, _reasons(planned, known))
    export: dict[str, object] = {
        "format": "sparsecore",
        "format_version": FORMAT_VERSION,
        "plan_digest": content_digest,
        "num_chips": cores.num_chips,
        "global_device_count": cores.num_devices,
        "num_sc_per_device": cores.cores_per_device,
        "num_sparsecores": cores.num,
        "sparsecores_source": cores.source,
        "samples_per_sparsecore": None if samples is None else int(samples),
        "rows": "modulo",
        "limits": {
            "drop_probability_per_step": DROP_PROBABILITY,
            "placement_probability": PLACEMENT_PROBABILITY,
            "assumes": list(_ASSUMES),
        },
        "stacks": [stack for stack, _ in written],
        "tables": _tables(planned, known, written, cores),
    }
    return {**export, "content_sha256": digest(export).removeprefix("sha256:")}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """A table of the document."""

    name: str
    pooling: str | None
    document: TableDocument
    shards: Shards
    num_rows: int
    num_columns: int

    @classmethod
    def of(cls, table: TableDocument) -> "_Planned":
        shards = shards_of(table)
        return cls(
            name=table["name"],
            pooling=table.get("pooling"),
            document=table,
            shards=shards,
            num_rows=int(shards.row_end.max()),
            num_columns=int(shards.column_end.max()),
        )

    def check(self, cores: Cores, table: Table | None, needs_table: bool) -> None:
        """Refuse what SparseCores do not hold or train."""
        scheme, kernel = self.document["sharding_type"], self.document["compute_kernel"]
        data_type = self.document.get("data_type")
        tiers = {Tier(tier).label for tier in self.shards.tier.tolist()}
        if scheme != "row_wise":
            raise UnheldTable(f"it is {scheme}; every SparseCore holds rows of every table, which is row_wise")
        if kernel != "fused" or tiers != {"hbm"}:
            raise UnheldTable(f"its rows lie in {' and '.join(sorted(tiers))} ({kernel}); fused ones lie in hbm")
        if self.pooling == "none":
            raise UnheldTable("it is looked up without pooling; the ids of a sample are pooled by sum or mean")
        if data_type not in (None, "fp32"):
            raise UnheldTable(f"its weights are {data_type}; they must be fp32")
        check_shards(self.shards, self.num_rows, self.num_columns, cores.num_chips)
        if self.padded_rows(cores) > MAX_ROW_NUMBER:
            raise UnheldTable(f"it has {self.padded_rows(cores)} rows with padding, and at most {MAX_ROW_NUMBER} fit")
        if table is None and needs_table:
            raise UnheldTable("the spec has no such table")
        if table is not None:
            self._check_spec(table)

    def _check_spec(self, table: Table) -> None:
        if (table.num_embeddings, table.embedding_dim) != (self.num_rows, self.num_columns):
            raise UnheldTable(
                f"it has {self.num_rows} rows of {self.num_columns} columns, and in the spec {table.num_embeddings} of"
                f" {table.embedding_dim}"
            )
        if table.optimizer.name not in OPTIMIZERS:
            raise UnheldTable(f"it is trained with {table.optimizer.name}; there are {', '.join(OPTIMIZERS)}")

    def padded_rows(self, cores: Cores) -> int:
        return padded(self.num_rows, ALIGNMENT * cores.num)

    def stacked(self, cores: Cores, table: Table | None, samples: float | None) -> StackedTable:
        lookups, outputs = None, 0.0
        if table is not None and samples is not None:
            rows = None if table.access is None else RowRateBins.of(table.access, self.num_rows)
            lookups = None if rows is None else Lookups(rows=rows, expected=samples * table.ids_per_sample)
            outputs = samples * table.outputs_per_sample
        return StackedTable(
            name=self.name,
            padded_rows=self.padded_rows(cores),
            padded_columns=padded(self.num_columns, ALIGNMENT),
            optimizer="" if table is None else table.optimizer.name,
            combiner=COMBINERS.get(self.pooling or ""),
            outputs_per_core=outputs,
            lookups=lookups,
        )


def _reasons(planned: Sequence[_Planned], known: Mapping[str, Table]) -> dict[str, str]:
    """Return why a table has no limits, for tables that have none."""
    if not known:
        return {one.name: _NO_SPEC for one in planned}
    issues = {}
    for one in planned:
        access = known[one.name].access
        if access is None:
            issues[one.name] = "the spec says nothing of how its rows are looked up (access)"
        elif RowRateBins.of(access, one.num_rows) is None:
            issues[one.name] = "its access does not say how likely single rows are; zipf_alpha and access_cdf do"
    return issues


def _stacks(
    stacks: Sequence[Sequence[StackedTable]], cores: Cores, issues: Mapping[str, str]
) -> list[tuple[dict[str, object], Sequence[StackedTable]]]:
    written, taken = [], {one.name for stack in stacks for one in stack}
    for stack in stacks:
        name = stack[0].name if len(stack) == 1 else _free(f"stack_of_{len(stack)}_from_{stack[0].name}", taken)
        lookups = [one.lookups for one in stack if one.lookups is not None]
        rotation = best_rotation(lookups, cores) if lookups else cores.cores_per_device
        limits = None
        if lookups:  # then of all: tables without them are stacked apart
            limits = limits_of(
                turned(lookups, rotation, cores.num),
                cores.num,
                drop_probability=DROP_PROBABILITY / len(stacks),
                placement_probability=PLACEMENT_PROBABILITY / len(stacks),
            )
        document: dict[str, object] = {
            "name": name,
            "tables": [one.name for one in stack],
            "rotation": rotation,
            "vocabulary_size": sum(one.padded_rows for one in stack),
            "embedding_dim": stack[0].padded_columns,
            "max_ids_per_partition": None if limits is None else limits.max_ids,
            "max_unique_ids_per_partition": None if limits is None else limits.max_unique_ids,
            "no_limits_because": None if limits is not None else issues[stack[0].name],
        }
        written.append((document, stack))
    return written


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _tables(
    planned: Sequence[_Planned],
    known: Mapping[str, Table],
    stacks: Sequence[tuple[Mapping[str, object], Sequence[StackedTable]]],
    cores: Cores,
) -> list[dict[str, object]]:
    """Return every table with its place: the rows that SparseCore ``s`` holds leave ``s - shard_rotation``."""
    place: dict[str, dict[str, object]] = {}
    for document, stack in stacks:
        offset = 0
        for number, one in enumerate(stack):
            place[one.name] = {
                "stack": document["name"],
                "row_offset_in_shard": offset,
                "shard_rotation": number * cast("int", document["rotation"]) % cores.num,
            }
            offset += one.padded_rows // cores.num
    return [
        {
            "name": one.name,
            "vocabulary_size": one.num_rows,
            "embedding_dim": one.num_columns,
            "padded_vocabulary_size": one.padded_rows(cores),
            "padded_embedding_dim": padded(one.num_columns, ALIGNMENT),
            "combiner": COMBINERS.get(one.pooling or ""),
            "optimizer": known[one.name].optimizer.name if known else None,
            **place[one.name],
            "weight_bytes_per_chip": one.padded_rows(cores) // cores.num_chips * padded(one.num_columns, ALIGNMENT) * 4,
        }
        for one in planned
    ]
