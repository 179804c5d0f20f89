"""MLPerf's DLRM-DCNv2 as a spec of ours, under a plan of HugeCTR's: tables, dense layers and which rows are looked up.

HugeCTR cuts rows over any of the GPUs. A piece of such a table is priced as a table of its own: the rows, lookups and
distinct rows of a piece, and one row per sample sent, since the receiver adds up the rows of pieces.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from benchmarks.prices.reality.mlperf.hugectr_planner import Holdings, Table
from cost_models.vocabulary import Kernel, Phase, Scheme, Tier
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.plan import Evaluation
from planner.domain.plan.shards import Shards
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.verification.evaluate_placement import score

NUM_COLUMNS = 128
#: What was fitted of HugeCTR itself.
HUGECTR = Path(__file__).parents[3] / "measured" / "hugectr.json"
#: Rows and lookups per sample of the 26 tables: MLCommons training, recommendation_v2 (Criteo 1 TB, multi-hot).
TABLES = tuple(
    Table(num_rows=rows, num_columns=NUM_COLUMNS, pooling_factor=float(lookups))
    for rows, lookups in (
        (40000000, 3), (39060, 2), (17295, 1), (7424, 2), (20265, 6), (3, 1), (7122, 1), (1543, 1), (63, 1),
        (40000000, 7), (3067956, 3), (405282, 8), (10, 1), (2209, 6), (11938, 9), (155, 5), (4, 1), (976, 1), (14, 1),
        (40000000, 12), (40000000, 100), (40000000, 27), (590152, 10), (12973, 3), (108, 1), (36, 1),
    )
)  # fmt: skip
#: Layers of the reference: bottom and top MLP, low-rank cross layers over 27 vectors.
LAYERS = {
    "mlp_widths": [[13, 512, 256, 128], [27 * NUM_COLUMNS, 1024, 1024, 512, 256, 1]],
    "cross_layers": {"num_layers": 3, "width": 27 * NUM_COLUMNS, "rank": 512},
}
#: Distinct ids among those of a batch that are one real id of Criteo's log (estimated); the others are drawn uniformly.
_DISTINCT_PER_REAL_ID = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A run: a machine of a profile, a batch and the precision."""

    profile: str
    num_hosts: int
    ranks_per_host: int
    global_batch: int
    is_mixed_precision: bool

    @property
    def num_ranks(self) -> int:
        """GPUs."""
        return self.num_hosts * self.ranks_per_host

    @property
    def batch_size_per_rank(self) -> int:
        """Samples of one GPU in one step."""
        return max(round(self.global_batch / self.num_ranks), 1)


class Steps(NamedTuple):
    """Seconds of a step in HugeCTR."""

    sparse: float  # of the embeddings, hidden or not
    whole: float


def backward_share() -> float:
    """Return what HugeCTR's backward kernels take of those that the product prices, which are FBGEMM's."""
    return float(json.loads(HUGECTR.read_text(encoding="utf-8"))["backward_share"])


def steps_of(evaluation: Evaluation, share: float) -> Steps:
    """Return the steps of an evaluated plan in HugeCTR, whose backward kernels take ``share`` of the product's."""
    step = evaluation.whole_step
    assert step is not None  # the dense part is given
    (backward,) = (load.seconds for load in evaluation.phases if load.phase is Phase.BACKWARD_COMPUTE)
    saved = (1 - share) * backward
    return Steps(step.sparse_seconds + step.hidden_sparse_seconds - saved, step.seconds - saved)


def evaluated(job: Job, held: Holdings, overrides: dict[str, float] | None = None) -> Evaluation:
    """Price a plan of HugeCTR's with the product; ``overrides`` replace numbers of the profile."""
    tables: list[dict[str, object]] = []
    placed: list[TablePlacement] = []
    for index, (table, holders) in enumerate(zip(TABLES, held.holders, strict=True)):
        for number, holder in enumerate(holders or (None,)):
            name = f"cat_{index}_{number}"
            tables.append(_piece(job, table, name, max(len(holders), 1)))
            num_rows = math.ceil(table.num_rows / max(len(holders), 1))
            placed.append(_placement(job, name, num_rows, holder, is_by_node=held.is_by_node))
    request = _request(job, "generic", tables, overrides or {})
    placement = Placement(world_size=job.num_ranks, ranks_per_host=job.ranks_per_host, tables=tuple(placed))
    return score(request.problem, placement, request.cost_model)


def planned_by_us(job: Job, *, time_limit_seconds: float) -> Evaluation | None:
    """Plan the job for HugeCTR with the product; ``None`` if it finds no plan."""
    tables = [_piece(job, table, f"cat_{index}", 1) for index, table in enumerate(TABLES)]
    request = _request(job, "hugectr", tables, {})
    found = plan(
        request.problem,
        cost_model=request.cost_model,
        partitioner=make_partitioner("portfolio"),
        limits=SolveLimits(time_limit_seconds=time_limit_seconds),
    ).plan
    return None if found is None else found.evaluation


def _request(job: Job, runtime: str, tables: list[dict[str, object]], overrides: dict[str, float]) -> SolveRequest:
    dtype = "fp16" if job.is_mixed_precision else "fp32"
    spec = {
        "name": "mlperf-dlrm-dcnv2",
        "runtime": runtime,
        "model": {
            "batch_size_per_rank": job.batch_size_per_rank,
            "tables": tables,
            "forward_comm_dtype": dtype,
            "backward_comm_dtype": dtype,
            "output_dtype": dtype,
            "dense": {
                "layers": LAYERS,
                "compute_dtype": "fp16" if job.is_mixed_precision else "tf32",
                "gradient_dtype": dtype,
            },
        },
        "hardware": {
            "profile": job.profile,
            "num_hosts": job.num_hosts,
            "ranks_per_host": job.ranks_per_host,
            "overrides": overrides,
        },
    }
    return parse_spec(json.dumps(spec).encode())


def _piece(job: Job, table: Table, name: str, ways: int) -> dict[str, object]:
    """Return one of equal row pieces of a table as a table of a spec."""
    batch = job.batch_size_per_rank * job.num_ranks
    lookups, rows = batch * table.pooling_factor, table.num_rows
    uniform = rows * (1 - math.exp(-(lookups - batch) / rows))
    distinct = min(uniform + min(_DISTINCT_PER_REAL_ID * batch, rows), lookups, rows)
    num_rows = math.ceil(rows / ways)
    return {
        "name": name,
        "num_embeddings": num_rows,
        "embedding_dim": table.num_columns,
        "optimizer": "adagrad",
        "pooling_factor": table.pooling_factor / ways,
        "access": {"access_cdf": [[1, 1]], "distinct_rows": [[lookups / ways, min(distinct / ways, num_rows)]]},
    }


def _placement(job: Job, name: str, num_rows: int, holder: int | None, *, is_by_node: bool) -> TablePlacement:
    """Return where a piece lies: on a GPU, on the GPUs of a node, or (``holder`` None) as a copy on every GPU."""
    if holder is None:
        ranks, first, rows = list(range(job.num_ranks)), [0] * job.num_ranks, [num_rows] * job.num_ranks
        scheme, kernel = Scheme.DATA_PARALLEL, Kernel.DENSE
    elif is_by_node:
        node, block = job.ranks_per_host, math.ceil(num_rows / job.ranks_per_host)
        ranks = list(range(holder * node, (holder + 1) * node))
        first = [min(place * block, num_rows) for place in range(node)]
        rows = [min(block, num_rows - start) for start in first]
        scheme, kernel = Scheme.TABLE_ROW_WISE, Kernel.FUSED
    else:
        ranks, first, rows, scheme, kernel = [holder], [0], [num_rows], Scheme.TABLE_WISE, Kernel.FUSED
    shards = Shards.of_columns(
        rank=ranks,
        row_offset=first,
        num_rows=rows,
        column_offset=[0] * len(ranks),
        num_columns=[NUM_COLUMNS] * len(ranks),
        tier=[int(Tier.HBM)] * len(ranks),
    )
    return TablePlacement(name=name, sharding_type=scheme, compute_kernel=kernel, shards=shards)
