"""Our prices in the form in which the two re-made planners take them, so that all plan at equal cost.

Only what the peer can do is handed on: TorchRec's one cut per scheme; NeuroShard's halves of columns.
Phases that the objective does not count are left out.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from benchmarks.peers.piece_costs import PieceCosts, halved_widths
from cost_models.analytic.torchrec import TorchRecModel
from cost_models.vocabulary import Phase, Scheme
from planner.options.enumerate import Families, enumerate_families
from planner.options.schemes.blocks import COLUMN_STEP
from planner.orchestration.baselines import torchrec_cuts
from planner.orchestration.baselines.torchrec_cuts import COLUMN_SCHEMES, SCHEMES, torchrec_width
from planner.orchestration.baselines.torchrec_options import Cluster, Option
from planner.pricing.memory.ledger import TORCHREC, shard_ledger
from planner.pricing.price_options import price, shape_work
from planner.solver.problem import SolverProblem

_COMPUTE = (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE, Phase.PREFETCH)
#: What makes our search look for NeuroShard's kind of plans: whole tables and column pieces, however narrow.
NEUROSHARD_CONSTRAINTS = {
    "sharding_types": [Scheme.TABLE_WISE.label, Scheme.COLUMN_WISE.label],
    "compute_kernels": ["fused"],
    "min_partition": COLUMN_STEP,
}


def columns_only(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with every table restricted to what NeuroShard can do."""
    tables = [table | {"constraints": NEUROSHARD_CONSTRAINTS} for table in spec["model"]["tables"]]
    return {**spec, "model": spec["model"] | {"tables": tables}}


def torchrec_cuts_only(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with every table restricted to the cuts that TorchRec's enumeration lists for it.

    Equal to TorchRec's list for tables of up to three times 128 columns; wider ones may have pieces of other widths.
    """
    tables = []
    for table in spec["model"]["tables"]:
        width = torchrec_width(table["embedding_dim"])
        is_cut = width < table["embedding_dim"]
        schemes = [scheme.label for scheme in SCHEMES if is_cut or scheme not in COLUMN_SCHEMES]
        tables.append(table | {"constraints": {"sharding_types": schemes, "min_partition": width}})
    return {**spec, "model": spec["model"] | {"tables": tables}}


def torchrec_options(spec: Mapping[str, Any]) -> tuple[list[list[Option]], Cluster]:
    """Return the options that TorchRec's enumeration has of each table, at our prices, and the cluster."""
    request = _parsed(spec)
    families = torchrec_cuts.torchrec_families(request.problem)
    options = torchrec_cuts.torchrec_options(request.problem, families, _priced_as_peer(request, families))
    return options.tables, options.cluster


def piece_costs(spec: Mapping[str, Any]) -> PieceCosts:
    """Return the cost of every piece that halving makes of a spec's tables.

    ``spec``: of :func:`columns_only`; the whole table is priced as table_wise, pieces as column_wise.

    Raises
    ------
    ValueError
        A table lacks a price, because its constraints forbid what NeuroShard does.
    """
    request, families, priced = priced_as_peer(spec)
    tier = request.problem.cluster.device_tier
    counted = priced.phase_weight > 0
    widths = halved_widths(np.array([table.embedding_dim for table in request.problem.tables]))
    shape_of = {
        (family.table, int(columns)): shape
        for shape, columns in enumerate(priced.shape_columns)
        if (family := families.families[priced.shape_family[shape]]).scheme in (Scheme.TABLE_WISE, Scheme.COLUMN_WISE)
    }
    shapes = np.zeros(widths.shape, dtype=np.int64)
    for table, level in np.argwhere(widths > 0).tolist():
        found = shape_of.get((table, int(widths[table, level])))
        if found is None:
            raise ValueError(f"table {table} has no price for {widths[table, level]} columns")
        shapes[table, level] = found
    return PieceCosts(
        widths=widths,
        seconds=priced.shape_seconds[shapes][:, :, counted],
        bytes=np.ceil(priced.shape_bytes[shapes, tier]).astype(np.int64),
        is_compute=np.isin(np.flatnonzero(counted), _COMPUTE),
        capacity_bytes=np.floor(priced.capacity_bytes[:, tier]).astype(np.int64),
    )


def priced_as_peer(spec: Mapping[str, Any]) -> tuple[SolveRequest, Families, SolverProblem]:
    """Return our prices of a spec; with TorchRec's estimator, shapes have the bytes that TorchRec believes in."""
    request = _parsed(spec)
    families = enumerate_families(request.problem)
    return request, families, _priced_as_peer(request, families)


def _parsed(spec: Mapping[str, Any]) -> SolveRequest:
    return parse_spec(json.dumps(spec).encode())


def _priced_as_peer(request: SolveRequest, families: Families) -> SolverProblem:
    problem = request.problem
    priced = price(problem, families, request.cost_model)
    if isinstance(request.cost_model, TorchRecModel):
        work, table = shape_work(problem, families), priced.shape_table
        held = shard_ledger(problem, work, table=table, stored_rows=work.shard_rows, ledger=TORCHREC)
        priced = replace(priced, shape_bytes=held.by_tier())
    return priced
