"""The problem that a checked spec states, as values of the domain."""

from collections.abc import Sequence
from dataclasses import replace

from api.schemas.spec import ServingSpec, SpecDocument
from api.specs.to_domain.checkpoint import checkpoint_of
from cost_models.hardware.hardware import Hardware
from planner.domain.problem.cluster import Cluster
from planner.domain.problem.problem import (
    SERVING_DENSE_MULTIPLIER,
    SERVING_INPUT_COPIES,
    Dense,
    Problem,
    Reservation,
)
from planner.domain.problem.serving import Serving
from planner.domain.problem.table import Table


def problem_of(spec: SpecDocument, tables: Sequence[Table], hardware: Hardware) -> Problem:
    """Return what a spec asks for on ``hardware``; it has passed every check, and these are its tables."""
    index_of = {table.name: index for index, table in enumerate(tables)}
    overrides = spec.hardware.overrides
    return Problem(
        tables=tuple(tables),
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
