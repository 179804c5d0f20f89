"""What a spec becomes: the values of a solve, and what a service stores and answers in addition."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from api.schemas.shard import PinnedShardSpec, Rectangle
from api.schemas.spec import SpecDocument
from api.specs.assumptions import assumptions_of
from api.specs.checks.checkpoint_plan import checkpoint_plan_assumptions
from api.specs.checks.solver import warm_start_assumptions
from api.specs.state import SpecState
from api.specs.to_domain.checkpoint import normalised_checkpoint
from cost_models.protocol import CostModel
from planner.domain.formats.canonical_json import canonical_bytes, canonical_members, digest_of, of_members
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Assumption
from planner.domain.problem.problem import Problem
from planner.errors import Issue
from planner.solver.partitioners.base import Partitioner, SolveLimits
from planner.solver.partitioners.registry import make_partitioner


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveInputs:
    """What a solve needs of a spec, as values of the domain."""

    name: str
    problem: Problem
    cost_model: CostModel
    partitioner_name: str
    limits: SolveLimits
    previous: PreviousPlan | None
    warm_start: Placement | None
    hardware_profile: str

    @property
    def partitioner(self) -> Partitioner:
        """A new partitioner; the first one of a process loads the solvers."""
        return make_partitioner(self.partitioner_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveRequest(SolveInputs):
    """A spec that passed every check."""

    spec: dict[str, object]  # the normalised document: defaults filled in, shorthand spelled out
    members: Mapping[str, bytes]  # canonical bytes of its values: large ones take long
    spec_digest: str  # of what determines the problem
    stated_spec_digest: str  # the same before another cost model was chosen than the spec's
    assumptions: tuple[Assumption, ...]
    warnings: tuple[Issue, ...]
    model_warnings: tuple[Issue, ...]  # those of them that any use of the cost model has


def inputs_of(state: SpecState) -> SolveInputs:
    """Return what a solve needs of a spec that has gone through the stages."""
    spec, solver = state.spec, state.spec.solver
    assert state.problem is not None
    assert state.model is not None
    return SolveInputs(
        name=spec.name,
        problem=state.problem,
        cost_model=state.model.model,
        partitioner_name=solver.partitioner,
        limits=SolveLimits(**solver.model_dump(exclude={"partitioner", "warm_start"})),
        previous=None if state.previous is None else state.previous.plan,
        warm_start=None if state.warm_start is None else state.warm_start.placement,
        hardware_profile=spec.hardware.profile,
    )


def request_of(state: SpecState, warnings: tuple[Issue, ...], base: str) -> SolveRequest:
    """Return a spec without issues; ``base`` is where it stands in the document."""
    inputs, model = inputs_of(state), state.model
    assert model is not None
    document = normalised(state.spec, inputs.problem)
    if state.previous is not None:
        document["previous_plan"] = state.previous.document
    if state.of_checkpoint is not None:
        document["checkpoint_plan"] = state.of_checkpoint.document
    if state.warm_start is not None:
        solver = state.spec.solver.model_dump(mode="json", exclude_none=True, exclude={"warm_start"})
        document["solver"] = solver | {"warm_start": state.warm_start.document}
    members = canonical_members(document)
    digest = spec_digest(members)
    stated = {"cost_model": canonical_bytes(state.stated_cost_model or state.spec.cost_model)}
    shared: dict[str, Any] = {field.name: getattr(inputs, field.name) for field in fields(inputs)}
    return SolveRequest(
        **shared,
        spec=document,
        members=members,
        spec_digest=digest,
        stated_spec_digest=digest
        if stated["cost_model"] == members["cost_model"]
        else spec_digest({**members, **stated}),
        assumptions=(
            *assumptions_of(state.spec, inputs.problem),
            *checkpoint_plan_assumptions(inputs.problem),
            *warm_start_assumptions(state),
            *model.assumptions,
            *state.statistics,
        ),
        warnings=warnings,
        model_warnings=tuple(warning.below(base) for warning in model.warnings),
    )


#: Keys of a spec that determine the problem, and so what its plans mean.
SPEC_DIGEST_KEYS = (
    "schema_version",
    "model",
    "hardware",
    "constraints",
    "runtime",
    "objective",
    "objectives",
    "cost_model",
    "count_starts",
    "checkpoint",
    "serving",
    "checkpoint_plan",
)
#: Of a pin only what says where the table goes is written.
_NOT_OF_RECTANGLES = {"shards": {"__all__": PinnedShardSpec.model_fields.keys() - Rectangle.model_fields.keys()}}
#: What a normalised spec writes in another way than it was given.
_SPELLED_OUT: Any = {
    "tables": {"__all__": {"pooling_factor": True, "features": True, "constraints": {"pinned": _NOT_OF_RECTANGLES}}}
}


def normalised(spec: SpecDocument, problem: Problem) -> dict[str, object]:
    """Return the spec with defaults filled in, shorthand spelled out and sets sorted."""
    document: dict[str, object] = spec.model_dump(
        mode="json", exclude_none=True, exclude={"model": True, "hardware": True, "solver": {"warm_start"}}
    )
    model = spec.model.model_dump(mode="json", exclude_none=True, exclude=_SPELLED_OUT)  # at once: twice as fast
    for written, checked in zip(model["tables"], problem.tables, strict=True):
        written["features"] = [
            {"name": f.name, "pooling_factor": f.pooling_factor, "num_poolings": f.num_poolings}
            for f in checked.features
        ]
        written["constraints"] = _normalised_constraints(written["constraints"])
    if spec.model.use_index_dedup == "off":
        del model["use_index_dedup"]  # specs from before the field was there have the same digest
    document["model"] = model
    document["hardware"] = spec.hardware.model_dump(mode="json", exclude_none=True) | {
        "ranks_per_host": problem.all_ranks.ranks_per_host
    }
    if spec.count_starts:
        del document["count_starts"]  # specs from before the field was there have the same digest
    if spec.checkpoint is not None:
        document["checkpoint"] = normalised_checkpoint(spec.checkpoint)
    return document


def _normalised_constraints(written: Mapping[str, Any]) -> dict[str, object]:
    """Return the constraints with sets and the shards of a pin sorted."""
    if "pinned" in written:
        written["pinned"]["shards"].sort(key=lambda shard: (shard["column_offset"], shard["rank"]))
    return {key: sorted(set(value)) if isinstance(value, list) else value for key, value in written.items()}


def spec_digest(members: Mapping[str, bytes]) -> str:
    """Return the digest of what determines the problem of a normalised spec, of which these are canonical values."""
    return digest_of(of_members({key: members[key] for key in SPEC_DIGEST_KEYS if key in members}))
