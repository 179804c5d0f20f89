"""Formats that a plan document can be written in, by the name that requests give them."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from cost_models.errors import UnknownProfile
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.formats.canonical_json import canonical_bytes, digest, plan_digest
from planner.domain.formats.compact_form import long_parts
from planner.domain.formats.compaction import grouped_shards
from planner.domain.plan.placement import Placement, TablePlacement
from planner.options.runtimes.export import ExportFacts, PlanToExport, UnexportablePlan
from planner.options.runtimes.registry import EXPORTS, RUNTIMES
from planner.output.documents.compact_plan import CompactPlanDocument, CompactTableDocument
from planner.output.explain.shard_groups import rank_loads
from planner.output.timeline.bars import Timeline
from planner.output.timeline.chrome_trace import chrome_trace
from planner.output.timeline.parts import PhaseParts, fitting, phase_parts
from planner.output.timeline.plan_timeline import plan_timeline

FORMAT_VERSION = 1
JSON = "json"
#: A step of the plan for viewers of traces.
CHROME_TRACE = "chrome_trace"
#: The names of all formats.
FORMATS = (JSON, CHROME_TRACE, *EXPORTS)
_NO_FACTS = ExportFacts()
#: Devices as torch calls them; accelerators of all makers are "cuda".
_CPU, _CUDA = "cpu", "cuda"


def export_parts(
    document: CompactPlanDocument,
    export_format: str,
    *,
    module_path: str | None,
    device: str | None = None,
    facts: ExportFacts = _NO_FACTS,
) -> Iterator[bytes]:
    """Return the canonical bytes of a plan in one of :data:`FORMATS`, part by part.

    ``json`` is the plan in long form, ``chrome_trace`` its step (:mod:`planner.output.timeline.chrome_trace`), with
    sharding types inside phases if the facts have problem and cost model. Other formats are those of :func:`exported`,
    which raises the same errors.
    """
    if export_format == JSON:
        return long_parts(document)
    if export_format == CHROME_TRACE:
        return iter([canonical_bytes(_chrome_trace(document, facts))])
    return iter(
        [canonical_bytes(exported(document, export_format, module_path=module_path, device=device, facts=facts))]
    )


def exported(
    document: CompactPlanDocument,
    export_format: str,
    *,
    module_path: str | None,
    device: str | None = None,
    facts: ExportFacts = _NO_FACTS,
) -> Mapping[str, object]:
    """Return what a runtime reads of a plan.

    ``content_sha256`` is the SHA-256 of the canonical bytes of all other keys. ``module_path`` is the embedding module
    of tables whose plan names none, ``device`` is ``cuda``, ``cpu`` or ``mtia``, by default that of the plan's hardware
    profile; a format that needs neither, nor the facts, ignores them.

    Raises
    ------
    UnexportablePlan
        The runtime cannot run the plan, with the reason for each table; or the document is not the one its digest
        names.
    """
    content_digest = plan_digest(document)
    if document.get("plan_digest") != content_digest:
        raise UnexportablePlan(
            f"The plan says {document.get('plan_digest')}, but its content has the digest {content_digest};"
            " it was changed after it was published."
        )
    profile: str | None = (cast("Mapping[str, Any]", document).get("provenance") or {}).get("hardware_profile")
    family = _family(profile)
    _check_devices(profile, family, export_format)
    groups = document.get("replica_groups")
    if groups is not None and not RUNTIMES[export_format].has_replica_groups:
        raise UnexportablePlan(
            f"The plan is for one of {groups['num_groups']} sharding groups, which {export_format} does not have."
            " Export it for torchrec, or plan without hardware.replica_groups."
        )
    if document.get("use_index_dedup") and not RUNTIMES[export_format].has_index_dedup:
        raise UnexportablePlan(
            f"The plan leaves out repeated ids, which {export_format} does not. Export it for torchrec, or plan with"
            " model.use_index_dedup off."
        )
    plan = PlanToExport(
        runtime=export_format,
        placement=_placement(document),
        hardware_profile=profile,
        device=device or (_CPU if family == _CPU else _CUDA),
        module_path=module_path,
        facts=facts,
        replica_groups=groups,
    )
    export: dict[str, object] = {
        "format": export_format,
        "format_version": FORMAT_VERSION,
        "plan_digest": content_digest,
        **EXPORTS[export_format](plan),
    }
    return {**export, "content_sha256": digest(export).removeprefix("sha256:")}


def timeline_of(document: CompactPlanDocument, facts: ExportFacts) -> Timeline:
    """Return the timeline of a plan, with what the facts know of its phases."""
    parts: tuple[PhaseParts, ...] = ()
    if facts.problem is not None and facts.cost_model is not None:
        parts = phase_parts(facts.problem, _placement(document), facts.cost_model)
        parts = fitting(parts, rank_loads(document))
    return plan_timeline(document, parts)


def _chrome_trace(document: CompactPlanDocument, facts: ExportFacts) -> dict[str, object]:
    names = [f"rank {load['rank']}, host {load['host']}" for load in rank_loads(document)]
    of = {
        "plan_digest": document["plan_digest"],
        "name": document["name"],
        "cost_model": document["provenance"]["cost_model"],
        "hardware_profile": document["provenance"]["hardware_profile"],
    }
    timeline = timeline_of(document, facts)
    return chrome_trace(timeline, names=names, facts={**of, f"{timeline.unit}_seconds": timeline.seconds})


def _family(profile: str | None) -> str | None:
    """Return the family of the devices of a hardware profile; ``None`` of one that is not ours."""
    try:
        return None if profile is None else load_profile(profile).family
    except UnknownProfile:
        return None


def _check_devices(profile: str | None, family: str | None, runtime: str) -> None:
    """Raise ``UnexportablePlan`` if a plan's hardware profile has devices that a runtime does not run on.

    A plan that names no profile of ours passes: its devices are not known.
    """
    families = RUNTIMES[runtime].device_families
    if families is not None and family is not None and family not in families:
        runs_on = " or ".join(sorted(families - {"custom"}))
        raise UnexportablePlan(
            f"The plan is for {profile}, whose devices are of the family {family}; {runtime} runs on {runs_on}. Plan"
            " for this runtime and hardware that it runs on: set runtime and hardware.profile in the spec."
        )


def _placement(document: CompactPlanDocument) -> Placement:
    return Placement(
        world_size=document["world_size"],
        ranks_per_host=document["ranks_per_host"],
        pod_size=document.get("pod_size"),
        kv_cache_bytes=document.get("kv_cache_bytes"),
        use_index_dedup=bool(document.get("use_index_dedup")),
        tables=tuple(_placed(table) for table in document["tables"]),
    )


def _placed(table: CompactTableDocument) -> TablePlacement:
    groups = table["shards"]
    return TablePlacement(
        name=table["name"],
        sharding_type=Scheme.from_label(table["sharding_type"]),
        compute_kernel=Kernel.from_label(table["compute_kernel"]),
        shards=grouped_shards(groups, [Tier.from_label(group["tier"]) for group in groups]),
        cache_load_factor=table.get("cache_load_factor"),
        cache_reserved_bytes=table.get("cache_reserved_bytes"),
        stash_weights=bool(table.get("stash_weights")),
        module_path=table.get("module_path") or "",
        data_type=table.get("data_type") or "",
        pooling=table.get("pooling") or "",
        hash_table_mode=table.get("hash_table_mode") or "",
    )


def reads_facts(export_format: str) -> bool:
    """Whether a format says more if facts are known in addition to the plan."""
    return export_format == CHROME_TRACE or (export_format in EXPORTS and RUNTIMES[export_format].export_reads_spec)
