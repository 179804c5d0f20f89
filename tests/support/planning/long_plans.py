"""Plans as documents in long form, of which tests read and change every shard, for what takes the compact form."""

import json
from collections.abc import Mapping
from typing import Any

from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.formats.compact_form import long_document
from planner.domain.formats.compaction import compact_document
from planner.domain.plan.plan import Plan
from planner.output.explain import difference as differences
from planner.output.explain.text import difference as difference_texts
from planner.output.explain.text import plan as plan_texts
from planner.output.explain.text import storage as storage_texts
from planner.output.exporters import generic, registry

Document = Mapping[str, Any]


def to_document(plan: Plan, *, name: str, spec_digest: str, hardware_profile: str) -> Any:
    """Return the long form of the document of a plan."""
    document = generic.to_document(plan, name=name, spec_digest=spec_digest, hardware_profile=hardware_profile)
    return long_document(document)


def to_bytes(plan: Plan, *, name: str, spec_digest: str, hardware_profile: str) -> bytes:
    """Return the canonical bytes of the long form."""
    return canonical_bytes(to_document(plan, name=name, spec_digest=spec_digest, hardware_profile=hardware_profile))


def compact(plan: Document) -> Any:
    """Return a plan in compact form."""
    return compact_document(plan)


def explain_plan(plan: Document) -> str:
    return plan_texts.explain_plan(compact(plan))


def compare_plans(a: Document, b: Document) -> str:
    return difference_texts.compare_plans(compact(a), compact(b))


def difference(a: Document, b: Document) -> differences.PlanDifference:
    return differences.difference(compact(a), compact(b))


def storage_of(table: Document) -> str:
    return storage_texts.storage_of(compact({"tables": [table]})["tables"][0])


def exported(plan: Document, export_format: str, **options: Any) -> Any:
    """Return the JSON of a plan in one of the formats."""
    return json.loads(b"".join(registry.export_parts(compact(plan), export_format, **options)))
