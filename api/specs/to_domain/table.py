"""One table of a spec as a value of the domain."""

from api.schemas.table import AccessSpec, TableConstraintsSpec, TableSpec
from cost_models.vocabulary import Kernel, Scheme
from planner.domain.problem.access import AccessCdf, AccessStatistics, MissRatioCurve, ReuseHistogram, ZipfAccess
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.table import Feature, Table, TableConstraints

#: Of most tables: made once, for specs have thousands.
_NO_CONSTRAINTS = TableConstraints()


def table_of(spec: TableSpec, access: AccessStatistics | None) -> Table:
    """Return a table with what is known of its accesses; raises ``ValueError`` where fields contradict others."""
    return Table(
        name=spec.name,
        num_embeddings=spec.num_embeddings,
        embedding_dim=spec.embedding_dim,
        features=_features(spec),
        data_type=DATA_TYPES[spec.data_type],
        pooling=spec.pooling,
        is_weighted=spec.is_weighted,
        optimizer=OPTIMIZERS[spec.optimizer],
        access=access,
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


def access_of(spec: AccessSpec) -> AccessStatistics:
    """Return the statistics that stand in a spec; raises ``ValueError`` where they are none."""
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
