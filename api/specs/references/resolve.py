"""The second stage: what a spec names or points to is looked up, and stands in its place."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from api.schemas.spec import HardwareSpec, SpecDocument
from api.specs.input.json import is_quotable
from api.specs.input.known_names import names_hint, nearest_names
from api.specs.issues import IssueCollector
from api.specs.plans.rewritten import PlannedJob
from api.specs.references.cost_model import (
    LEARNED,
    SPELLINGS,
    ChosenModel,
    FindModel,
    ShippedModels,
    choose_model,
    is_reference,
)
from api.specs.references.plans import read_checkpoint_plan, read_previous_plan, read_warm_start
from api.specs.references.referenced_plan import FindPlan, PlanReader
from api.specs.references.statistics import FindStatistics, inline_statistics
from api.specs.state import SpecState
from cost_models.hardware.hardware import Hardware
from cost_models.hardware.laws.document import InvalidLaw, parse_laws
from cost_models.hardware.profile_fields import FIELDS
from cost_models.hardware.profiles_loader import load_profile, profile_ids
from cost_models.hardware.shared_host import shared_host
from cost_models.registry import cost_model_names
from planner.domain.problem.cluster import tier_of_devices
from planner.errors import Issue
from planner.solver.partitioners.registry import partitioner_names

#: Nothing is slower, and what takes bytes at such a rate is still a number of seconds.
_LEAST_RATE = 1
#: A smaller share of a rate is a fault.
_LEAST_SHARE = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """Where plans and statistics are found by their digests, and learned models; without any, those of the package."""

    find_plan: FindPlan | None = None
    find_statistics: FindStatistics | None = None
    find_model: FindModel | None = None


#: The cost models of the package, and nothing that is stored.
PACKAGE = Library()


def resolve_references(
    state: SpecState,
    library: Library,
    issues: IssueCollector,
    *,
    cost_model: str | None = None,
    most_inline_shards: int | None = None,
) -> SpecState:
    """Look up hardware, cost model, statistics and the plans that the spec refers to.

    ``cost_model`` replaces the spec's own. A plan that is given inline has at most ``most_inline_shards``.
    """
    spec, find_model = state.spec, library.find_model or ShippedModels()
    stated_cost_model = None
    if cost_model is not None:
        stated = _choose_model(spec, find_model, IssueCollector())
        stated_cost_model = spec.cost_model if stated is None else stated.name
        spec = spec.model_copy(update={"cost_model": cost_model})
    hardware = _resolve_hardware(spec.hardware, issues)
    _check_part_names(spec, issues)
    model = _choose_model(spec, find_model, issues)
    if model is not None and model.name != spec.cost_model:  # a default stays unset: it is reported as an assumption
        spec = spec.model_copy(update={"cost_model": model.name})
    state = replace(state, spec=spec, hardware=hardware, model=model, stated_cost_model=stated_cost_model)
    if any(table.access is not None and table.access.statistics is not None for table in spec.model.tables):
        state = inline_statistics(state, library.find_statistics, issues)
    warm_start = spec.solver.warm_start
    if spec.previous_plan is None and spec.checkpoint_plan is None and warm_start is None:
        return state
    job = _planned_job(state, issues)
    reader = PlanReader(find_plan=library.find_plan, job=job, issues=issues, most_inline_shards=most_inline_shards)
    return replace(
        state,
        previous=None if spec.previous_plan is None else read_previous_plan(spec.previous_plan, reader),
        of_checkpoint=None if spec.checkpoint_plan is None else read_checkpoint_plan(spec.checkpoint_plan, reader),
        warm_start=None if warm_start is None else read_warm_start(warm_start, reader),
    )


def _choose_model(spec: SpecDocument, find: FindModel, issues: IssueCollector) -> ChosenModel | None:
    """Return the cost model of a spec; ``None`` without an issue of its own if a name is unknown."""
    known = spec.cost_model in cost_model_names() or is_reference(spec.cost_model)
    if not known or spec.hardware.profile not in profile_ids():
        return None
    return choose_model(spec.cost_model, spec.hardware.profile, find, issues)


def _planned_job(state: SpecState, issues: IssueCollector) -> PlannedJob | None:
    """Return the tables and the cluster of a spec; ``None`` if they are not all known."""
    num_unread = len(state.originals.table_names) - len(state.spec.model.tables)
    if state.hardware is None or num_unread or not issues.is_sound(*state.rank_fields):
        return None
    ranks_per_host = state.spec.hardware.ranks_per_host or state.hardware.ranks_per_host
    world_size = state.spec.hardware.num_hosts * ranks_per_host
    tables = [
        table.model_copy(update={"name": state.table_name(where, table)}) for where, table in state.written_tables()
    ]
    return PlannedJob(
        tables=tables,
        world_size=world_size,
        ranks_per_host=ranks_per_host,
        pod_size=state.spec.hardware.pod_size,
        device_tier=tier_of_devices(state.hardware, state.spec.hardware.overrides.hbm_bytes_by_rank),
    )


def _resolve_hardware(spec: HardwareSpec, issues: IssueCollector) -> Hardware | None:
    """Return the hardware with the numbers that the user states; ``None`` if the profile is unknown."""
    stated: Mapping[str, float] = spec.overrides.__pydantic_extra__
    usable = {name: value for name, value in stated.items() if _check_override(name, value, stated, issues)}
    if spec.profile not in profile_ids():
        return None
    profile = load_profile(spec.profile)
    if profile.family == "cpu" and (spec.ranks_per_host or 0) > profile.ranks_per_host:
        profile = shared_host(profile, spec.ranks_per_host or 0)
    if spec.collective_laws is not None:
        try:
            profile = profile.with_laws(parse_laws(spec.collective_laws))
        except InvalidLaw as error:
            issues.add(
                Issue(
                    code="invalid-collective-laws",
                    pointer=f"/hardware/collective_laws{error.place}",
                    message=error.reason,
                    hint="state the document that shardplan fit --laws writes",
                )
            )
    return profile.with_overrides(usable, {name: field.unit for name, field in FIELDS.items()})


def _check_override(name: str, value: float, stated: Mapping[str, float], issues: IssueCollector) -> bool:
    """Report an override that names no number of a profile, or a rate that nothing has."""
    pointer = "/hardware/overrides"
    if name not in FIELDS:
        close = nearest_names(name, FIELDS)[:1]
        hint = f"did you mean {close[0]}?" if close else "the names are listed in docs/spec.md and under /docs"
        issue = Issue(
            code="unknown-field",
            pointer=f"{pointer}/{name}" if is_quotable(name) else pointer,
            message="no hardware number of this name",
            hint=hint,
        )
        issues.add_unknown_field(issue)
        if close and close[0] not in stated:
            issues.mark_broken(f"{pointer}/{close[0]}")
        return False
    if FIELDS[name].unit == "share":
        if not _LEAST_SHARE <= value <= 1:
            message = f"{value:g} is no share in [{_LEAST_SHARE:g}, 1]"
            issues.report(f"{pointer}/{name}", message, "leave out what is not known")
            return False
        return True
    if not FIELDS[name].may_be_zero and value < _LEAST_RATE:
        message = f"{value:g} is a rate below {_LEAST_RATE} {FIELDS[name].unit.replace('_', ' ')}"
        issues.report(f"{pointer}/{name}", message, "leave out what is not known")
        return False
    return True


def _check_part_names(spec: SpecDocument, issues: IssueCollector) -> None:
    if spec.cost_model.startswith(LEARNED):
        if not is_reference(spec.cost_model):
            message, hint = "no name of a learned cost model", f"spell it {SPELLINGS}"
            issues.report("/cost_model", message, hint, code="unknown-cost-model")
    else:
        _check_name("cost model", "/cost_model", spec.cost_model, (*cost_model_names(), LEARNED), issues)
    _check_name("partitioner", "/solver/partitioner", spec.solver.partitioner, partitioner_names(), issues)
    _check_name("hardware profile", "/hardware/profile", spec.hardware.profile, profile_ids(), issues)


def _check_name(kind: str, pointer: str, name: str, known: tuple[str, ...], issues: IssueCollector) -> None:
    if name not in known:
        code = f"unknown-{kind.replace(' ', '-')}"
        issues.report(pointer, f"no {kind} of this name", names_hint(name, known), code=code)
