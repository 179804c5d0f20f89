"""The previous plan of a spec: given inline, or by the digest of a plan that the service keeps."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from api.schemas.plan import PlanDocument
from api.schemas.spec import PreviousPlanSpec, SpecDocument
from api.specs.input.json import RejectedDocument, parse_document, quoted
from api.specs.plans.document import GivenPlan, given_plan
from api.specs.plans.torchrec import PlannedJob, is_torchrec, plan_of_torchrec
from cost_models.text.number_text import counted
from planner.domain.formats.canonical_json import DIGEST_KEYS, canonical_bytes, without_derived
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.problem.problem import Problem
from planner.errors import Issue
from planner.verification.overlap import overlapping_shards

#: Canonical bytes of the plan with a digest; ``None`` where there is none.
FindPlan = Callable[[str], bytes | None]
_HINT = "give a plan as shardplan wrote it, or leave previous_plan null"


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """A previous plan that passed every check."""

    plan: PreviousPlan
    document: dict[str, object]  # normalised: the plan inline, and of it what determines training
    warnings: tuple[Issue, ...]  # what had to be assumed to read it


def previous_of(
    spec: PreviousPlanSpec, base: str, find_plan: FindPlan | None, job: PlannedJob | None
) -> tuple[Previous | None, list[Issue]]:
    """Read the previous plan of a spec, or say what is wrong with it; ``base`` stands before every pointer.

    ``job`` is what a plan of TorchRec is read for, ``None`` where the spec's cluster is not known.
    """
    where = f"{base}/previous_plan"
    warnings: tuple[Issue, ...] = ()
    if spec.digest is not None:
        content, where = None, f"{where}/digest"
        if find_plan is None:
            message = "plans are found by their digests in the service alone"
            hint = "give the plan itself: shardplan plan --previous PLAN.json, or previous_plan.plan"
            return None, [Issue(code="unknown-plan", pointer=where, message=message, hint=hint)]
        raw = find_plan(spec.digest)
        if raw is None:
            hint = "use the digest of a plan of this service, or give the plan itself as previous_plan.plan"
            message = "no plan of this digest is kept here"
            return None, [Issue(code="unknown-plan", pointer=where, message=message, hint=hint)]
        content = json.loads(raw)
    else:
        content, where = spec.plan, f"{where}/plan"
        raw = canonical_bytes(content)
    try:
        if job is not None and is_torchrec(content):
            read = plan_of_torchrec(raw, job)
            content, warnings = read.document, read.warnings
            raw = canonical_bytes(content)
        plan = parse_document(raw, PlanDocument)
    except RejectedDocument as error:
        return None, [_at(where, issue) for issue in error.issues]
    stated = cast("Mapping[str, object]", content)
    given = given_plan(plan, stated)
    issues = [*given.false_digest(), *_form_issues(given.placement)]
    if issues:
        return None, [_at(where, issue) for issue in issues]
    tables = cast("list[dict[str, Any]]", stated["tables"])
    core = {key: stated[key] for key in DIGEST_KEYS if key in stated} | {"tables": without_derived(tables)}
    settings = spec.model_dump(mode="json", exclude_none=True, exclude={"plan", "digest"})
    told = tuple(_at(where, warning) for warning in warnings)
    return Previous(plan=_domain(spec, given), document={"plan": core, **settings}, warnings=told), []


def previous_warnings(previous: PreviousPlan, problem: Problem, spec: SpecDocument, base: str) -> Iterator[Issue]:
    """Yield what is odd about a previous plan: another cluster, or other tables."""
    placement, cluster, where = previous.placement, problem.cluster, f"{base}/previous_plan"
    before = (placement.world_size, placement.ranks_per_host)
    if before != (cluster.world_size, cluster.ranks_per_host):
        yield Issue(
            code="other-cluster",
            pointer=where,
            message=f"the previous plan is for {counted(before[0], 'rank')}, {before[1]} per host, and the cluster has "
            f"{cluster.world_size}, {cluster.ranks_per_host} per host: ranks of one number count as one rank",
            hint="rows that were on other ranks than they will be count as moved",
            severity="warning",
        )
    names = {table.name for table in spec.model.tables}
    common = [placed.name for placed in placement.tables if placed.name in names]
    if not common:
        yield Issue(
            code="no-common-table",
            pointer=where,
            message="no table of the previous plan has the name of a table of this spec: nothing can stay",
            hint="check that it is a plan of this model",
            severity="warning",
        )


def _domain(spec: PreviousPlanSpec, given: GivenPlan) -> PreviousPlan:
    return PreviousPlan(
        placement=given.placement,
        digest=given.actual_digest,
        remaining_steps=spec.remaining_steps,
        max_moved_bytes=spec.max_moved_bytes,
        min_relative_gain=spec.min_relative_gain,
    )


def _form_issues(placement: Placement) -> Iterator[Issue]:
    """Yield tables that are not there exactly once, cell by cell, on ranks that the plan has."""
    names = Counter(placed.name for placed in placement.tables)
    for index, placed in enumerate(placement.tables):
        where = f"/tables/{index}"
        if names[placed.name] > 1:
            yield _issue(f"{where}/name", f"table {quoted(placed.name)} stands twice in the plan")
        if np.any(placed.shards.rank >= placement.world_size):
            yield _issue(where, f"table {quoted(placed.name)} is on a rank that the plan's world_size does not have")
        elif np.any(placed.shards.num_rows < 1) or np.any(placed.shards.num_columns < 1):
            yield _issue(where, f"table {quoted(placed.name)} has an empty shard")
        elif not _is_whole(placed):
            yield _issue(where, f"the shards of table {quoted(placed.name)} are no partition of its cells")


def _is_whole(placed: TablePlacement) -> bool:
    """Whether shards have every cell once, or once per rank for data_parallel."""
    shards = placed.shards
    rows, columns = int(shards.row_end.max()), int(shards.column_end.max())
    if placed.sharding_type.is_replicated:
        is_full = (shards.num_rows == rows) & (shards.num_columns == columns)
        return bool(np.all(is_full)) and len(np.unique(shards.rank)) == len(shards)
    return shards.num_cells == rows * columns and overlapping_shards(shards) is None


def _issue(where: str, message: str) -> Issue:
    return Issue(code="invalid-value", pointer=where, message=message, hint=_HINT)


def _at(where: str, issue: Issue) -> Issue:
    """The issue of a plan that stands inline in the spec; of one that is kept elsewhere, at its digest."""
    return replace(issue, pointer=where) if where.endswith("/digest") else issue.below(where)
