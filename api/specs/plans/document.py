"""A plan from anywhere: its placement, and the digests that it states."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from api.schemas.plan import CompactPlanDocument, CompactTableDocument, PlanDocument, TablePlanDocument
from api.specs.input.json import parse_document
from api.specs.plans.rewritten import PrintedMemory
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.formats.canonical_json import DIGEST_KEYS, plan_digest
from planner.domain.formats.compact_form import is_compact
from planner.domain.formats.compaction import grouped_shards
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.errors import Issue

_OF_TABLE = re.compile(r"/tables/([0-9]+)")

#: Code of a plan that was made for another spec.
SPEC_MISMATCH = "spec-mismatch"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenPlan:
    """A well-formed plan that is not judged yet."""

    placement: Placement
    stated_digest: str | None
    actual_digest: str | None  # None where the plan lacks a key that the digest covers
    stated_spec_digest: str | None
    stated_objective: Mapping[str, object]  # empty where the plan states none
    warnings: tuple[Issue, ...] = ()  # what had to be assumed to read it
    pointers: tuple[str, ...] = ()  # where its tables stand, in a document of another form than ours
    printed_memory: PrintedMemory | None = None  # of a plan that a planner printed

    def placed(self, issue: Issue) -> Issue:
        """Return an issue of a plan document of ours with its place in the document that was given."""
        found = _OF_TABLE.match(issue.pointer) if self.pointers else None
        if found is None:
            return issue
        return replace(issue, pointer=self.pointers[int(found[1])] + issue.pointer[found.end() :])

    def false_digest(self) -> Iterator[Issue]:
        """Yield a violation where the plan states another digest than its content has."""
        if self.stated_digest is None or self.stated_digest == self.actual_digest:
            return
        if self.actual_digest is None:
            message = f"the plan states a digest and lacks one of the fields it covers: {', '.join(DIGEST_KEYS)}"
        else:
            message = f"the plan says {self.stated_digest}, but its content has the digest {self.actual_digest}"
        hint = "it was changed after it was made: plan again, or fetch it again; or leave plan_digest out"
        yield Issue(code="digest-mismatch", pointer="/plan_digest", message=message, hint=hint)

    def other_spec(self, spec_digest: str, chosen_digest: str) -> Iterator[Issue]:
        """Yield a warning where the plan states another spec than the one it is judged against.

        ``chosen_digest`` is that of the same spec under the cost model that was chosen to judge.
        """
        if self.stated_spec_digest not in (None, spec_digest, chosen_digest):
            yield Issue(
                code=SPEC_MISMATCH,
                pointer="/spec_digest",
                message=f"the plan was made for the spec {self.stated_spec_digest}, and this spec is {spec_digest}",
                hint="judge it against the spec that it was made for, or plan again for this one",
                severity="warning",
            )


def read_plan(raw: bytes, content: Any, *, device_tier: Tier) -> GivenPlan:
    """Check a plan document of ours, in either form: the one reader of both. ``content`` is its parsed JSON.

    Raises ``RejectedDocument`` with pointers into the plan.
    """
    return given_plan(parse_form(raw, content), content, device_tier=device_tier)


def parse_form(raw: bytes, content: Any) -> PlanDocument | CompactPlanDocument:
    """Check the fields of a plan document of ours, in either form; raises ``RejectedDocument``."""
    return parse_document(raw, CompactPlanDocument) if is_compact(content) else parse_document(raw, PlanDocument)


def given_plan(
    plan: PlanDocument | CompactPlanDocument, content: Mapping[str, object], *, device_tier: Tier
) -> GivenPlan:
    """Return a checked plan document; ``content`` is the same as it was sent, which digests are made of.

    Shards without a tier lie where their kernel keeps rows, on devices with the memory ``device_tier``.
    """
    return GivenPlan(
        placement=to_placement(plan, device_tier),
        stated_digest=plan.plan_digest,
        actual_digest=plan_digest(content) if all(key in content for key in DIGEST_KEYS) else None,
        stated_spec_digest=plan.spec_digest,
        stated_objective=plan.objective if isinstance(plan.objective, dict) else {},
    )


def to_placement(plan: PlanDocument | CompactPlanDocument, device_tier: Tier) -> Placement:
    """Turn a plan document into a placement; nothing is judged here, ``planner.verification.verify`` does."""
    listed = [_shards(table, Kernel.from_label(table.compute_kernel).tier(device_tier)) for table in plan.tables]
    # Parts of one array, as those of a search, which nothing needs to copy to see all of them.
    shards = Shards.joined(listed).split(np.cumsum([len(one) for one in listed], dtype=np.int64))
    return Placement(
        world_size=plan.world_size,
        ranks_per_host=plan.ranks_per_host,
        pod_size=plan.pod_size,
        kv_cache_bytes=plan.kv_cache_bytes,
        use_index_dedup=plan.use_index_dedup or False,
        tables=tuple(
            TablePlacement(
                name=table.name,
                module_path=table.module_path,
                data_type=table.data_type or "",
                pooling=table.pooling or "",
                hash_table_mode=table.hash_table_mode or "",
                sharding_type=Scheme.from_label(table.sharding_type),
                compute_kernel=Kernel.from_label(table.compute_kernel),
                cache_load_factor=table.cache_load_factor,
                cache_reserved_bytes=table.cache_reserved_bytes,
                stash_weights=table.stash_weights or False,
                shards=its_shards,
            )
            for table, its_shards in zip(plan.tables, shards, strict=True)
        ),
    )


def _shards(table: TablePlanDocument | CompactTableDocument, usual_tier: Tier) -> Shards:
    tiers = [usual_tier if one.tier is None else Tier.from_label(one.tier) for one in table.shards]
    if isinstance(table, CompactTableDocument):
        return grouped_shards([dict(group) for group in table.shards], tiers)
    return Shards.of_columns(
        rank=[shard.rank for shard in table.shards],
        row_offset=[shard.row_offset for shard in table.shards],
        num_rows=[shard.num_rows for shard in table.shards],
        column_offset=[shard.column_offset for shard in table.shards],
        num_columns=[shard.num_columns for shard in table.shards],
        tier=tiers,
    )
