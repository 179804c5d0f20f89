"""A plan as jax-tpu-embedding takes it: tables, stacks, rotations, padded shapes, and room for the ids of a step.

A plan for SparseCores leaves nothing open of where rows are (:mod:`planner.options.runtimes.sparsecore.geometry`); what
a training script needs besides are stacks and limits. Both need more than a plan has: optimizers, the batch, and how
rows are looked up, which are in the spec that it was made for. Without the spec no tables are stacked, and limits are
``null`` with the reason; they are never guessed.

Row blocks of a plan are ranges of ids, here rows are dealt out by remainder: it says ``"rows": "modulo"``.
"""

from collections.abc import Mapping, Sequence

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.placement import TablePlacement
from planner.domain.problem.table import Table
from planner.options.runtimes.export import PlanToExport, UnexportablePlan, read_tables
from planner.options.runtimes.geometry import UnheldGeometry, extent
from planner.options.runtimes.on_device import check_stored
from planner.options.runtimes.sparsecore.geometry import (
    ALIGNMENT,
    MAX_ROW_NUMBER,
    Cores,
    check_shards,
    cores_of,
    padded,
)
from planner.options.runtimes.sparsecore.id_limits import Lookups, limits_of
from planner.options.runtimes.sparsecore.row_rates import RowRateBins
from planner.options.runtimes.sparsecore.rules import SparseCore
from planner.options.runtimes.sparsecore.stacks import StackedTable, best_rotation, stacks_of, turned

#: Of a drop of any id in a step, and, once for a run, of hashing that puts hot rows together so that limits fail.
DROP_PROBABILITY, PLACEMENT_PROBABILITY = 1e-6, 1e-3
COMBINERS = ("sum", "mean")
_ASSUMES = (
    "lookups are independent, with the frequencies that the spec states",
    "ids of a table are hashed, or sorted by heat",
    "the number of ids of a sample is constant or Poisson",
    "samples of every feature are split evenly over SparseCores",
)
_NO_SPEC = "the spec of the plan is not at hand, which has optimizer, batch and accesses"
_NO_ACCESS = "the spec says nothing of how its rows are looked up (access)"
_NO_RATES = "its access does not say how likely single rows are; zipf_alpha and access_cdf do"


def to_sparsecore(plan: PlanToExport) -> dict[str, object]:
    """Write a plan for jax-tpu-embedding: ``stacks`` and ``tables`` are for ``TableSpec`` and ``stack_tables``."""
    problem = plan.facts.problem
    try:
        cores = cores_of(plan.placement.world_size, plan.hardware_profile, plan.facts.sparsecores_per_chip)
    except UnheldGeometry as error:
        raise UnexportablePlan(str(error)) from error
    samples = None if problem is None else problem.samples_per_rank / cores.per_chip
    if samples is not None and not samples.is_integer():
        raise UnexportablePlan(
            f"{cores.per_chip} SparseCores of a chip share its {samples * cores.per_chip:g} samples evenly; plan for a"
            f" batch_size_per_rank that is a multiple of {cores.per_chip}."
        )
    known = None if problem is None else {table.name: table for table in problem.tables}
    found = read_tables(
        plan, lambda placed, _: _candidate(placed, cores, known, samples), "SparseCores cannot run this plan"
    )
    candidates = [one for _, one in found]
    stacks, place_of = _stacks(stacks_of(candidates) if known else [[one] for one in candidates], cores)
    return {
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
        "stacks": stacks,
        "tables": [
            {
                "name": one.name,
                "vocabulary_size": extent(placed)[0],
                "embedding_dim": extent(placed)[1],
                "padded_vocabulary_size": one.padded_rows,
                "padded_embedding_dim": one.padded_columns,
                "combiner": one.combiner,
                "optimizer": one.optimizer or None,
                **place_of[one.name],
                "weight_bytes_per_chip": one.padded_rows // cores.num_chips * one.padded_columns * 4,
            }
            for placed, one in found
        ],
    }


def _candidate(
    placed: TablePlacement, cores: Cores, known: Mapping[str, Table] | None, samples: float | None
) -> StackedTable:
    """Return a table that SparseCores hold and train, with what is ``known`` of it.

    Raises
    ------
    UnheldGeometry
        They do not, or the spec has no such table.
    """
    num_rows, num_columns = extent(placed)
    padded_rows = padded(num_rows, ALIGNMENT * cores.num)
    if placed.sharding_type is not Scheme.ROW_WISE:
        scheme = placed.sharding_type.label
        raise UnheldGeometry(f"it is {scheme}; every SparseCore holds rows of every table, which is row_wise")
    check_stored(
        placed,
        kernels=(Kernel.FUSED,),
        hbm_rule="fused ones lie in hbm",
        pooling_rule="the ids of a sample are pooled by sum or mean",
        fp32_rule="they must be fp32",
    )
    check_shards(placed, (num_rows, num_columns), cores.num_chips)
    if padded_rows > MAX_ROW_NUMBER:
        raise UnheldGeometry(f"it has {padded_rows} rows with padding, and at most {MAX_ROW_NUMBER} fit")
    optimizer, lookups, outputs, no_lookups = "", None, 0.0, _NO_SPEC
    if known is not None and samples is not None:
        table = known.get(placed.name)
        if table is None:
            raise UnheldGeometry("the spec has no such table")
        _check_spec(table, num_rows, num_columns)
        rows = None if table.access is None else RowRateBins.of(table.access, num_rows)
        no_lookups = _NO_ACCESS if table.access is None else _NO_RATES
        lookups = None if rows is None else Lookups(rows=rows, expected=samples * table.ids_per_sample)
        optimizer, outputs = table.optimizer.name, samples * table.outputs_per_sample
    return StackedTable(
        name=placed.name,
        padded_rows=padded_rows,
        padded_columns=padded(num_columns, ALIGNMENT),
        optimizer=optimizer,
        combiner=placed.pooling if placed.pooling in COMBINERS else None,
        outputs_per_core=outputs,
        lookups=lookups,
        no_lookups=no_lookups,
    )


def _check_spec(table: Table, num_rows: int, num_columns: int) -> None:
    if (table.num_embeddings, table.embedding_dim) != (num_rows, num_columns):
        raise UnheldGeometry(
            f"it has {num_rows} rows of {num_columns} columns, and in the spec {table.num_embeddings} of"
            f" {table.embedding_dim}"
        )
    if table.optimizer.name not in SparseCore.optimizers:
        known = ", ".join(SparseCore.optimizers)
        raise UnheldGeometry(f"it is trained with {table.optimizer.name}; there are {known}")


def _stacks(
    stacks: Sequence[Sequence[StackedTable]], cores: Cores
) -> tuple[list[dict[str, object]], dict[str, dict[str, object]]]:
    """Return stacks and tables' places in them: the rows that SparseCore ``s`` holds leave ``s - shard_rotation``."""
    documents: list[dict[str, object]] = []
    place_of: dict[str, dict[str, object]] = {}
    taken = {one.name for stack in stacks for one in stack}
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
        documents.append(
            {
                "name": name,
                "tables": [one.name for one in stack],
                "rotation": rotation,
                "vocabulary_size": sum(one.padded_rows for one in stack),
                "embedding_dim": stack[0].padded_columns,
                "max_ids_per_partition": None if limits is None else limits.max_ids,
                "max_unique_ids_per_partition": None if limits is None else limits.max_unique_ids,
                "no_limits_because": None if limits is not None else stack[0].no_lookups,
            }
        )
        offset = 0
        for number, one in enumerate(stack):
            place_of[one.name] = {
                "stack": name,
                "row_offset_in_shard": offset,
                "shard_rotation": number * rotation % cores.num,
            }
            offset += one.padded_rows // cores.num
    return documents, place_of


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
