"""Formats that a plan document can be written in, by the name that requests give them."""

from collections.abc import Mapping
from typing import Any, cast

from cost_models.errors import UnknownProfile
from cost_models.hardware.profiles_loader import load_profile
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.formats.canonical_json import digest, plan_digest
from planner.domain.plan.placement import Placement, TablePlacement
from planner.domain.plan.shards import Shards
from planner.options.runtimes.export import ExportFacts, PlanToExport, UnexportablePlan
from planner.options.runtimes.registry import EXPORTS, RUNTIMES
from planner.output.plan_document import PlanDocument, TableDocument

FORMAT_VERSION = 1
JSON = "json"
#: The names of all formats.
FORMATS = (JSON, *EXPORTS)
_NO_FACTS = ExportFacts()


def exported(
    document: PlanDocument, export_format: str, *, module_path: str | None, device: str, facts: ExportFacts = _NO_FACTS
) -> Mapping[str, object]:
    """Return a plan document in one of :data:`FORMATS`.

    ``json`` is the document as it is. Of what a runtime reads, ``content_sha256`` is the SHA-256 of the canonical bytes
    of all other keys. ``module_path`` is the embedding module of tables whose plan names none, ``device`` is ``cuda``,
    ``cpu`` or ``mtia``; a format that needs neither, nor the facts, ignores them.

    Raises
    ------
    UnexportablePlan
        The runtime cannot run the plan, with the reason for each table; or the document is not the one its digest
        names.
    """
    if export_format == JSON:
        return document
    content_digest = plan_digest(document)
    if document.get("plan_digest") != content_digest:
        raise UnexportablePlan(
            f"The plan says {document.get('plan_digest')}, but its content has the digest {content_digest};"
            " it was changed after it was published."
        )
    profile: str | None = (cast("Mapping[str, Any]", document).get("provenance") or {}).get("hardware_profile")
    _check_devices(profile, export_format)
    plan = PlanToExport(
        runtime=export_format,
        placement=_placement(document),
        hardware_profile=profile,
        device=device,
        module_path=module_path,
        facts=facts,
    )
    export: dict[str, object] = {
        "format": export_format,
        "format_version": FORMAT_VERSION,
        "plan_digest": content_digest,
        **EXPORTS[export_format](plan),
    }
    return {**export, "content_sha256": digest(export).removeprefix("sha256:")}


def _check_devices(profile: str | None, runtime: str) -> None:
    """Raise ``UnexportablePlan`` if a plan's hardware profile has devices that a runtime does not run on.

    A plan that names no profile of ours passes: its devices are not known.
    """
    families = RUNTIMES[runtime].device_families
    if profile is None or families is None:
        return
    try:
        family = load_profile(profile).family
    except UnknownProfile:
        return
    if family not in families:
        runs_on = " or ".join(sorted(families - {"custom"}))
        raise UnexportablePlan(
            f"The plan is for {profile}, whose devices are of the family {family}; {runtime} runs on {runs_on}. Plan"
            " for this runtime and hardware that it runs on: set runtime and hardware.profile in the spec."
        )


def _placement(document: PlanDocument) -> Placement:
    return Placement(
        world_size=document["world_size"],
        ranks_per_host=document["ranks_per_host"],
        tables=tuple(_placed(table) for table in document["tables"]),
    )


def _placed(table: TableDocument) -> TablePlacement:
    listed = table["shards"]
    return TablePlacement(
        name=table["name"],
        sharding_type=Scheme.from_label(table["sharding_type"]),
        compute_kernel=Kernel.from_label(table["compute_kernel"]),
        shards=Shards.of_columns(
            rank=[shard["rank"] for shard in listed],
            row_offset=[shard["row_offset"] for shard in listed],
            num_rows=[shard["num_rows"] for shard in listed],
            column_offset=[shard["column_offset"] for shard in listed],
            num_columns=[shard["num_columns"] for shard in listed],
            tier=[Tier.from_label(shard["tier"]) for shard in listed],
        ),
        cache_load_factor=table.get("cache_load_factor"),
        cache_reserved_bytes=table.get("cache_reserved_bytes"),
        module_path=table.get("module_path") or "",
        data_type=table.get("data_type") or "",
        pooling=table.get("pooling") or "",
    )


def reads_facts(export_format: str) -> bool:
    """Whether a format says more if facts are known in addition to the plan."""
    return export_format in EXPORTS and RUNTIMES[export_format].export_reads_spec
