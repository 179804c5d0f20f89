"""The previous plan of a spec: given inline, or by the digest of a plan that the service keeps."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from api.schemas.plan import CompactPlanDocument
from api.schemas.spec import PreviousPlanSpec
from api.specs.input.json import RejectedDocument, quoted
from api.specs.issues import IssueCollector
from api.specs.plans.document import GivenPlan, given_plan, parse_form
from api.specs.plans.registry import is_foreign, rewritten_plan
from api.specs.plans.rewritten import PlannedJob
from cost_models.vocabulary import Tier
from planner.domain.formats.canonical_json import canonical_bytes, digest_keys
from planner.domain.formats.compact_form import COMPACT, FORM
from planner.domain.formats.compaction import bare_tables
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.placement import Placement, TablePlacement
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


def read_previous_plan(
    spec: PreviousPlanSpec,
    find_plan: FindPlan | None,
    job: PlannedJob | None,
    issues: IssueCollector,
    most_inline_shards: int | None = None,
) -> Previous | None:
    """Read the previous plan of a spec; ``None`` if something is wrong with it.

    ``job`` is what a plan in the form of others is read for; such a plan is not read if the tables or the cluster of
    the spec are not known (``None``). A plan that is given inline has at most ``most_inline_shards``, which is checked
    before they take memory.
    """
    content: Any
    most_shards = most_inline_shards if spec.digest is None else None
    if spec.digest is None:
        where, content = "/previous_plan/plan", spec.plan or {}
        try:
            raw = canonical_bytes(content)
        except ValueError:
            issues.report(where, "the plan has a number that is not finite", _HINT)
            return None
    else:
        found = _found(spec.digest, find_plan, issues)
        if found is None:
            return None
        where, content, raw = "/previous_plan/digest", json.loads(found), found
    warnings: tuple[Issue, ...] = ()
    try:
        if is_foreign(content):
            if job is None:
                return None
            plan_of_ours = rewritten_plan(content, raw, job)
            content, warnings = plan_of_ours.document, plan_of_ours.warnings
            raw = canonical_bytes(content)
        given = _checked(raw, content, Tier.HBM if job is None else job.device_tier, most_shards)
    except RejectedDocument as error:
        for issue in error.issues:
            issues.add(_at(where, issue))
        return None
    core: dict[str, object] = {key: content[key] for key in digest_keys(content) if key in content}
    core["tables"] = bare_tables(content)
    core[FORM] = COMPACT
    settings = spec.model_dump(mode="json", exclude_none=True, exclude={"plan", "digest"})
    return Previous(
        plan=PreviousPlan(
            placement=given.placement,
            digest=given.actual_digest,
            remaining_steps=spec.remaining_steps,
            max_moved_bytes=spec.max_moved_bytes,
            min_relative_gain=spec.min_relative_gain,
        ),
        document={"plan": core, **settings},
        warnings=tuple(_at(where, warning) for warning in warnings),
    )


def _found(digest: str, find_plan: FindPlan | None, issues: IssueCollector) -> bytes | None:
    raw = None
    if find_plan is None:
        message = "plans are found by their digests in the service alone"
        hint = "give the plan itself: shardplan plan --previous PLAN.json, or previous_plan.plan"
    else:
        raw = find_plan(digest)
        message = "no plan of this digest is kept here"
        hint = "use the digest of a plan of this service, or give the plan itself as previous_plan.plan"
    if raw is None:
        issues.report("/previous_plan/digest", message, hint, code="unknown-plan")
    return raw


def _checked(raw: bytes, content: Mapping[str, Any], device_tier: Tier, most_shards: int | None) -> GivenPlan:
    """Return a plan of ours; raises ``RejectedDocument`` with pointers into the plan."""
    plan = parse_form(raw, content)
    if most_shards is not None and isinstance(plan, CompactPlanDocument) and plan.num_shards > most_shards:
        message = f"the plan has {plan.num_shards:,} shards; over HTTP a previous plan has at most {most_shards:,}"
        hint = "give the digest of a plan that this service keeps, or use shardplan plan --previous PLAN.json"
        raise RejectedDocument([Issue(code="invalid-value", pointer="", message=message, hint=hint)])
    given = given_plan(plan, content, device_tier=device_tier)
    if issues := [*given.false_digest(), *_form_issues(given.placement)]:
        raise RejectedDocument(issues)
    return given


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
    """Return the issue of a plan with its place in the spec: the digest, if the plan itself is stored elsewhere."""
    return replace(issue, pointer=where) if where.endswith("/digest") else issue.below(where)
