"""From a plan that TorchRec wrote to a plan document of ours, which everything else reads.

Serialised, such a plan lacks what the model and the job know: sizes of tables, ranks of a host, copies of
data_parallel tables. They come from the spec that the plan is read for, and where the plan says something of them,
the two are compared.
"""

from collections.abc import Iterator

from api.schemas.table import TableSpec
from api.schemas.torchrec_plan import TorchRecPlan, TorchRecShard, TorchRecTable
from api.specs.input.json import RejectedDocument, parse_document, pointer
from api.specs.plans.rewritten import PlannedJob, RewrittenPlan, table_document
from cost_models.vocabulary import CACHED_KERNELS, Kernel, Scheme
from planner.domain.problem.table import Table
from planner.errors import Issue

#: What TorchRec's caches hold by default (``batched_embedding_kernel``, TorchRec 1.8.0).
DEFAULT_LOAD_FACTOR = 0.2
_UNKNOWN_TABLE_HINT = "give the spec of the model that the plan is for; TorchRec would ignore the table without a word"


def is_torchrec(content: object) -> bool:
    """Whether a JSON document has the form that TorchRec writes, or ``shardplan export`` does."""
    return isinstance(content, dict) and isinstance(content.get("plan"), dict) and "schema_version" not in content


def plan_of_torchrec(raw: bytes, job: PlannedJob) -> RewrittenPlan:
    """Rewrite a plan of TorchRec's as a document of ours.

    Raises
    ------
    RejectedDocument
        The document is malformed, or says what cannot be of this job's tables and hosts.
    """
    given = parse_document(raw, TorchRecPlan)
    world_size = given.world_size or job.world_size
    ranks_per_host = given.local_world_size or job.ranks_per_host
    pod_size = given.intra_group_size or job.pod_size
    tables = {table.name: table for table in job.tables}
    placed: dict[str, dict[str, object]] = {}  # by pointer
    issues: list[Issue] = []
    warnings: list[Issue] = []
    for path, module in given.plan.items():
        for name, sharding in module.items():
            where = pointer(("plan", path, name))
            table = tables.get(f"{path}/{name}") or tables.get(name)
            if table is None:
                message = "the spec has no table of this name"
                issues.append(Issue(code="unknown-table", pointer=where, message=message, hint=_UNKNOWN_TABLE_HINT))
                continue
            found = list(_broken(where, table, sharding, world_size, ranks_per_host))
            issues.extend(found)
            warnings.extend(_assumed(where, table, sharding))
            if not found:
                placed[where] = _placed(path, table, sharding, world_size)
    if issues:
        raise RejectedDocument(issues)
    return RewrittenPlan(
        document={
            "schema_version": 1,
            "world_size": world_size,
            "ranks_per_host": ranks_per_host,
            **({} if pod_size is None else {"pod_size": pod_size}),
            "tables": list(placed.values()),
        },
        pointers=tuple(placed),
        warnings=tuple(warnings),
    )


def _broken(
    where: str, table: Table | TableSpec, sharding: TorchRecTable, world_size: int, ranks_per_host: int
) -> Iterator[Issue]:
    """Yield what keeps a table's shards from being read."""
    if sharding.shards is None and sharding.sharding_type != Scheme.DATA_PARALLEL.label:
        yield Issue(
            code="missing-field",
            pointer=f"{where}/shards",
            message=f"a table that is {sharding.sharding_type} has shards",
            hint="write the plan with ShardingPlan._serialize(), or plan_as_json of shardplan_client.torchrec",
        )
    for index, shard in enumerate(sharding.shards or ()):
        rank, place = _rank_of(shard)
        if rank >= world_size:
            yield Issue(
                code="rank-out-of-range",
                pointer=f"{where}/shards/{index}/placement",
                message=f'table "{table.name}": rank {rank} is not one of {world_size}',
                hint="give the spec of the cluster that the plan is for",
            )
            return
        if place is not None and place != rank % ranks_per_host:
            yield Issue(
                code="cluster-mismatch",
                pointer=f"{where}/shards/{index}/placement",
                message=f'table "{table.name}": rank {rank} is device {place} of its host, which cannot be where hosts'
                f" have {ranks_per_host} ranks",
                hint="set hardware.ranks_per_host of the spec to LOCAL_WORLD_SIZE of the job that the plan is for",
            )
            return


def _assumed(where: str, table: Table | TableSpec, sharding: TorchRecTable) -> Iterator[Issue]:
    """Yield what TorchRec leaves out of a serialised plan, and has to be assumed."""
    if Kernel.from_label(sharding.compute_kernel) in CACHED_KERNELS and _load_factor(sharding) is None:
        yield Issue(
            code="load-factor-assumed",
            pointer=f"{where}/cache_params",
            message=f'table "{table.name}" is cached, and the plan does not say how much of it: {DEFAULT_LOAD_FACTOR:g}'
            " of its rows, TorchRec's default, is assumed",
            hint='add "cache_params": {"load_factor": ...}; TorchRec leaves it out of a serialised plan',
            severity="warning",
        )


def _load_factor(sharding: TorchRecTable) -> float | None:
    return None if sharding.cache_params is None else sharding.cache_params.load_factor


def _placed(path: str, table: Table | TableSpec, sharding: TorchRecTable, world_size: int) -> dict[str, object]:
    kernel = Kernel.from_label(sharding.compute_kernel)
    placed = table_document(
        table,
        module_path=path if table.module_path else "",  # a spec without paths is for any module
        sharding_type=sharding.sharding_type,
        kernel=kernel,
        pieces=(
            (rank, row_offset, num_rows, column_offset, num_columns)
            for rank, (row_offset, column_offset), (num_rows, num_columns) in _rectangles(table, sharding, world_size)
        ),
    )
    if kernel.facts.is_cached:
        stated = _load_factor(sharding)
        placed["cache_load_factor"] = DEFAULT_LOAD_FACTOR if stated is None else stated
        if sharding.cache_params is not None and sharding.cache_params.reserved_memory is not None:
            placed["cache_reserved_bytes"] = sharding.cache_params.reserved_memory
    return placed


def _rectangles(
    table: Table | TableSpec, sharding: TorchRecTable, world_size: int
) -> Iterator[tuple[int, list[int], list[int]]]:
    """Yield rank, offsets and sizes of the shards; of a data_parallel table, the copies that TorchRec makes."""
    if sharding.shards is None:
        whole = [table.num_embeddings, table.embedding_dim]
        for rank in sharding.ranks or range(world_size):
            yield rank, [0, 0], whole
        return
    for shard in sharding.shards:
        yield _rank_of(shard)[0], shard.shard_offsets, shard.shard_sizes


def _rank_of(shard: TorchRecShard) -> tuple[int, int | None]:
    """Return the rank of a placement such as ``rank:9/cuda:1``, and the device's index on its host."""
    rank, _, device = shard.placement.removeprefix("rank:").partition("/")
    _, colon, index = device.partition(":")
    return int(rank), int(index) if colon else None
