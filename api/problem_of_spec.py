"""The problem that a checked spec states, as values of the domain."""

from dataclasses import replace

from api.checkpoint import checkpoint_of
from api.schemas.spec import ServingSpec, SpecDocument
from api.schemas.table import AccessSpec, TableConstraintsSpec, TableSpec
from cost_models.hardware import Hardware
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.access import AccessCdf, AccessStatistics, MissRatioCurve, ReuseHistogram, ZipfAccess
from planner.domain.cluster import Cluster
from planner.domain.data_type import DATA_TYPES
from planner.domain.optimizer import OPTIMIZERS
from planner.domain.problem import (
    SERVING_DENSE_MULTIPLIER,
    SERVING_INPUT_COPIES,
    Dense,
    Problem,
    Reservation,
)
from planner.domain.serving import Serving
from planner.domain.table import Feature, Table, TableConstraints

#: Of most tables: made once, for specs have thousands.
_NO_CONSTRAINTS = TableConstraints()


def problem_of(spec: SpecDocument, hardware: Hardware) -> Problem:
    """Return what a spec asks for on ``hardware``; the spec has passed ``api.spec_checks``."""
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
        ddr_fraction=spec.constraints.reserved_ddr_fraction,
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
    if not spec.model_fields_set:
        return _NO_CONSTRAINTS
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
