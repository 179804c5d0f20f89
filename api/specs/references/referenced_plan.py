"""A plan that a spec refers to: given inline, or by the digest of a plan that the service keeps."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from api.schemas.plan import CompactPlanDocument
from api.schemas.referenced_plan import ReferencedPlanSpec
from api.specs.input.json import RejectedDocument, quoted
from api.specs.issues import IssueCollector
from api.specs.plans.document import GivenPlan, given_plan, parse_form
from api.specs.plans.registry import is_foreign, rewritten_plan
from api.specs.plans.rewritten import PlannedJob
from cost_models.vocabulary import Tier
from planner.domain.formats.canonical_json import canonical_bytes, digest_keys
from planner.domain.formats.compact_form import COMPACT, FORM
from planner.domain.formats.compaction import bare_tables
from planner.domain.plan.placement import Placement, TablePlacement
from planner.errors import Issue
from planner.verification.overlap import overlapping_shards

#: Canonical bytes of the plan with a digest; ``None`` where there is none.
FindPlan = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedPlan:
    """A plan that passed every check."""

    placement: Placement
    digest: str | None
    document: dict[str, object]  # normalised: the plan inline, of it what determines training; and the other settings
    warnings: tuple[Issue, ...]  # what had to be assumed to read it


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReader:
    """Reads the plans that a spec refers to.

    ``job`` is what a plan in the form of others is read for; such a plan is not read if the tables or the cluster of
    the spec are not known (``None``). A plan that is given inline has at most ``most_inline_shards``, which is checked
    before they take memory.
    """

    find_plan: FindPlan | None
    job: PlannedJob | None
    issues: IssueCollector
    most_inline_shards: int | None = None

    def read(self, field: str, spec: ReferencedPlanSpec) -> ReferencedPlan | None:
        """Read the plan of a field of the spec, such as solver.warm_start; ``None`` if something is wrong with it."""
        content: Any
        most_shards = self.most_inline_shards if spec.digest is None else None
        if spec.digest is None:
            where, content = f"{_pointer(field)}/plan", spec.plan or {}
            try:
                raw = canonical_bytes(content)
            except ValueError:
                self.issues.report(where, "the plan has a number that is not finite", _hint(field))
                return None
        else:
            found = self._found(field, spec.digest)
            if found is None:
                return None
            where, content, raw = f"{_pointer(field)}/digest", json.loads(found), found
        warnings: tuple[Issue, ...] = ()
        try:
            if is_foreign(content):
                if self.job is None:
                    return None
                plan_of_ours = rewritten_plan(content, raw, self.job)
                content, warnings = plan_of_ours.document, plan_of_ours.warnings
                raw = canonical_bytes(content)
            device_tier = Tier.HBM if self.job is None else self.job.device_tier
            given = _checked(raw, content, device_tier, most_shards, field)
        except RejectedDocument as error:
            for issue in error.issues:
                self.issues.add(_at(where, issue))
            return None
        core: dict[str, object] = {key: content[key] for key in digest_keys(content) if key in content}
        core["tables"] = bare_tables(content)
        core[FORM] = COMPACT
        settings = spec.model_dump(mode="json", exclude_none=True, exclude={"plan", "digest"})
        return ReferencedPlan(
            placement=given.placement,
            digest=given.actual_digest,
            document={"plan": core, **settings},
            warnings=tuple(_at(where, warning) for warning in warnings),
        )

    def _found(self, field: str, digest: str) -> bytes | None:
        raw = None
        if self.find_plan is None:
            message = "plans are found by their digests in the service alone"
            hint = f"give the plan itself: shardplan plan {_OPTIONS[field]} PLAN.json, or {field}.plan"
        else:
            raw = self.find_plan(digest)
            message = "no plan of this digest is kept here"
            hint = f"use the digest of a plan of this service, or give the plan itself as {field}.plan"
        if raw is None:
            self.issues.report(f"{_pointer(field)}/digest", message, hint, code="unknown-plan")
        return raw


#: Options of the command line that give a plan.
_OPTIONS = {
    "previous_plan": "--previous",
    "checkpoint_plan": "--checkpoint-plan",
    "solver.warm_start": "--warm-start",
}
_WORDS = {
    "previous_plan": "a previous plan",
    "checkpoint_plan": "the plan of a checkpoint",
    "solver.warm_start": "the plan of a warm start",
}


def _pointer(field: str) -> str:
    return "/" + field.replace(".", "/")


def _hint(field: str) -> str:
    return f"give a plan as shardplan wrote it, or leave {field} null"


def _checked(
    raw: bytes, content: Mapping[str, Any], device_tier: Tier, most_shards: int | None, field: str
) -> GivenPlan:
    """Return a plan of ours; raises ``RejectedDocument`` with pointers into the plan."""
    plan = parse_form(raw, content)
    if most_shards is not None and isinstance(plan, CompactPlanDocument) and plan.num_shards > most_shards:
        message = f"the plan has {plan.num_shards:,} shards; over HTTP {_WORDS[field]} has at most {most_shards:,}"
        hint = f"give the digest of a plan that this service keeps, or use shardplan plan {_OPTIONS[field]} PLAN.json"
        raise RejectedDocument([Issue(code="invalid-value", pointer="", message=message, hint=hint)])
    given = given_plan(plan, content, device_tier=device_tier)
    if issues := [*given.false_digest(), *_form_issues(given.placement, _hint(field))]:
        raise RejectedDocument(issues)
    return given


def _form_issues(placement: Placement, hint: str) -> Iterator[Issue]:
    """Yield tables that are not there exactly once, cell by cell, on ranks that the plan has."""
    names = Counter(placed.name for placed in placement.tables)
    for index, placed in enumerate(placement.tables):
        where = f"/tables/{index}"
        if names[placed.name] > 1:
            yield _issue(f"{where}/name", f"table {quoted(placed.name)} stands twice in the plan", hint)
        if np.any(placed.shards.rank >= placement.world_size):
            yield _issue(
                where, f"table {quoted(placed.name)} is on a rank that the plan's world_size does not have", hint
            )
        elif np.any(placed.shards.num_rows < 1) or np.any(placed.shards.num_columns < 1):
            yield _issue(where, f"table {quoted(placed.name)} has an empty shard", hint)
        elif not _is_whole(placed):
            yield _issue(where, f"the shards of table {quoted(placed.name)} are no partition of its cells", hint)


def _is_whole(placed: TablePlacement) -> bool:
    """Whether shards have every cell once, or once per rank for data_parallel."""
    shards = placed.shards
    rows, columns = int(shards.row_end.max()), int(shards.column_end.max())
    if placed.sharding_type.is_replicated:
        is_full = (shards.num_rows == rows) & (shards.num_columns == columns)
        return bool(np.all(is_full)) and len(np.unique(shards.rank)) == len(shards)
    return shards.num_cells == rows * columns and overlapping_shards(shards) is None


def _issue(where: str, message: str, hint: str) -> Issue:
    return Issue(code="invalid-value", pointer=where, message=message, hint=hint)


def _at(where: str, issue: Issue) -> Issue:
    """Return the issue of a plan with its place in the spec: the digest, if the plan itself is stored elsewhere."""
    return replace(issue, pointer=where) if where.endswith("/digest") else issue.below(where)
