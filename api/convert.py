"""Documents from outside become values of the domain: the only place where the two meet.

bytes --json_input--> SpecDocument --spec_checks--> issues, or a SolveRequest
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from api.assumptions import assumptions_of, statistics_of_caches, unused_tables
from api.checkpoint import checkpoint_of, normalised_checkpoint
from api.given_plan import GivenPlan, given_plan
from api.hardware_check import missing_numbers
from api.json_input import UNREADABLE, RejectedDocument, parse_document
from api.pinned import pin_tables
from api.previous import FindPlan, previous_of, previous_warnings
from api.schemas.base import StrictModel
from api.schemas.plan import EvaluationRequest, PlanDocument
from api.schemas.shard import Rectangle
from api.schemas.spec import ServingSpec, SpecDocument
from api.schemas.table import AccessSpec, TableConstraintsSpec, TableSpec
from api.serving_checks import check_serving
from api.spec_checks import check_memory, check_spec
from api.spec_fields import (
    check_names_of_parts,
    check_overrides,
    single_fields,
)
from api.statistics_reference import FindStatistics, inline_statistics
from cost_models.hardware import Hardware
from cost_models.profile_fields import FIELDS
from cost_models.profiles_loader import load_profile, profile_ids
from cost_models.protocol import CostModel
from cost_models.registry import make_cost_model
from cost_models.vocabulary import Kernel, Scheme
from planner.canonical import digest
from planner.domain.access import AccessCdf, AccessStatistics, MissRatioCurve, ReuseHistogram, ZipfAccess
from planner.domain.cluster import Cluster
from planner.domain.data_type import DATA_TYPES
from planner.domain.movement import PreviousPlan
from planner.domain.optimizer import OPTIMIZERS
from planner.domain.plan import Assumption
from planner.domain.problem import (
    SERVING_DENSE_MULTIPLIER,
    SERVING_INPUT_COPIES,
    Dense,
    Problem,
    Reservation,
)
from planner.domain.serving import Serving
from planner.domain.table import Feature, Table, TableConstraints
from planner.errors import Issue
from planner.partitioners.base import Partitioner, SolveLimits
from planner.partitioners.registry import make_partitioner

Checked = TypeVar("Checked", bound=StrictModel)

#: Keys of a spec that determine the problem, and so what its plans mean.
SPEC_DIGEST_KEYS = (
    "schema_version",
    "model",
    "hardware",
    "constraints",
    "runtime",
    "objective",
    "cost_model",
    "checkpoint",
    "serving",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveRequest:
    """A spec that passed every check, as values of the domain."""

    name: str
    problem: Problem
    cost_model: CostModel
    partitioner: Partitioner
    limits: SolveLimits
    previous: PreviousPlan | None
    spec: dict[str, object]  # the normalised document: defaults filled in, shorthand spelled out
    spec_digest: str  # of the keys of the spec in SPEC_DIGEST_KEYS
    stated_spec_digest: str  # the same before another cost model was chosen than the spec's
    assumptions: tuple[Assumption, ...]
    warnings: tuple[Issue, ...]
    hardware_profile: str


def parse_spec(
    raw: bytes,
    *,
    cost_model: str | None = None,
    find_plan: FindPlan | None = None,
    find_statistics: FindStatistics | None = None,
) -> SolveRequest:
    """Check a spec; ``cost_model`` replaces its own; ``find_plan``, ``find_statistics`` have what is named by digest.

    Raises
    ------
    InvalidProblem
        (as ``RejectedDocument``) with every broken rule, at most 50 of them.
    """
    spec = _checked(raw, SpecDocument)
    return to_request(spec, cost_model=cost_model, find_plan=find_plan, find_statistics=find_statistics)


def parse_plan(raw: bytes) -> GivenPlan:
    """Check a plan document from anywhere; raises ``InvalidProblem``."""
    return given_plan(parse_document(raw, PlanDocument), json.loads(raw))


def parse_evaluation(
    raw: bytes,
    *,
    cost_model: str | None = None,
    find_plan: FindPlan | None = None,
    find_statistics: FindStatistics | None = None,
) -> tuple[SolveRequest, GivenPlan]:
    """Check a request to score a plan; raises like ``parse_spec``, with pointers below /spec and /plan."""
    document = _checked(raw, EvaluationRequest, spec_key="spec")
    request = to_request(
        document.spec, base="/spec", cost_model=cost_model, find_plan=find_plan, find_statistics=find_statistics
    )
    return request, given_plan(document.plan, json.loads(raw)["plan"])


def _checked(raw: bytes, model: type[Checked], *, spec_key: str | None = None) -> Checked:
    """Check the form of a document; where it is broken, say too what else is wrong with its spec."""
    try:
        return parse_document(raw, model)
    except RejectedDocument as error:
        if error.issues[0].code in UNREADABLE:
            raise
        further = _further_issues(json.loads(raw), error.issues, spec_key)
        raise RejectedDocument([*error.issues, *further], error.num_issues + len(further)) from None


def _further_issues(document: object, found: tuple[Issue, ...], spec_key: str | None) -> list[Issue]:
    if spec_key is None:
        further = single_fields(document, "")
    else:
        further = single_fields(document.get(spec_key) if isinstance(document, dict) else None, f"/{spec_key}")
    told = {issue.pointer for issue in found}
    return [issue for issue in further if issue.pointer not in told]


def check_form(raw: bytes) -> None:
    """Check that a spec is well formed, whatever it means; raises ``InvalidProblem``."""
    _checked(raw, SpecDocument)


def spec_digest_of(spec: Mapping[str, object]) -> str:
    """Return the digest of what determines the problem of a normalised spec."""
    return digest({key: spec[key] for key in SPEC_DIGEST_KEYS if key in spec})


def to_request(
    spec: SpecDocument,
    *,
    base: str = "",
    cost_model: str | None = None,
    find_plan: FindPlan | None = None,
    find_statistics: FindStatistics | None = None,
) -> SolveRequest:
    """Cross-check a spec and turn it into values of the domain."""
    stated_cost_model = spec.cost_model
    if cost_model is not None:
        spec = spec.model_copy(update={"cost_model": cost_model})
    hardware, issues = _hardware(spec, base)
    spec, wrong_references, measured = inline_statistics(spec, base, find_statistics)
    issues.extend(wrong_references)
    issues.extend(check_spec(spec, hardware, base))
    issues.extend(check_serving(spec, hardware, base))
    previous = None
    if spec.previous_plan is not None:
        previous, wrong = previous_of(spec.previous_plan, base, find_plan)
        issues.extend(wrong)
    if issues:
        raise RejectedDocument(issues)
    assert hardware is not None
    problem, wrong_pins = pin_tables(_problem(spec, hardware), spec, base)
    model = make_cost_model(spec.cost_model)
    issues = [*check_memory(problem, base), *wrong_pins]
    if not wrong_pins:  # else it would be asked what prices of other cuts need
        issues.extend(missing_numbers(problem, model, base))
    if issues:
        raise RejectedDocument(issues)
    normalised = _normalised(spec, problem)
    warnings = [*unused_tables(problem, base), *statistics_of_caches(spec, base)]
    if previous is not None:
        normalised["previous_plan"] = previous.document
        warnings.extend(previous_warnings(previous.plan, problem, spec, base))
    return SolveRequest(
        name=spec.name,
        problem=problem,
        cost_model=model,
        partitioner=make_partitioner(spec.solver.partitioner),
        limits=SolveLimits(
            time_limit_seconds=spec.solver.time_limit_seconds,
            relative_gap=spec.solver.relative_gap,
            seed=spec.solver.seed,
            reproducible=spec.solver.reproducible,
            work_limit_seconds=spec.solver.work_limit_seconds,
        ),
        previous=None if previous is None else previous.plan,
        spec=normalised,
        spec_digest=spec_digest_of(normalised),
        stated_spec_digest=spec_digest_of(normalised | {"cost_model": stated_cost_model}),
        assumptions=(*assumptions_of(spec, problem), *measured),
        warnings=tuple(warnings),
        hardware_profile=spec.hardware.profile,
    )


def _hardware(spec: SpecDocument, base: str) -> tuple[Hardware | None, list[Issue]]:
    """Return the hardware with the numbers that the user states, ``None`` where it is unknown, and what is wrong."""
    values: Mapping[str, float] = spec.hardware.overrides.__pydantic_extra__
    wrong_overrides = list(check_overrides(values, base))
    names = (spec.hardware.profile, spec.cost_model, spec.solver.partitioner)
    issues = [*wrong_overrides, *check_names_of_parts(*names, base)]
    if spec.hardware.profile not in profile_ids():
        return None, issues
    profile = load_profile(spec.hardware.profile)
    units = {name: field.unit for name, field in FIELDS.items()}
    return (profile if wrong_overrides else profile.with_overrides(values, units)), issues


def _problem(spec: SpecDocument, hardware: Hardware) -> Problem:
    index_of = {table.name: index for index, table in enumerate(spec.model.tables)}
    overrides = spec.hardware.overrides
    return Problem(
        tables=tuple(_table(table) for table in spec.model.tables),
        cluster=Cluster(
            hardware=hardware,
            num_hosts=spec.hardware.num_hosts,
            ranks_per_host=spec.hardware.ranks_per_host or hardware.ranks_per_host,
            hbm_bytes_by_rank=_by_rank(overrides.hbm_bytes_by_rank),
            relative_speed_by_rank=_by_rank(overrides.relative_speed_by_rank),
        ),
        batch_size_per_rank=spec.model.batch_size_per_rank,
        serving=_serving(spec.serving),
        forward_comm_dtype=spec.model.forward_comm_dtype,
        backward_comm_dtype=spec.model.backward_comm_dtype,
        output_dtype=spec.model.output_dtype,
        dense=Dense(
            forward_seconds=spec.model.dense.forward_seconds,
            backward_seconds=spec.model.dense.backward_seconds,
            parameter_bytes=spec.model.dense.parameter_bytes,
        ),
        pipeline=spec.model.pipeline,
        reservation=_reservation(spec),
        same_rank=tuple(frozenset(index_of[name] for name in group) for group in spec.constraints.same_rank),
        apart=tuple(frozenset(index_of[name] for name in group) for group in spec.constraints.apart),
        runtime=spec.runtime,
        objective=spec.objective,
        checkpoint=checkpoint_of(spec.checkpoint),
    )


def _serving(spec: ServingSpec | None) -> Serving | None:
    if spec is None:
        return None
    return Serving(
        samples_per_request=spec.samples_per_request,
        requests_per_second=spec.requests_per_second,
        utilization_limit=spec.utilization_limit,
    )


def _reservation(spec: SpecDocument) -> Reservation:
    margin = Reservation(
        hbm_fraction=spec.constraints.reserved_hbm_fraction,
        collective_bytes=spec.constraints.reserved_collective_bytes or 0.0,
    )
    if spec.serving is None:
        return margin
    return replace(margin, dense_multiplier=SERVING_DENSE_MULTIPLIER, input_copies=SERVING_INPUT_COPIES)


def _by_rank(numbers: list[float] | None) -> tuple[float, ...] | None:
    return None if numbers is None else tuple(numbers)


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
        cache_load_factors=None if spec.cache_load_factors is None else tuple(sorted(set(spec.cache_load_factors))),
        hot_row_fractions=None if spec.hot_row_fractions is None else tuple(sorted(set(spec.hot_row_fractions))),
        data_types=None if spec.data_types is None else tuple(sorted(set(spec.data_types))),
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
            "constraints": _normalised_constraints(table.constraints),
        }
        for table, checked in zip(spec.model.tables, problem.tables, strict=True)
    ]
    document["model"] = spec.model.model_dump(mode="json", exclude_none=True, exclude={"tables"}) | {"tables": tables}
    document["hardware"] = spec.hardware.model_dump(mode="json", exclude_none=True) | {
        "ranks_per_host": problem.cluster.ranks_per_host
    }
    if spec.checkpoint is not None:
        document["checkpoint"] = normalised_checkpoint(spec.checkpoint)
    return document


def _normalised_constraints(spec: TableConstraintsSpec) -> dict[str, object]:
    """Return the constraints with sets sorted, and of a pin what says where the table goes."""
    document = {
        key: sorted(set(value)) if isinstance(value, list) else value
        for key, value in spec.model_dump(mode="json", exclude_none=True, exclude={"pinned"}).items()
    }
    if spec.pinned is not None:
        shards = spec.pinned.model_dump(mode="json", include={"shards": {"__all__": set(Rectangle.model_fields)}})
        document["pinned"] = {
            "sharding_type": spec.pinned.sharding_type,
            "compute_kernel": spec.pinned.compute_kernel,
            **({} if spec.pinned.cache_load_factor is None else {"cache_load_factor": spec.pinned.cache_load_factor}),
            "shards": sorted(shards["shards"], key=lambda shard: (shard["column_offset"], shard["rank"])),
        }
    return document
