"""Documents from outside become values of the domain: the only place where the two meet.

bytes --json_input--> SpecDocument --spec_checks--> issues, or a SolveRequest
"""

from collections.abc import Mapping
from dataclasses import dataclass

from api.assumptions import assumptions_of, unused_tables
from api.hardware_check import missing_numbers
from api.json_input import RejectedDocument, parse_document
from api.schemas.plan import EvaluationRequest, PlanDocument
from api.schemas.spec import AccessSpec, HardwareSpec, SpecDocument, TableConstraintsSpec, TableSpec
from api.spec_checks import check_memory, check_overrides, check_spec, unsupported
from cost_models.errors import CostModelError
from cost_models.hardware import Hardware
from cost_models.profile_fields import FIELDS
from cost_models.profiles_loader import load_profile
from cost_models.protocol import CostModel
from cost_models.registry import cost_model_names, make_cost_model
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.canonical import digest
from planner.domain.access import AccessCdf, AccessStatistics, MissRatioCurve, ReuseHistogram, ZipfAccess
from planner.domain.cluster import Cluster
from planner.domain.data_type import DATA_TYPES
from planner.domain.optimizer import OPTIMIZERS
from planner.domain.placement import Placement, Shard, TablePlacement
from planner.domain.plan import Assumption
from planner.domain.problem import Dense, Problem, Reservation
from planner.domain.table import Feature, Table, TableConstraints
from planner.errors import Issue, UnsupportedRequest
from planner.partitioners.base import Partitioner, SolveLimits
from planner.partitioners.registry import make_partitioner, partitioner_names


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveRequest:
    """A spec that passed every check, as values of the domain."""

    name: str
    problem: Problem
    cost_model: CostModel
    partitioner: Partitioner
    limits: SolveLimits
    spec: dict[str, object]  # the normalised document: defaults filled in, shorthand spelled out
    spec_digest: str
    assumptions: tuple[Assumption, ...]
    warnings: tuple[Issue, ...]
    hardware_profile: str


def parse_spec(raw: bytes) -> SolveRequest:
    """Check a spec.

    Raises
    ------
    InvalidProblem
        (as ``RejectedDocument``) with every broken rule, at most 50 of them.
    UnsupportedRequest
        The spec is well formed, but asks for something that this version cannot do.
    """
    return to_request(parse_document(raw, SpecDocument))


def parse_plan(raw: bytes) -> Placement:
    """Check a plan document from anywhere; raises ``InvalidProblem``."""
    return to_placement(parse_document(raw, PlanDocument))


def parse_evaluation(raw: bytes) -> tuple[SolveRequest, Placement]:
    """Check a request to score a plan; raises like ``parse_spec``, with pointers below /spec and /plan."""
    document = parse_document(raw, EvaluationRequest)
    return to_request(document.spec, base="/spec"), to_placement(document.plan)


def to_request(spec: SpecDocument, *, base: str = "") -> SolveRequest:
    """Cross-check a spec and turn it into values of the domain."""
    issues: list[Issue] = []
    hardware = _hardware(spec.hardware, base, issues)
    if spec.cost_model not in cost_model_names():
        issues.append(_unknown(f"{base}/cost_model", "cost model", cost_model_names()))
    if spec.solver.partitioner not in partitioner_names():
        issues.append(_unknown(f"{base}/solver/partitioner", "partitioner", partitioner_names()))
    issues.extend(check_spec(spec, hardware, base))
    if issues:
        raise RejectedDocument(issues)
    refused = unsupported(spec, base)
    if refused is not None:
        raise UnsupportedRequest(refused)
    assert hardware is not None
    problem = _problem(spec, hardware)
    too_large = check_memory(problem, base)
    if too_large:
        raise RejectedDocument(too_large)
    cost_model = make_cost_model(spec.cost_model)
    missing = missing_numbers(problem, cost_model, base)
    if missing:
        raise RejectedDocument(missing)
    normalised = _normalised(spec, problem)
    return SolveRequest(
        name=spec.name,
        problem=problem,
        cost_model=cost_model,
        partitioner=make_partitioner(spec.solver.partitioner),
        limits=SolveLimits(
            time_limit_seconds=spec.solver.time_limit_seconds,
            relative_gap=spec.solver.relative_gap,
            seed=spec.solver.seed,
            reproducible=spec.solver.reproducible,
        ),
        spec=normalised,
        spec_digest=digest(normalised),
        assumptions=assumptions_of(spec, problem),
        warnings=unused_tables(problem, base),
        hardware_profile=spec.hardware.profile,
    )


def to_placement(plan: PlanDocument) -> Placement:
    """Turn a plan document into a placement; nothing is judged here, ``planner.verify`` does."""
    return Placement(
        world_size=plan.world_size,
        ranks_per_host=plan.ranks_per_host,
        tables=tuple(
            TablePlacement(
                name=table.name,
                module_path=table.module_path,
                data_type=table.data_type or "",
                pooling=table.pooling or "",
                sharding_type=Scheme.from_label(table.sharding_type),
                compute_kernel=Kernel.from_label(table.compute_kernel),
                cache_load_factor=table.cache_load_factor,
                shards=tuple(
                    Shard(
                        rank=shard.rank,
                        row_offset=shard.row_offset,
                        num_rows=shard.num_rows,
                        column_offset=shard.column_offset,
                        num_columns=shard.num_columns,
                        tier=Tier.from_label(shard.tier),
                    )
                    for shard in table.shards
                ),
            )
            for table in plan.tables
        ),
    )


def _unknown(where: str, what: str, known: tuple[str, ...]) -> Issue:
    return Issue(
        code=f"unknown-{what.replace(' ', '-')}",
        pointer=where,
        message=f"no {what} of this name",
        hint=f"use one of {', '.join(known)}",
    )


def _hardware(spec: HardwareSpec, base: str, issues: list[Issue]) -> Hardware | None:
    """Load the profile and replace the numbers that the user states; ``None`` where it is unknown."""
    values: Mapping[str, float] = spec.overrides.__pydantic_extra__
    issues.extend(check_overrides(values, base))
    try:
        profile = load_profile(spec.profile)
    except CostModelError as error:
        issues.append(Issue(code=error.code, pointer=f"{base}/hardware/profile", message=str(error), hint=error.hint))
        return None
    units = {name: field.unit for name, field in FIELDS.items()}
    if issues:
        return profile
    return profile.with_overrides(values, units)


def _problem(spec: SpecDocument, hardware: Hardware) -> Problem:
    index_of = {table.name: index for index, table in enumerate(spec.model.tables)}
    by_rank = spec.hardware.overrides.hbm_bytes_by_rank
    return Problem(
        tables=tuple(_table(table) for table in spec.model.tables),
        cluster=Cluster(
            hardware=hardware,
            num_hosts=spec.hardware.num_hosts,
            ranks_per_host=spec.hardware.ranks_per_host or hardware.ranks_per_host,
            hbm_bytes_by_rank=None if by_rank is None else tuple(by_rank),
        ),
        batch_size_per_rank=spec.model.batch_size_per_rank,
        forward_comm_dtype=spec.model.forward_comm_dtype,
        backward_comm_dtype=spec.model.backward_comm_dtype,
        output_dtype=spec.model.output_dtype,
        dense=Dense(
            forward_seconds=spec.model.dense.forward_seconds,
            backward_seconds=spec.model.dense.backward_seconds,
            parameter_bytes=spec.model.dense.parameter_bytes,
        ),
        pipeline=spec.model.pipeline,
        reservation=Reservation(hbm_fraction=spec.constraints.reserved_hbm_fraction),
        same_rank=tuple(frozenset(index_of[name] for name in group) for group in spec.constraints.same_rank),
        apart=tuple(frozenset(index_of[name] for name in group) for group in spec.constraints.apart),
        runtime=spec.runtime,
        objective=spec.objective,
    )


def _table(spec: TableSpec) -> Table:
    return Table(
        name=spec.name,
        num_embeddings=spec.num_embeddings,
        embedding_dim=spec.embedding_dim,
        features=_features(spec),
        data_type=DATA_TYPES[spec.data_type],
        pooling=spec.pooling,
        is_weighted=spec.is_weighted,
        optimizer=OPTIMIZERS[spec.optimizer],
        access=_access(spec.access) if spec.access else None,
        constraints=_constraints(spec.constraints),
        module_path=spec.module_path,
    )


def _features(spec: TableSpec) -> tuple[Feature, ...]:
    if spec.features is None:
        return (Feature(name=spec.name, pooling_factor=spec.pooling_factor or 0.0),)
    return tuple(
        Feature(name=feature.name, pooling_factor=feature.pooling_factor, num_poolings=feature.num_poolings)
        for feature in spec.features
    )


def _access(spec: AccessSpec) -> AccessStatistics:
    if spec.zipf_alpha is not None:
        return ZipfAccess(alpha=spec.zipf_alpha)
    if spec.reuse_histogram is not None:
        return ReuseHistogram(distinct_rows=tuple(spec.reuse_histogram))
    if spec.access_cdf is not None:
        return AccessCdf(points=_points(spec.access_cdf))
    return MissRatioCurve(points=_points(spec.miss_ratio_curve or []))


def _points(points: list[list[float]]) -> tuple[tuple[float, float], ...]:
    return tuple((first, second) for first, second in points)


def _constraints(spec: TableConstraintsSpec) -> TableConstraints:
    return TableConstraints(
        sharding_types=None
        if spec.sharding_types is None
        else frozenset(Scheme.from_label(label) for label in spec.sharding_types),
        compute_kernels=None
        if spec.compute_kernels is None
        else frozenset(Kernel.from_label(label) for label in spec.compute_kernels),
        ranks=None if spec.ranks is None else frozenset(spec.ranks),
        hosts=None if spec.hosts is None else frozenset(spec.hosts),
        min_partition=spec.min_partition,
    )


def _normalised(spec: SpecDocument, problem: Problem) -> dict[str, object]:
    """Return the spec with defaults filled in, shorthand spelled out and sets sorted."""
    document: dict[str, object] = spec.model_dump(mode="json", exclude_none=True, exclude={"model", "hardware"})
    tables = [
        table.model_dump(mode="json", exclude_none=True, exclude={"pooling_factor"})
        | {
            "features": [
                {"name": f.name, "pooling_factor": f.pooling_factor, "num_poolings": f.num_poolings}
                for f in checked.features
            ],
            "constraints": {
                key: sorted(set(value)) if isinstance(value, list) else value
                for key, value in table.constraints.model_dump(mode="json", exclude_none=True).items()
            },
        }
        for table, checked in zip(spec.model.tables, problem.tables, strict=True)
    ]
    document["model"] = spec.model.model_dump(mode="json", exclude_none=True, exclude={"tables"}) | {"tables": tables}
    document["hardware"] = spec.hardware.model_dump(mode="json", exclude_none=True) | {
        "ranks_per_host": problem.cluster.ranks_per_host
    }
    return document
